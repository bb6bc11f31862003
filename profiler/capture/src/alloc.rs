//! Allocations of JVMs: a [`Source`] by probes on the functions to which HotSpot reports them, two for each libjvm file.
//!
//! In: an open file and where in it the functions are. Out: samples, in every process that maps the file, as
//! profiler-ebpf's `alloc.rs` takes them. CPUs only say whether anything is sampled at all. Files are those that have a probe
//! on their naming function too, so that their number is bounded with those.

use super::error::CaptureError;
use super::features::HostFeatures;
use super::file_probes::{Detached, Probe};
use super::session::Capture;
use super::source::{Source, SourceState};
use aya::Ebpf;
use emberscope_model::{AllocProbe, FileId, SampleKind};
use profiler_ebpf::AllocPlace;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;

/// The program of both functions: what it reads of their arguments is in the same place, but for the object's own bytes.
pub(super) const PROGRAM: &str = "allocated";

/// What is sampled of allocations, and for which CPUs.
pub(super) struct AllocSource {
    every: u64,
    cpus: BTreeSet<u32>,
}

impl AllocSource {
    /// The source, on no CPU yet. A sample stands for `every` bytes.
    pub(super) fn new(every: u64) -> Self {
        Self { every, cpus: BTreeSet::new() }
    }
}

/// What this host lacks for sampling allocations, and what mends that.
pub(super) fn lacks(host: &HostFeatures) -> Option<&'static str> {
    if host.uprobes.is_err() {
        return Some(
            "uprobes: CONFIG_UPROBE_EVENTS and CONFIG_BPF_EVENTS bring them, and the unit's capabilities",
        );
    }
    (!host.bpf_loop).then_some("bpf_loop: Linux 5.17 brings it")
}

impl Source for AllocSource {
    fn state(&self) -> SourceState {
        SourceState { kind: SampleKind::Alloc, event: None, every: self.every, cpus: self.cpus.len() }
    }

    fn lacks(&self, host: &HostFeatures) -> Option<Cow<'static, str>> {
        lacks(host).map(Cow::Borrowed)
    }

    fn attach(&mut self, _ebpf: &mut Ebpf, cpu: u32) -> Result<bool, CaptureError> {
        self.cpus.insert(cpu);
        Ok(true)
    }

    fn detach(&mut self, _ebpf: &mut Ebpf, cpu: u32) -> Result<(), CaptureError> {
        self.cpus.remove(&cpu);
        Ok(())
    }
}

impl Capture {
    /// Whether allocations are sampled.
    pub fn has_allocations(&self) -> bool {
        self.sources.iter().any(|source| source.state().kind == SampleKind::Alloc)
    }

    /// From now on, what threads allocate by these functions of this file is sampled, in whatever process maps it. A file is
    /// probed once. `file` is not needed afterwards. To be called where [`Self::has_allocations`].
    ///
    /// # Errors
    /// The kernel refuses a probe; then there is none.
    pub fn watch_allocations(
        &mut self,
        id: FileId,
        file: BorrowedFd<'_>,
        probe: AllocProbe,
    ) -> Result<(), CaptureError> {
        let functions =
            [(probe.in_new_tlab, AllocPlace::InNewTlab), (probe.outside_tlab, AllocPlace::OutsideTlab)];
        let of = |(offset, place): (u64, AllocPlace)| Probe {
            program: PROGRAM,
            offset,
            cookie: Some(place as u64),
        };
        self.allocations.attach(&mut self.ebpf, id, file, functions.map(of))
    }

    /// Takes the file's probes away, which are gone when what comes out is dropped; a file without is fine.
    ///
    /// # Errors
    /// A probe stays.
    pub fn unwatch_allocations(&mut self, id: FileId) -> Result<Detached, CaptureError> {
        self.allocations.detach(&mut self.ebpf, id)
    }

    /// Files whose allocations are sampled.
    pub fn alloc_probes(&self) -> usize {
        self.allocations.len()
    }
}
