//! Allocations of JVMs: a [`Source`] by probes on the functions to which HotSpot reports them, two for each libjvm file.
//!
//! In: an open file and where in it the functions are. Out: samples, in every process that maps the file, as
//! profiler-ebpf's `alloc.rs` takes them. CPUs only say whether anything is sampled at all. Files are those that have a probe
//! on their naming function too, so that their number is bounded with those.

use super::error::CaptureError;
use super::features::HostFeatures;
use super::loader;
use super::session::Capture;
use super::source::{Source, SourceState};
use aya::Ebpf;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeLinkId, UProbeScope};
use emberscope_model::{AllocProbe, FileId, SampleKind};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsRawFd, BorrowedFd};

/// The program of both functions: what it reads of their arguments is in the same place.
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
        return Some("uprobes: CONFIG_UPROBE_EVENTS and CONFIG_BPF_EVENTS bring them");
    }
    (!host.bpf_loop).then_some("bpf_loop: Linux 5.17 brings it")
}

impl Source for AllocSource {
    fn state(&self) -> SourceState {
        SourceState { kind: SampleKind::Alloc, every: self.every, cpus: self.cpus.len() }
    }

    fn lacks(&self, host: &HostFeatures) -> Option<&'static str> {
        lacks(host)
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

/// Links of the probes that are attached, by file.
#[derive(Default)]
pub(super) struct AllocProbes(BTreeMap<FileId, Vec<UProbeLinkId>>);

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
        if self.allocations.0.contains_key(&id) {
            return Ok(());
        }
        let program: &mut UProbe = loader::program(&mut self.ebpf, PROGRAM)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut links = Vec::new();
        for offset in [probe.in_new_tlab, probe.outside_tlab] {
            let location = UProbeAttachLocation::AbsoluteOffset(offset);
            match program.attach(location, &path, UProbeScope::AllProcesses) {
                Ok(link) => links.push(link),
                Err(error) => {
                    detach(program, links)?;
                    return Err(CaptureError::attach(PROGRAM, error));
                }
            }
        }
        self.allocations.0.insert(id, links);
        Ok(())
    }

    /// Takes the file's probes away; a file without is fine.
    ///
    /// # Errors
    /// A probe stays.
    pub fn unwatch_allocations(&mut self, id: FileId) -> Result<(), CaptureError> {
        let Some(links) = self.allocations.0.remove(&id) else { return Ok(()) };
        detach(loader::program(&mut self.ebpf, PROGRAM)?, links)
    }

    /// Files whose allocations are sampled.
    pub fn alloc_probes(&self) -> usize {
        self.allocations.0.len()
    }
}

fn detach(program: &mut UProbe, links: Vec<UProbeLinkId>) -> Result<(), CaptureError> {
    links.into_iter().try_for_each(|link| program.detach(link).map_err(|e| CaptureError::attach(PROGRAM, e)))
}
