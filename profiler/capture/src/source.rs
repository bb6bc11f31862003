//! What takes samples of a kind: a [`Source`] each.
//!
//! In: CPUs that come and go. Out: samples in the ring, by a program of the kernel's that hands its kind and weight to the
//! one door there (profiler-ebpf, `sample.rs`). The next kind is a file here and its facts in `model`.

use super::error::CaptureError;
use super::features::HostFeatures;
use super::loader;
use aya::Ebpf;
use aya::programs::perf_event::{
    PerfEventConfig, PerfEventLinkId, PerfEventScope, SamplePolicy, SoftwareEvent,
};
use aya::programs::{PerfEvent, ProgramError};
use emberscope_model::SampleKind;
use std::collections::BTreeMap;

/// What a source is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceState {
    /// The kind that the source samples.
    pub kind: SampleKind,
    /// A sample stands for so many units of the kind's weight.
    pub every: u64,
    /// CPUs that the source watches.
    pub cpus: usize,
}

/// Takes samples of a kind.
pub(super) trait Source: Send {
    /// What the source is doing.
    fn state(&self) -> SourceState;
    /// What this host lacks for the source, and what mends that.
    fn lacks(&self, host: &HostFeatures) -> Option<&'static str>;
    /// Puts the source on a CPU; false when that went offline meanwhile.
    fn attach(&mut self, ebpf: &mut Ebpf, cpu: u32) -> Result<bool, CaptureError>;
    /// Takes the source off a CPU, if it is on it.
    fn detach(&mut self, ebpf: &mut Ebpf, cpu: u32) -> Result<(), CaptureError>;
    /// Whether there are processes that run tasks: what watches only these takes itself off while there are none.
    fn has_tasks(&mut self, _ebpf: &mut Ebpf, _are: bool) -> Result<(), CaptureError> {
        Ok(())
    }
    /// Takes no samples, attached or not: for a test that loads and attaches.
    fn idle(&mut self) {}
}

/// Names of a kind's programs in the object, by how they walk.
pub(super) struct Programs {
    /// By `bpf_loop`.
    pub by_loop: &'static str,
    /// By tail calls, together with [`loader::MORE`].
    pub by_jumps: &'static str,
    /// By frame pointers only.
    pub by_pointers: &'static str,
}

/// A perf event on each CPU, whose program samples.
pub(super) struct PerfSource {
    kind: SampleKind,
    event: SoftwareEvent,
    every: u64,
    program: &'static str,
    links: BTreeMap<u32, PerfEventLinkId>,
}

/// perf's event of a kind that has one, and the programs that it runs.
pub(super) const fn perf_event(kind: SampleKind) -> Option<(SoftwareEvent, Programs)> {
    let event = match kind {
        SampleKind::Cpu => (
            SoftwareEvent::CpuClock,
            Programs { by_loop: "sample", by_jumps: "sample_first", by_pointers: "sample_bounded" },
        ),
        SampleKind::PageFaults => (
            SoftwareEvent::PageFaults,
            Programs { by_loop: "faults", by_jumps: "faults_first", by_pointers: "faults_bounded" },
        ),
        SampleKind::MajorFaults => (
            SoftwareEvent::PageFaultsMaj,
            Programs {
                by_loop: "major_faults",
                by_jumps: "major_faults_first",
                by_pointers: "major_faults_bounded",
            },
        ),
        SampleKind::Switches => (
            SoftwareEvent::ContextSwitches,
            Programs { by_loop: "switches", by_jumps: "switches_first", by_pointers: "switches_bounded" },
        ),
        SampleKind::OffCpu | SampleKind::Lock | SampleKind::Alloc | SampleKind::Wall => return None,
    };
    Some(event)
}

impl PerfSource {
    /// The source, on no CPU yet. `program` is loaded.
    pub fn new(kind: SampleKind, event: SoftwareEvent, every: u64, program: &'static str) -> Self {
        Self { kind, event, every, program, links: BTreeMap::new() }
    }
}

impl Source for PerfSource {
    fn state(&self) -> SourceState {
        SourceState { kind: self.kind, every: self.every, cpus: self.links.len() }
    }

    fn lacks(&self, _host: &HostFeatures) -> Option<&'static str> {
        // Software events are in every kernel that has perf events at all, which loading checks.
        None
    }

    fn attach(&mut self, ebpf: &mut Ebpf, cpu: u32) -> Result<bool, CaptureError> {
        self.detach(ebpf, cpu)?;
        let program: &mut PerfEvent = loader::program(ebpf, self.program)?;
        let event = PerfEventConfig::Software(self.event);
        let scope = PerfEventScope::AllProcessesOneCpu { cpu };
        match program.attach(event, scope, SamplePolicy::Period(self.every), false) {
            Ok(link) => {
                self.links.insert(cpu, link);
                Ok(true)
            }
            Err(ProgramError::SyscallError(e)) if e.io_error.raw_os_error() == Some(libc::ENODEV) => {
                Ok(false)
            }
            Err(source) => {
                let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
                Err(CaptureError::PerfEvent {
                    cpu,
                    kind: self.kind.slug(),
                    every: self.every,
                    paranoid: paranoid.map_or_else(|_| "absent".to_owned(), |s| s.trim().to_owned()),
                    source: source.into(),
                })
            }
        }
    }

    fn detach(&mut self, ebpf: &mut Ebpf, cpu: u32) -> Result<(), CaptureError> {
        let Some(link) = self.links.remove(&cpu) else { return Ok(()) };
        let program: &mut PerfEvent = loader::program(ebpf, self.program)?;
        program.detach(link).map_err(|e| CaptureError::attach(self.program, e))
    }

    fn idle(&mut self) {
        self.event = SoftwareEvent::Dummy;
    }
}
