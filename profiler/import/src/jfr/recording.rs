//! What is gathered of a recording's chunks: samples, counts of what was met, and what is said of it.

use super::super::Events;
use super::super::gather::Gather;
use emberscope_model::SampleKind;
use std::collections::BTreeMap;

/// Kinds of samples that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Execution,
    CpuTime,
    Native,
    WallRunnable,
    WallSleeping,
    MonitorEnter,
    Park,
    Allocation,
    AllocationSample,
    Own,
}

impl Counted {
    pub const ALL: &'static [Self] = &[
        Self::Execution,
        Self::CpuTime,
        Self::Native,
        Self::WallRunnable,
        Self::WallSleeping,
        Self::MonitorEnter,
        Self::Park,
        Self::Allocation,
        Self::AllocationSample,
        Self::Own,
    ];

    /// Whether it is one of those that are asked for. Of our own events only those that are asked for are told from others.
    pub fn is_asked_by(self, events: Events) -> bool {
        matches!(
            (events, self),
            (Events::Cpu, Self::Execution | Self::CpuTime)
                | (Events::Native, Self::Native)
                | (Events::Wall, Self::WallRunnable)
                | (Events::Kind(SampleKind::OffCpu), Self::WallSleeping)
                | (Events::Kind(SampleKind::Alloc), Self::Allocation | Self::AllocationSample)
                | (Events::Lock, Self::MonitorEnter | Self::Park)
                | (Events::Kind(_) | Events::Lock, Self::Own)
        )
    }

    /// Whether others that are asked for are left out where there are any of these: they cover the same.
    pub const fn is_better(self) -> bool {
        matches!(self, Self::CpuTime | Self::AllocationSample)
    }

    /// The event's name, as the JDK or async-profiler has it.
    pub fn event(self) -> &'static str {
        self.says().split(' ').next().unwrap_or_default()
    }

    /// The event's name, and for which flag it is taken, in messages.
    pub const fn says(self) -> &'static str {
        match self {
            Self::Execution => "jdk.ExecutionSample",
            Self::CpuTime => "jdk.CPUTimeSample",
            Self::Native => {
                "jdk.NativeMethodSample (threads in native methods, which may wait: --events native)"
            }
            Self::WallRunnable => "profiler.WallClockSample (threads that could run: --events wall)",
            Self::WallSleeping => "profiler.WallClockSample (threads that slept: --events off-cpu)",
            Self::MonitorEnter => "jdk.JavaMonitorEnter (--events lock)",
            Self::Park => "jdk.ThreadPark of locks (--events lock)",
            Self::Allocation => {
                "jdk.ObjectAllocationInNewTLAB and jdk.ObjectAllocationOutsideTLAB (--events alloc)"
            }
            Self::AllocationSample => "jdk.ObjectAllocationSample (--events alloc)",
            Self::Own => "Emberscope's own event",
        }
    }
}

/// Counts of the samples that were met, taken or not.
#[derive(Debug, Default)]
pub struct Counts {
    known: [u64; Counted::ALL.len()],
    others: BTreeMap<String, u64>,
}

impl Counts {
    pub fn get(&self, counted: Counted) -> u64 {
        self.known.get(counted as usize).copied().unwrap_or_default()
    }
    pub fn add(&mut self, counted: Counted, count: u64) {
        if let Some(sum) = self.known.get_mut(counted as usize) {
            *sum = sum.saturating_add(count);
        }
    }
    /// One more sample of something else.
    pub fn add_other(&mut self, what: &str) {
        match self.others.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.others.insert(what.to_owned(), 1)),
        }
    }
    pub fn others(&self) -> impl Iterator<Item = (String, u64)> {
        self.others.iter().map(|(what, count)| (what.clone(), *count))
    }
}

/// What was read of a recording.
#[derive(Debug)]
pub struct Recording {
    /// Samples that are asked for, but the better ones.
    pub main: Gather,
    /// Those that are [better](Counted::is_better) where there are any.
    pub better: Gather,
    pub counts: Counts,
    /// Who sampled, and how often.
    pub by: Vec<String>,
    pub remarks: Vec<String>,
    /// Samples that the JVM lost.
    pub lost: u64,
}

impl Recording {
    pub fn new(main: Gather, better: Gather) -> Self {
        let (by, remarks) = (Vec::new(), Vec::new());
        Self { main, better, counts: Counts::default(), by, remarks, lost: 0 }
    }

    pub fn tell(list: &mut Vec<String>, text: String) {
        // A recording whose settings change all the time is not told in full.
        if list.len() < 4 && !list.contains(&text) {
            list.push(text);
        }
    }
}
