//! The kinds of samples. All that differs between one kind and another is said here, once: the store, the answers, the
//! exports and the page ask [`SampleKind::facts`].
//!
//! In: nothing. Out: constants. A kind that is added here is in every query, answer and file; what takes its samples
//! is a source in `capture`. docs/internals.md has the steps.

mod table;

use super::WaitReason;
use profiler_ebpf::SampleKindTag;
use table::{
    ALLOC, ALLOC_OBJECTS, BLOCK_IO, CONTENTIONS, CPU, EVENT, LOCK, MAJOR_FAULTS, OFF_CPU, PAGE_FAULTS,
    SWITCHES, WALL,
};

/// What a sample counts. Every kind has a unit of weight; nothing assumes 99 Hz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SampleKind {
    /// Time on a CPU.
    #[default]
    Cpu,
    /// Faults of memory: the first touch of a page, or one that must be read or copied.
    PageFaults,
    /// Those of them for which something was read, from a file or from swap.
    MajorFaults,
    /// Threads that left a CPU: they waited, or another had its turn.
    Switches,
    /// Events that a user named ([`super::NamedEvent`]): the label `event` tells which.
    Event,
    /// Time in which requests of disks were out, by who sent them off. The label `event` tells the disk and which way.
    BlockIo,
    /// Time in which a thread stood still: it waited for something, and not for a CPU.
    OffCpu,
    /// Waits for monitors and locks alone. No sample is of this kind: it is asked for, and holds waits.
    Lock,
    /// How often threads waited for monitors and locks. Made of waits.
    Contentions,
    /// Memory that the threads of a JVM took from its heap.
    Alloc,
    /// Objects that the threads of a JVM made. Made of allocations.
    AllocObjects,
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
    /// Number in the kernel's records; None where no record is of this kind.
    pub tag: Option<SampleKindTag>,
    /// The kind whose samples the daemon makes these of, which count something else of the same; None of all others.
    pub made_of: Option<SampleKind>,
    /// The kinds whose samples an answer of this kind holds: their weights have one unit.
    pub holds: &'static [SampleKind],
    /// Of waits those for this reason alone; None: of any.
    pub reason: Option<WaitReason>,
    /// Words for people, after `of all`: `CPU time`.
    pub title: &'static str,
    /// The weight, as pprof and Pyroscope name it.
    pub weight: ValueFacts,
    /// What a sample is taken every so much of, as pprof and Pyroscope name it.
    pub period: ValueFacts,
    /// How often samples are taken.
    pub pace: Pace,
    /// What a sample weighs was measured, a length of time or a size, and is no multiple of a period: stored to three digits.
    pub measured: bool,
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
    /// How a picture shows weights that are rounded to whole numbers.
    pub whole: Scale,
    /// Relative standard error of a sum of weights that rests on so many samples; None of none. Where all weigh the
    /// same: [`super::sampling_error`].
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
    /// One sample each so many units of weight, unless the settings say otherwise. Where the samples are made of another
    /// kind's, of that one's weight.
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
    pub const ALL: &'static [Self] = &[
        Self::Cpu,
        Self::PageFaults,
        Self::MajorFaults,
        Self::Switches,
        Self::Event,
        Self::BlockIo,
        Self::OffCpu,
        Self::Contentions,
        Self::Alloc,
        Self::AllocObjects,
    ];
    /// Those of which the kernel takes samples: the others are made of these.
    pub const TAKEN: &'static [Self] = &[
        Self::Cpu,
        Self::PageFaults,
        Self::MajorFaults,
        Self::Switches,
        Self::Event,
        Self::BlockIo,
        Self::OffCpu,
        Self::Alloc,
    ];
    /// All kinds that can be asked for.
    pub const ASKED: &'static [Self] = &[
        Self::Cpu,
        Self::PageFaults,
        Self::MajorFaults,
        Self::Switches,
        Self::Event,
        Self::BlockIo,
        Self::OffCpu,
        Self::Lock,
        Self::Contentions,
        Self::Alloc,
        Self::AllocObjects,
        Self::Wall,
    ];

    /// All that differs between kinds.
    pub const fn facts(self) -> &'static KindFacts {
        match self {
            Self::Cpu => &CPU,
            Self::PageFaults => &PAGE_FAULTS,
            Self::MajorFaults => &MAJOR_FAULTS,
            Self::Switches => &SWITCHES,
            Self::Event => &EVENT,
            Self::BlockIo => &BLOCK_IO,
            Self::OffCpu => &OFF_CPU,
            Self::Lock => &LOCK,
            Self::Contentions => &CONTENTIONS,
            Self::Alloc => &ALLOC,
            Self::AllocObjects => &ALLOC_OBJECTS,
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
        Self::TAKEN.iter().copied().find(|kind| kind.facts().tag.is_some_and(|of| of as u16 == tag))
    }
    /// The kind that is made of samples of this one.
    pub fn derived(self) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.facts().made_of == Some(self))
    }
    /// The kind of which samples are taken for this one: itself, unless it is made of another.
    pub fn taken(self) -> Self {
        self.facts().made_of.unwrap_or(self)
    }
    /// Whether an answer of this kind holds samples of the kind `sampled`.
    pub fn holds(self, sampled: Self) -> bool {
        self.facts().holds.contains(&sampled)
    }
    /// Whether the weight is a time, in nanoseconds.
    pub fn is_time(self) -> bool {
        self.facts().unit == CPU.unit
    }
    /// Whether an answer of this kind rests on samples of the kind `taken`.
    pub fn needs(self, taken: Self) -> bool {
        self.facts().holds.iter().any(|of| of.taken() == taken)
    }
    /// Whether all samples of the kind weigh the same: then they may as well be counted.
    pub fn is_even(self) -> bool {
        self.facts().pace == Pace::Hz
    }
}

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
            |facts: &KindFacts| facts.tag.map_or(facts.slug.to_owned(), |tag| (tag as u16).to_string()),
            |facts: &KindFacts| facts.title.to_owned(),
            |facts: &KindFacts| facts.amount.key.to_owned(),
            |facts: &KindFacts| format!("{}:{}:{}", facts.profile, facts.weight.name, facts.weight.unit),
        ] {
            assert_eq!(names(of), SampleKind::ASKED.len());
        }
        for &kind in SampleKind::ALL {
            assert_eq!(SampleKind::from_slug(kind.slug()), Some(kind));
            let (tag, taken) = (kind.facts().tag, SampleKind::TAKEN.contains(&kind));
            assert_eq!(tag.and_then(|tag| SampleKind::from_tag(tag as u16)), taken.then_some(kind));
            // What is made of another's samples is what is made of that one's.
            let made_of = kind.facts().made_of.map(|of| (of.derived(), of.taken(), kind.taken() == of));
            let another = kind.facts().made_of.map(|of| (Some(kind), of, true));
            assert_eq!((made_of, made_of.is_some()), (another, !taken));
            assert_eq!(kind.facts().holds, [kind]);
            assert_eq!((kind.facts().error)(0), None);
            assert_eq!((kind.facts().error)(400), Some(0.05));
        }
        assert_eq!((SampleKind::from_slug("wall"), SampleKind::from_tag(0)), (None, None));
        assert_eq!(
            (SampleKind::from_slug("lock"), SampleKind::asked("lock")),
            (None, Some(SampleKind::Lock))
        );
        assert_eq!(SampleKind::asked("off_cpu"), Some(SampleKind::OffCpu));
        assert_eq!((SampleKind::asked("wall"), SampleKind::asked("wal")), (Some(SampleKind::Wall), None));
        let wall = SampleKind::Wall;
        assert!(
            wall.holds(SampleKind::Cpu)
                && wall.holds(SampleKind::OffCpu)
                && !wall.holds(SampleKind::PageFaults)
        );
        let objects = SampleKind::AllocObjects;
        assert!(objects.needs(SampleKind::Alloc) && !objects.needs(objects));
        assert!(!objects.holds(SampleKind::Alloc));
        assert!(wall.needs(SampleKind::Cpu) && wall.needs(SampleKind::OffCpu));
        for &kind in SampleKind::ASKED {
            assert!(kind.facts().holds.iter().all(|of| of.facts().weight.unit == kind.facts().weight.unit));
            assert_eq!(kind.is_time(), kind.facts().amount.of != 1);
        }
    }
}
