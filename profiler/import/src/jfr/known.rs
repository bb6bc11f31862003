//! The types of events that matter, of a chunk's metadata.

use super::metadata::Types;
use emberscope_model::SampleKind;
use std::collections::HashMap;

/// Events that are samples of something else.
const OTHERS: [&str; 8] = [
    "jdk.JavaMonitorWait",
    "jdk.OldObjectSample",
    "profiler.LiveObject",
    "profiler.Malloc",
    "profiler.Free",
    "profiler.NativeLock",
    "profiler.MethodTrace",
    "jdk.MethodTrace",
];

/// A type of events that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Execution,
    CpuTime,
    Native,
    Wall,
    MonitorEnter,
    Park,
    /// In a new buffer, or outside of one.
    Allocation,
    AllocationSample,
    /// One of ours, of a kind that the JDK has no event for.
    Own(SampleKind),
    Lost,
    Other(&'static str),
}

/// The types that matter, by number; and that of settings.
pub struct Numbers {
    pub events: HashMap<i64, Event>,
    pub setting: Option<i64>,
}

impl Numbers {
    /// Those that the metadata have.
    pub fn of(types: &Types) -> Self {
        let known = [
            ("jdk.ExecutionSample", Event::Execution),
            ("jdk.CPUTimeSample", Event::CpuTime),
            ("jdk.NativeMethodSample", Event::Native),
            ("profiler.WallClockSample", Event::Wall),
            ("jdk.JavaMonitorEnter", Event::MonitorEnter),
            ("jdk.ThreadPark", Event::Park),
            ("jdk.ObjectAllocationInNewTLAB", Event::Allocation),
            ("jdk.ObjectAllocationOutsideTLAB", Event::Allocation),
            ("jdk.ObjectAllocationSample", Event::AllocationSample),
            ("jdk.CPUTimeSamplesLost", Event::Lost),
        ];
        let known = known.map(|(name, event)| (name.to_owned(), event)).into_iter();
        let others = OTHERS.iter().map(|name| ((*name).to_owned(), Event::Other(name)));
        let own =
            SampleKind::ASKED.iter().map(|kind| (emberscope_export::jfr::event(*kind), Event::Own(*kind)));
        let own = own.filter(|(name, _)| name.starts_with(OWN));
        let events = known.chain(others).chain(own);
        let events = events.filter_map(|(name, event)| Some((types.number(&name)?, event))).collect();
        Self { events, setting: types.number("jdk.ActiveSetting") }
    }
}

/// How names of our own events begin.
const OWN: &str = "emberscope.";
