//! What is gathered of a recording's chunks: samples, counts of what was met, and what is said of it.

use super::super::Events;
use super::super::gather::Gather;
use std::collections::BTreeMap;

/// Kinds of samples that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Execution,
    CpuTime,
    Native,
    WallRunnable,
    WallSleeping,
}

impl Counted {
    pub const ALL: &'static [Self] =
        &[Self::Execution, Self::CpuTime, Self::Native, Self::WallRunnable, Self::WallSleeping];

    /// Whether it is one of those that are asked for.
    pub fn is_asked_by(self, events: Events) -> bool {
        match events {
            Events::Cpu => matches!(self, Self::Execution | Self::CpuTime),
            Events::Native => self == Self::Native,
            Events::Wall => self == Self::WallRunnable,
        }
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
            Self::WallSleeping => "profiler.WallClockSample (threads that slept)",
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
    /// Samples that are asked for, but `jdk.CPUTimeSample`.
    pub main: Gather,
    /// Samples of `jdk.CPUTimeSample`, the better ones where there are any.
    pub cpu_time: Gather,
    pub counts: Counts,
    /// Who sampled, and how often.
    pub by: Vec<String>,
    pub remarks: Vec<String>,
    /// Samples that the JVM lost.
    pub lost: u64,
}

impl Recording {
    pub fn new(main: Gather, cpu_time: Gather) -> Self {
        let (by, remarks) = (Vec::new(), Vec::new());
        Self { main, cpu_time, counts: Counts::default(), by, remarks, lost: 0 }
    }

    pub fn tell(list: &mut Vec<String>, text: String) {
        // A recording whose settings change all the time is not told in full.
        if list.len() < 4 && !list.contains(&text) {
            list.push(text);
        }
    }
}
