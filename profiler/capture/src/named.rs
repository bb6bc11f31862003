//! Events that a user names: a [`Source`] each, by the programs of its slot.
//!
//! In: a name, what it is to the kernel, and each how many there is a sample. Out: samples whose records tell the slot. What
//! this host does not have costs that event alone: a fleet has kernels and processors of many kinds.

use super::config::CaptureConfig;
use super::error::CaptureError;
use super::features::HostFeatures;
use super::loader;
use super::source::{PerfSource, Source, SourceState};
use super::tracepoints::{Tracepoint, TracepointSource, too_old, tracefs};
use aya::Ebpf;
use aya::programs::PerfEvent;
use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy};
use emberscope_model::{EventSource, MAX_NAMED, SampleKind};
use std::borrow::Cow;

/// Programs of each slot: of a tracepoint, and of an event that perf counts.
const SLOTS: [[&str; 2]; MAX_NAMED] = [
    ["tracepoint_0", "event_0"],
    ["tracepoint_1", "event_1"],
    ["tracepoint_2", "event_2"],
    ["tracepoint_3", "event_3"],
];

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
        let host = too_old(features).map(Cow::Borrowed);
        match &event.source {
            EventSource::Tracepoint { group, name } => {
                let lacks = host.or_else(|| no_tracepoint(group, name).map(Cow::Owned));
                let of = SourceState {
                    kind: SampleKind::Event,
                    event: Some(event.name.clone()),
                    every: event.every,
                    cpus: 0,
                };
                let (program, group, name) = (tracepoint, group.clone(), name.clone());
                let points = vec![Tracepoint { program, group, name }];
                let source = TracepointSource::load(ebpf, (features, programs), of, points, lacks)?;
                sources.push(Box::new(source));
            }
            EventSource::Perf { sort, config } => {
                let attr = PerfEventConfig::Pmu { pmu_type: *sort as u32, config: *config };
                let mut lacks = host;
                if lacks.is_none() {
                    let program: &mut PerfEvent = loader::program(ebpf, counter)?;
                    program.load().map_err(|e| CaptureError::load(&features.kernel, counter, e))?;
                    programs.push(counter);
                    lacks = not_counted(program, attr, event.every).map(Cow::Owned);
                }
                sources.push(Box::new(PerfSource::named(event, attr, counter, lacks)));
            }
        }
    }
    Ok(sources)
}

/// Why there is no such tracepoint.
fn no_tracepoint(group: &str, name: &str) -> Option<String> {
    let events = match tracefs() {
        Ok(events) => events,
        Err(why) => return Some(why),
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
