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
use emberscope_model::{NamedEvent, SampleKind};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a source is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceState {
    /// The kind that the source samples.
    pub kind: SampleKind,
    /// The event, where a user named one.
    pub event: Option<Arc<str>>,
    /// A sample stands for so many units of the kind's weight.
    pub every: u64,
    /// CPUs that the source watches.
    pub cpus: usize,
}

/// What was asked for and cannot be sampled here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// The kind.
    pub kind: SampleKind,
    /// The event, where a user named one.
    pub event: Option<Arc<str>>,
    /// What this host lacks, and what mends that.
    pub what: Cow<'static, str>,
}

impl Lacking {
    /// What cannot be sampled, as it was asked for.
    pub fn name(&self) -> &str {
        self.event.as_deref().unwrap_or(self.kind.slug())
    }
}

/// Takes samples of a kind.
pub(super) trait Source: Send {
    /// What the source is doing.
    fn state(&self) -> SourceState;
    /// What this host lacks for the source, and what mends that.
    fn lacks(&self, host: &HostFeatures) -> Option<Cow<'static, str>>;
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
    /// The event's name, where a user named it, and what this host lacks for it.
    named: Option<(Arc<str>, Option<Cow<'static, str>>)>,
    event: PerfEventConfig,
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
        SampleKind::Event
        | SampleKind::BlockIo
        | SampleKind::OffCpu
        | SampleKind::Lock
        | SampleKind::Contentions
        | SampleKind::Alloc
        | SampleKind::AllocObjects
        | SampleKind::Wall => {
            return None;
        }
    };
    Some(event)
}

impl PerfSource {
    /// The source, on no CPU yet. `program` is loaded.
    pub fn new(kind: SampleKind, event: SoftwareEvent, every: u64, program: &'static str) -> Self {
        let event = PerfEventConfig::Software(event);
        Self { kind, named: None, event, every, program, links: BTreeMap::new() }
    }

    /// The source of an event that a user named, on no CPU yet. `program` is loaded, unless this host `lacks` something.
    pub fn named(
        event: &NamedEvent,
        attr: PerfEventConfig,
        program: &'static str,
        lacks: Option<Cow<'static, str>>,
    ) -> Self {
        let named = Some((event.name.clone(), lacks));
        Self {
            kind: SampleKind::Event,
            named,
            event: attr,
            every: event.every,
            program,
            links: BTreeMap::new(),
        }
    }

    /// What the event is called.
    fn name(&self) -> &str {
        self.named.as_ref().map_or(self.kind.slug(), |(name, _)| name)
    }
}

impl Source for PerfSource {
    fn state(&self) -> SourceState {
        let event = self.named.as_ref().map(|(name, _)| name.clone());
        SourceState { kind: self.kind, event, every: self.every, cpus: self.links.len() }
    }

    fn lacks(&self, _host: &HostFeatures) -> Option<Cow<'static, str>> {
        // The kinds' software events are in every kernel that has perf events at all, which loading checks.
        self.named.as_ref().and_then(|(_, lacks)| lacks.clone())
    }

    fn attach(&mut self, ebpf: &mut Ebpf, cpu: u32) -> Result<bool, CaptureError> {
        self.detach(ebpf, cpu)?;
        let program: &mut PerfEvent = loader::program(ebpf, self.program)?;
        let scope = PerfEventScope::AllProcessesOneCpu { cpu };
        match program.attach(self.event, scope, SamplePolicy::Period(self.every), false) {
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
                    kind: self.name().to_owned(),
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
        self.event = PerfEventConfig::Software(SoftwareEvent::Dummy);
    }
}
