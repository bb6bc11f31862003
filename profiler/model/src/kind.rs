//! The kinds of samples. All that differs between one kind and another is said here, once: the store, the answers, the
//! exports and the page ask [`SampleKind::facts`].
//!
//! In: nothing. Out: constants. A kind that is added here is in every query, answer and file; what takes its samples
//! is a source in `capture`. docs/internals.md has the steps.

use super::sampling_error;
use profiler_ebpf::SampleKindTag;

/// What a sample counts. Every kind has a unit of weight; nothing assumes 99 Hz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SampleKind {
    /// Time on a CPU.
    #[default]
    Cpu,
    /// Faults of memory: the first touch of a page, or one that must be read or copied.
    PageFaults,
    /// Time in which a thread stood still: it waited for something, and not for a CPU.
    OffCpu,
    /// Memory that the threads of a JVM took from its heap.
    Alloc,
    /// Time on a CPU and time in which a thread stood still. No sample is of this kind: it is asked for, and holds
    /// others.
    Wall,
}

/// A value that samples have: a sample type and its unit, as pprof and Pyroscope name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueFacts {
    /// Name of the sample type.
    pub name: &'static str,
    /// Unit of its values.
    pub unit: &'static str,
}

/// How many samples: every kind has it.
pub const COUNT: ValueFacts = ValueFacts { name: "samples", unit: "count" };

/// How a weight is shown to people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Name of the unit in which the weight is shown.
    pub unit: &'static str,
    /// How many units of weight are one of that unit.
    pub of: f64,
}

/// What is to be known of a kind.
#[derive(Debug)]
pub struct KindFacts {
    /// Name in queries (`type=cpu`), settings, metrics and the store.
    pub slug: &'static str,
    /// Number in the kernel's records; None where no sample is of this kind.
    pub tag: Option<SampleKindTag>,
    /// The kinds whose samples an answer of this kind holds: their weights have one unit.
    pub holds: &'static [SampleKind],
    /// Words for people, after `of all`: `CPU time`.
    pub title: &'static str,
    /// The weight, as pprof and Pyroscope name it.
    pub weight: ValueFacts,
    /// What a sample is taken every so much of, as pprof and Pyroscope name it.
    pub period: ValueFacts,
    /// How often samples are taken.
    pub pace: Pace,
    /// Pyroscope's name of a profile of this kind: the first part of its profile types.
    pub profile: &'static str,
    /// Name of the weight's unit in queries (`unit=ns`) and answers.
    pub unit: &'static str,
    /// Head of a column of amounts: `CPU`.
    pub column: &'static str,
    /// Key of an amount in answers, and its unit.
    pub amount: Amount,
    /// How a picture shows weights.
    pub picture: Scale,
    /// Relative standard error of a sum of weights that rests on so many samples; None of none. Where all weigh the
    /// same: [`sampling_error`].
    pub error: fn(u64) -> Option<f64>,
    /// Colour of the largest band of sums over time (OKLCH: hue in degrees, chroma, lightness).
    pub colour: [f64; 3],
    /// Sentence for people, where a selection has no samples of the kind.
    pub none: &'static str,
}

/// How often samples of a kind are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// So many a second of what is sampled, by the setting for all such kinds: the weight is time.
    Hz,
    /// One sample each so many units of weight, unless the settings say otherwise.
    Every(u64),
}

impl Pace {
    /// Units of weight of which one sample is taken, unless the settings say otherwise; None: by time.
    pub const fn usual(self) -> Option<u64> {
        match self {
            Self::Hz => None,
            Self::Every(units) => Some(units),
        }
    }
}

/// A sum of weights in an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    /// Key of the amount in JSON: `cpu_seconds`.
    pub key: &'static str,
    /// How many units of weight are one of the amount; 1 where that is a whole number.
    pub of: u64,
}

impl SampleKind {
    /// All kinds of which there are samples. Blocks and journals name kinds by their slugs; the order is that of
    /// answers.
    pub const ALL: &'static [Self] = &[Self::Cpu, Self::PageFaults, Self::OffCpu, Self::Alloc];
    /// All kinds that can be asked for.
    pub const ASKED: &'static [Self] = &[Self::Cpu, Self::PageFaults, Self::OffCpu, Self::Alloc, Self::Wall];

    /// All that differs between kinds.
    pub const fn facts(self) -> &'static KindFacts {
        match self {
            Self::Cpu => &CPU,
            Self::PageFaults => &PAGE_FAULTS,
            Self::OffCpu => &OFF_CPU,
            Self::Alloc => &ALLOC,
            Self::Wall => &WALL,
        }
    }
    /// Name in queries (`type=cpu`) and the store.
    pub const fn slug(self) -> &'static str {
        self.facts().slug
    }
    /// The kind of this name, of which there are samples.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.slug() == slug)
    }
    /// The kind of this name, which can be asked for: with `_` for `-` as well.
    pub fn asked(slug: &str) -> Option<Self> {
        let same = |name: &str| name.bytes().eq(slug.bytes().map(|b| if b == b'_' { b'-' } else { b }));
        Self::ASKED.iter().copied().find(|kind| same(kind.slug()))
    }
    /// The kind with this number in the kernel's records.
    pub fn from_tag(tag: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.facts().tag.is_some_and(|of| of as u16 == tag))
    }
    /// Whether an answer of this kind holds samples of the kind `sampled`.
    pub fn holds(self, sampled: Self) -> bool {
        self.facts().holds.contains(&sampled)
    }
    /// Whether all samples of the kind weigh the same: then they may as well be counted.
    pub fn is_even(self) -> bool {
        self.facts().pace == Pace::Hz
    }
}

static CPU: KindFacts = KindFacts {
    slug: "cpu",
    tag: Some(SampleKindTag::Cpu),
    holds: &[SampleKind::Cpu],
    title: "CPU time",
    weight: ValueFacts { name: "cpu", unit: "nanoseconds" },
    period: ValueFacts { name: "cpu", unit: "nanoseconds" },
    pace: Pace::Hz,
    profile: "process_cpu",
    unit: "ns",
    column: "CPU",
    amount: Amount { key: "cpu_seconds", of: 1_000_000_000 },
    picture: Scale { unit: "ms", of: 1e6 },
    error: sampling_error,
    colour: [45.0, 0.15, 0.72],
    none: "What is selected did not run on a CPU in this time: it slept, waited, or was elsewhere.",
};

/// perf's software event (kernel/events/core.c, PERF_COUNT_SW_PAGE_FAULTS): minor and major faults of user memory, in
/// user mode and in system calls. With 4 KB pages 256 are a MB that was touched first.
static PAGE_FAULTS: KindFacts = KindFacts {
    slug: "page-faults",
    tag: Some(SampleKindTag::PageFaults),
    holds: &[SampleKind::PageFaults],
    title: "page faults",
    weight: ValueFacts { name: "page_faults", unit: "count" },
    period: ValueFacts { name: "page_faults", unit: "count" },
    pace: Pace::Every(256),
    profile: "page_faults",
    unit: "faults",
    column: "FAULTS",
    amount: Amount { key: "page_faults", of: 1 },
    picture: Scale { unit: "faults", of: 1.0 },
    error: sampling_error,
    colour: [160.0, 0.12, 0.7],
    none: "What is selected touched no new memory in this time, or page faults are not sampled: --events cpu,page-faults.",
};

/// Waits of threads that run a task, each as long as it lasted (profiler-ebpf, `waiter.rs`): amounts are exact, and
/// what is estimated is which of a place's stacks they belong to. In a place they hardly differ (same system call,
/// same depth), so that 20 stacks a second of a thread that waits all the time do, and its walks cost 1/5,000 of a
/// CPU.
static OFF_CPU: KindFacts = KindFacts {
    slug: "off-cpu",
    tag: Some(SampleKindTag::OffCpu),
    holds: &[SampleKind::OffCpu],
    title: "waiting",
    weight: ValueFacts { name: "off_cpu", unit: "nanoseconds" },
    period: ValueFacts { name: "off_cpu", unit: "nanoseconds" },
    pace: Pace::Every(50_000_000),
    profile: "off_cpu",
    unit: "ns",
    column: "WAITED",
    amount: Amount { key: "off_cpu_seconds", of: 1_000_000_000 },
    picture: Scale { unit: "ms", of: 1e6 },
    error: sampling_error,
    colour: [250.0, 0.12, 0.7],
    none: "What is selected did not wait in this time, or waits are not sampled: --events cpu,off-cpu. Threads that run a task are.",
};

/// What HotSpot's AllocTracer reports: of a new thread-local buffer (TLAB) all its bytes, by the object that did not
/// fit into the one before; of an object outside of one its own. Samples weigh a period or, where an allocation is
/// larger, what it is (profiler-ebpf, `allocation.rs`), so that the error stated is the most that it can be. Named as
/// Go's profiles are, which pprof and Pyroscope know.
static ALLOC: KindFacts = KindFacts {
    slug: "alloc",
    tag: Some(SampleKindTag::Alloc),
    holds: &[SampleKind::Alloc],
    title: "allocated memory",
    weight: ValueFacts { name: "alloc_space", unit: "bytes" },
    period: ValueFacts { name: "space", unit: "bytes" },
    pace: Pace::Every(512 << 10),
    profile: "memory",
    unit: "bytes",
    column: "ALLOCATED",
    amount: Amount { key: "allocated_bytes", of: 1 },
    picture: Scale { unit: "MiB", of: 1_048_576.0 },
    error: sampling_error,
    colour: [95.0, 0.12, 0.74],
    none: "What is selected allocated nothing in JVMs in this time, or allocations are not sampled: --events cpu,alloc. Status tells JVMs that cannot be.",
};

/// What async-profiler calls `wall`, for threads that run a task; of others it holds their time on a CPU. The time in
/// which a thread waited for a CPU has no stack: it is the ledger's, and a picture has it as a frame of its own.
static WALL: KindFacts = KindFacts {
    slug: "wall",
    tag: None,
    holds: &[SampleKind::Cpu, SampleKind::OffCpu],
    title: "wall time",
    weight: ValueFacts { name: "wall", unit: "nanoseconds" },
    period: ValueFacts { name: "wall", unit: "nanoseconds" },
    pace: Pace::Every(10_000_000),
    profile: "wall",
    unit: "ns",
    column: "WALL",
    amount: Amount { key: "wall_seconds", of: 1_000_000_000 },
    picture: Scale { unit: "ms", of: 1e6 },
    error: sampling_error,
    colour: [300.0, 0.1, 0.7],
    none: "What is selected neither ran nor, as far as waits are sampled, waited in this time: --events cpu,off-cpu.",
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn kinds_are_told_apart_by_every_name() {
        let names = |of: fn(&KindFacts) -> String| -> usize {
            SampleKind::ASKED.iter().map(|kind| of(kind.facts())).collect::<BTreeSet<_>>().len()
        };
        for of in [
            |facts: &KindFacts| facts.slug.to_owned(),
            |facts: &KindFacts| facts.tag.map_or(0, |tag| tag as u16).to_string(),
            |facts: &KindFacts| facts.title.to_owned(),
            |facts: &KindFacts| facts.amount.key.to_owned(),
            |facts: &KindFacts| format!("{}:{}:{}", facts.profile, facts.weight.name, facts.weight.unit),
        ] {
            assert_eq!(names(of), SampleKind::ASKED.len());
        }
        for &kind in SampleKind::ALL {
            assert_eq!(SampleKind::from_slug(kind.slug()), Some(kind));
            assert_eq!(SampleKind::from_tag(kind.facts().tag.unwrap() as u16), Some(kind));
            assert_eq!(kind.facts().holds, [kind]);
            assert_eq!((kind.facts().error)(0), None);
            assert_eq!((kind.facts().error)(400), Some(0.05));
        }
        assert_eq!((SampleKind::from_slug("wall"), SampleKind::from_tag(0)), (None, None));
        assert_eq!(SampleKind::asked("off_cpu"), Some(SampleKind::OffCpu));
        assert_eq!((SampleKind::asked("wall"), SampleKind::asked("wal")), (Some(SampleKind::Wall), None));
        let wall = SampleKind::Wall;
        assert!(
            wall.holds(SampleKind::Cpu)
                && wall.holds(SampleKind::OffCpu)
                && !wall.holds(SampleKind::PageFaults)
        );
        for &kind in SampleKind::ASKED {
            assert!(kind.facts().holds.iter().all(|of| of.facts().weight.unit == kind.facts().weight.unit));
        }
    }
}
