//! Events that a user names: a [`Source`] each, by the programs of its slot.
//!
//! In: a name, what it is to the kernel, and each how many there is a sample. Out: samples whose records tell the slot. A
//! tracepoint's program runs wherever the tracepoint is met, so that it is attached once, while any CPU is watched. What this
//! host does not have costs that event alone: a fleet has kernels and processors of many kinds.

use super::config::CaptureConfig;
use super::error::CaptureError;
use super::features::HostFeatures;
use super::loader;
use super::source::{PerfSource, Source, SourceState};
use aya::Ebpf;
use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy};
use aya::programs::trace_point::TracePointLinkId;
use aya::programs::{PerfEvent, TracePoint};
use emberscope_model::{EventSource, MAX_NAMED, NamedEvent, SampleKind};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Programs of each slot: of a tracepoint, and of an event that perf counts.
const SLOTS: [[&str; 2]; MAX_NAMED] = [
    ["tracepoint_0", "event_0"],
    ["tracepoint_1", "event_1"],
    ["tracepoint_2", "event_2"],
    ["tracepoint_3", "event_3"],
];

/// Where tracefs is, the first that is there.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Loads the programs of the named events that this host has, and gives a source for each event.
///
/// # Errors
/// [`CaptureError::Refused`], [`CaptureError::Program`] or [`CaptureError::Missing`]: a program cannot be loaded.
pub(super) fn sources(
    ebpf: &mut Ebpf,
    (config, features): (&CaptureConfig, &HostFeatures),
    programs: &mut Vec<&'static str>,
) -> Result<Vec<Box<dyn Source>>, CaptureError> {
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    for (event, [tracepoint, counter]) in config.named.iter().zip(SLOTS) {
        let host = old(features);
        let refused = |program, e| CaptureError::load(&features.kernel, program, e);
        match &event.source {
            EventSource::Tracepoint { group, name } => {
                let lacks = host.or_else(|| no_tracepoint(group, name).map(Cow::Owned));
                if lacks.is_none() {
                    let program: &mut TracePoint = loader::program(ebpf, tracepoint)?;
                    program.load().map_err(|e| refused(tracepoint, e))?;
                    programs.push(tracepoint);
                }
                let event = event.clone();
                sources.push(Box::new(Tracepoint {
                    event,
                    program: tracepoint,
                    lacks,
                    cpus: BTreeSet::new(),
                    link: None,
                }));
            }
            EventSource::Perf { sort, config } => {
                let attr = PerfEventConfig::Pmu { pmu_type: *sort as u32, config: *config };
                let mut lacks = host;
                if lacks.is_none() {
                    let program: &mut PerfEvent = loader::program(ebpf, counter)?;
                    program.load().map_err(|e| refused(counter, e))?;
                    programs.push(counter);
                    lacks = not_counted(program, attr, event.every).map(Cow::Owned);
                }
                sources.push(Box::new(PerfSource::named(event, attr, counter, lacks)));
            }
        }
    }
    Ok(sources)
}

/// What a kernel lacks that is too old for walks from a tracepoint.
pub(super) fn old(features: &HostFeatures) -> Option<Cow<'static, str>> {
    let needed = features.task_pt_regs && features.bpf_loop;
    (!needed)
        .then_some("bpf_task_pt_regs and bpf_loop: Linux 5.17 with CONFIG_DEBUG_INFO_BTF brings them".into())
}

/// Where tracefs has its events.
pub(super) fn tracefs() -> Option<PathBuf> {
    TRACEFS.into_iter().map(|root| Path::new(root).join("events")).find(|events| events.is_dir())
}

/// Why there is no such tracepoint.
fn no_tracepoint(group: &str, name: &str) -> Option<String> {
    let Some(events) = tracefs() else {
        return Some(format!("there is no tracefs: mount it at {}", TRACEFS[0]));
    };
    let found = events.join(group).join(name).join("id").exists();
    (!found).then(|| {
        format!("there is no such tracepoint: {} lists those of its group", events.join(group).display())
    })
}

/// Why perf does not count an event: it is tried on a CPU.
fn not_counted(program: &mut PerfEvent, attr: PerfEventConfig, every: u64) -> Option<String> {
    let cpu = aya::util::online_cpus().ok()?.first().copied()?;
    let scope = PerfEventScope::AllProcessesOneCpu { cpu };
    let error = match program.attach(attr, scope, SamplePolicy::Period(every), false) {
        Ok(link) => program.detach(link).err()?,
        Err(error) => error,
    };
    let cause: &dyn std::error::Error = &error;
    Some(format!(
        "perf does not count it here ({}): virtual machines often have no counters of the processor",
        cause.source().map_or_else(|| cause.to_string(), ToString::to_string)
    ))
}

/// A tracepoint whose program samples.
struct Tracepoint {
    event: NamedEvent,
    program: &'static str,
    lacks: Option<Cow<'static, str>>,
    cpus: BTreeSet<u32>,
    link: Option<TracePointLinkId>,
}

impl Tracepoint {
    /// Puts the program on the tracepoint, or takes it off.
    fn set(&mut self, ebpf: &mut Ebpf) -> Result<(), CaptureError> {
        let error = |e| CaptureError::attach(self.program, e);
        if self.cpus.is_empty() {
            let Some(link) = self.link.take() else { return Ok(()) };
            let program: &mut TracePoint = loader::program(ebpf, self.program)?;
            return program.detach(link).map_err(error);
        }
        if self.link.is_none()
            && let EventSource::Tracepoint { group, name } = &self.event.source
        {
            let program: &mut TracePoint = loader::program(ebpf, self.program)?;
            self.link = Some(program.attach(group, name).map_err(error)?);
        }
        Ok(())
    }
}

impl Source for Tracepoint {
    fn state(&self) -> SourceState {
        SourceState {
            kind: SampleKind::Event,
            event: Some(self.event.name.clone()),
            every: self.event.every,
            cpus: self.cpus.len(),
        }
    }

    fn lacks(&self, _host: &HostFeatures) -> Option<Cow<'static, str>> {
        self.lacks.clone()
    }

    fn attach(&mut self, ebpf: &mut Ebpf, cpu: u32) -> Result<bool, CaptureError> {
        self.cpus.insert(cpu);
        self.set(ebpf).map(|()| true)
    }

    fn detach(&mut self, ebpf: &mut Ebpf, cpu: u32) -> Result<(), CaptureError> {
        self.cpus.remove(&cpu);
        self.set(ebpf)
    }
}
