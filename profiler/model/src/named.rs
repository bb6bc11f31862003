//! Events that a user names: tracepoints of the kernel, and events that perf counts.
//!
//! In: `block:block_rq_issue`, `cycles=1000000`, `minor-faults:64`, `r01c4`. Out: what it is to the kernel, and how often it is
//! sampled. The names of perf's events are perf's own (tools/perf/util/parse-events.c, Linux 6.18).

use profiler_ebpf::MAX_NAMED_EVENTS;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Events that may be named at once.
pub const MAX_NAMED: usize = MAX_NAMED_EVENTS as usize;
/// Events that a sample may stand for, at most.
const MOST: u64 = 1_000_000_000_000;
/// Longest part of a tracepoint's name, bytes.
const MAX_PART: usize = 64;

/// What an event is to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSource {
    /// A tracepoint, as tracefs has it: `events/GROUP/NAME`.
    Tracepoint {
        /// The subsystem.
        group: Box<str>,
        /// The tracepoint in it.
        name: Box<str>,
    },
    /// An event of perf's: `type` and `config` of `struct perf_event_attr` (include/uapi/linux/perf_event.h).
    Perf {
        /// The sort of event.
        sort: PerfSort,
        /// Which of them.
        config: u64,
    },
}

/// Sorts of events that perf counts, and the number of each (`enum perf_type_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PerfSort {
    /// The processor's, by names that all processors share.
    Hardware = 0,
    /// The kernel's own.
    Software = 1,
    /// The processor's caches.
    Cache = 3,
    /// The processor's, by its own numbers.
    Raw = 4,
}

/// An event that a user names, and how often it is sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEvent {
    /// The name, as the user has it; the value of the label `event`.
    pub name: Arc<str>,
    /// What the event is to the kernel.
    pub source: EventSource,
    /// A sample each so many events.
    pub every: u64,
}

/// Events of perf's: name, sort, number, and each how many there is a sample unless told.
const PERF: [(&str, PerfSort, u64, u64); 20] = [
    ("cpu-migrations", PerfSort::Software, 4, 1),
    ("minor-faults", PerfSort::Software, 5, 256),
    ("alignment-faults", PerfSort::Software, 7, 1),
    ("emulation-faults", PerfSort::Software, 8, 1),
    ("cgroup-switches", PerfSort::Software, 11, 101),
    ("cycles", PerfSort::Hardware, 0, 10_000_000),
    ("instructions", PerfSort::Hardware, 1, 10_000_000),
    ("cache-references", PerfSort::Hardware, 2, 100_000),
    ("cache-misses", PerfSort::Hardware, 3, 10_000),
    ("branches", PerfSort::Hardware, 4, 1_000_000),
    ("branch-misses", PerfSort::Hardware, 5, 10_000),
    ("bus-cycles", PerfSort::Hardware, 6, 1_000_000),
    ("stalled-cycles-frontend", PerfSort::Hardware, 7, 1_000_000),
    ("stalled-cycles-backend", PerfSort::Hardware, 8, 1_000_000),
    ("ref-cycles", PerfSort::Hardware, 9, 10_000_000),
    // id | operation << 8 | result << 16 (perf_event_open(2)): loads are 0, misses 1.
    ("L1-dcache-load-misses", PerfSort::Cache, 1 << 16, 100_000),
    ("LLC-load-misses", PerfSort::Cache, 2 | 1 << 16, 10_000),
    ("dTLB-load-misses", PerfSort::Cache, 3 | 1 << 16, 10_000),
    ("iTLB-load-misses", PerfSort::Cache, 4 | 1 << 16, 10_000),
    ("branch-load-misses", PerfSort::Cache, 5 | 1 << 16, 10_000),
];

/// Of an event by its processor's number, unless told.
const RAW_EVERY: u64 = 1_000_000;

impl FromStr for NamedEvent {
    type Err = ();

    /// `NAME`, `NAME=N` or `NAME:N`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |every: &str| every.parse().ok().filter(|every| (1..=MOST).contains(every)).ok_or(());
        let (name, every) = match text.split_once('=') {
            Some((name, every)) => (name, Some(number(every)?)),
            None => match text.rsplit_once(':').filter(|(_, last)| is_number(last)) {
                Some((name, every)) => (name, Some(number(every)?)),
                None => (text, None),
            },
        };
        let (source, usual) = source(name).ok_or(())?;
        Ok(Self { name: name.into(), source, every: every.unwrap_or(usual) })
    }
}

impl fmt::Display for NamedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = source(&self.name).map(|(_, usual)| usual);
        if usual == Some(self.every) {
            f.write_str(&self.name)
        } else {
            write!(f, "{}={}", self.name, self.every)
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What a name stands for, and each how many there is a sample unless told.
fn source(name: &str) -> Option<(EventSource, u64)> {
    if let Some((_, sort, config, every)) = PERF.iter().find(|(known, ..)| *known == name) {
        return Some((EventSource::Perf { sort: *sort, config: *config }, *every));
    }
    if let Some(digits) = name.strip_prefix('r')
        && (1..=16).contains(&digits.len())
        && let Ok(config) = u64::from_str_radix(digits, 16)
    {
        return Some((EventSource::Perf { sort: PerfSort::Raw, config }, RAW_EVERY));
    }
    let (group, point) = name.split_once(':')?;
    // perf's modifiers (`cycles:u`) are none of ours.
    if PERF.iter().any(|(known, ..)| *known == group) {
        return None;
    }
    // They become a path below tracefs.
    let is_part = |part: &str| {
        (1..=MAX_PART).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    let tracepoint = EventSource::Tracepoint { group: group.into(), name: point.into() };
    (is_part(group) && is_part(point)).then_some((tracepoint, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<NamedEvent> {
        text.parse().ok()
    }

    #[test]
    fn names_as_perf_has_them() {
        let perf = |text: &str| match of(text)?.source {
            EventSource::Perf { sort, config } => Some((sort, config, of(text)?.every)),
            EventSource::Tracepoint { .. } => None,
        };
        assert_eq!(perf("cycles"), Some((PerfSort::Hardware, 0, 10_000_000)));
        assert_eq!(perf("LLC-load-misses=7"), Some((PerfSort::Cache, 0x1_0002, 7)));
        assert_eq!(perf("cpu-migrations:3"), Some((PerfSort::Software, 4, 3)));
        assert_eq!(perf("r01c4"), Some((PerfSort::Raw, 0x1c4, RAW_EVERY)));
        let names: std::collections::BTreeSet<_> = PERF.iter().map(|(name, ..)| name).collect();
        assert_eq!(names.len(), PERF.len());
    }

    #[test]
    fn tracepoints_have_a_group_and_go_nowhere_else() {
        let tracepoint = EventSource::Tracepoint { group: "block".into(), name: "block_rq_issue".into() };
        for (text, every) in
            [("block:block_rq_issue", 1), ("block:block_rq_issue:10", 10), ("block:block_rq_issue=9", 9)]
        {
            let named = of(text).unwrap();
            assert_eq!(
                (&named.source, named.every, &*named.name),
                (&tracepoint, every, "block:block_rq_issue")
            );
            let usual = every == 1;
            assert_eq!(
                named.to_string(),
                if usual { text.to_owned() } else { format!("block:block_rq_issue={every}") }
            );
        }
        let refused = [
            "",
            "block",
            "block:",
            ":x",
            "a:b:c",
            "../x:y",
            "a:../b",
            "a:b=0",
            "a:b=-1",
            "a:b=1000000000001",
            "a:b=",
            "rx",
            "r",
            "r12345678901234567",
            "cycles:x",
            "cycles=",
        ];
        for text in refused {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
