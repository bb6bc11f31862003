//! Which kinds of samples are taken, and how often.
//!
//! In: `cpu,page-faults=256,block:block_rq_issue`. Out: each kind once, with what it is sampled every so much of, and the events
//! that are named. CPU time goes by `hz`.

use super::values::{Refused, refused};
use emberscope_model::{MAX_NAMED, NamedEvent, Pace, SampleKind};
use std::fmt;
use std::str::FromStr;

/// A kind that is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// What is sampled.
    pub kind: SampleKind,
    /// One sample each so many units of its weight. None: as often as `hz` says.
    pub every: Option<u64>,
}

/// The kinds that are sampled, CPU time among them: what stands still, and who is there, is known by its ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    kinds: Vec<Sampled>,
    named: Vec<NamedEvent>,
}

impl Events {
    /// CPU time alone.
    pub fn cpu() -> Self {
        Self { kinds: vec![Sampled { kind: SampleKind::Cpu, every: None }], named: Vec::new() }
    }

    /// Each kind that is sampled, once.
    pub fn get(&self) -> &[Sampled] {
        &self.kinds
    }

    /// Events that are named, each once.
    pub fn named(&self) -> &[NamedEvent] {
        &self.named
    }

    /// These, and a kind that may be missing among them, or what it is made of. Events have names, and are these alone.
    pub fn with(mut self, kind: SampleKind) -> Self {
        let kind = kind.taken();
        if kind != SampleKind::Event && self.kinds.iter().all(|sampled| sampled.kind != kind) {
            self.kinds.push(Sampled { kind, every: kind.facts().pace.usual() });
        }
        self
    }
}

impl FromStr for Events {
    type Err = Refused;
    fn from_str(text: &str) -> Result<Self, Refused> {
        let (mut kinds, mut named): (Vec<Sampled>, Vec<NamedEvent>) = Default::default();
        for item in text.split(',').map(str::trim) {
            let again = if let Some(sampled) = one(item) {
                let again = kinds.iter().any(|known| known.kind == sampled.kind);
                kinds.push(sampled);
                again
            } else if let Ok(event) = item.parse::<NamedEvent>() {
                let again = named.iter().any(|known| known.name == event.name);
                named.push(event);
                again
            } else {
                return refused(comes_with(item).unwrap_or_else(|| ALLOWED.to_owned()));
            };
            if again {
                return refused(ALLOWED);
            }
        }
        let has_cpu = kinds.iter().any(|sampled| sampled.kind == SampleKind::Cpu);
        if has_cpu && named.len() <= MAX_NAMED { Ok(Self { kinds, named }) } else { refused(ALLOWED) }
    }
}

const ALLOWED: &str = "cpu, and with commas between other kinds, each once: page-faults, or page-faults=N for a sample \
                       each N faults, 1 to 1000000; major-faults, context-switches and block-io (requests of disks) likewise; off-cpu, or off-cpu=N for a stack each N nanoseconds of waiting, \
                       about, 1 to 1000000000; alloc, or alloc=N for a sample each N bytes allocated, 1 to \
                       1000000000; and four named events at most, each once: a tracepoint, GROUP:NAME, as block:block_rq_issue, or one of perf's, as \
                       minor-faults, cpu-migrations, cycles, cache-misses or rHEX, with =N or :N for a sample each N of them";

/// What to name for a kind that is none of those that are sampled, but comes with them.
fn comes_with(item: &str) -> Option<String> {
    let slug = item.split_once('=').map_or(item, |(slug, _)| slug);
    let kind = SampleKind::asked(slug).filter(|kind| !SampleKind::TAKEN.contains(kind))?;
    let of: Vec<&str> = kind.facts().holds.iter().map(|of| of.taken().slug()).collect();
    Some(format!("{}, and {} comes with it", of.join(","), kind.slug()))
}

/// A kind. Events have their own names.
fn one(item: &str) -> Option<Sampled> {
    let (slug, every) = item.split_once('=').map_or((item, None), |(slug, every)| (slug, Some(every)));
    let mut kinds = SampleKind::TAKEN.iter().copied().filter(|kind| *kind != SampleKind::Event);
    let kind = kinds.find(|kind| kind.slug() == slug)?;
    let every = match (kind.facts().pace, every) {
        (pace, None) => pace.usual(),
        (Pace::Hz, Some(_)) => return None,
        (Pace::Every(_), Some(every)) => Some(every.parse().ok().filter(|n| (1..=most(kind)).contains(n))?),
    };
    Some(Sampled { kind, every })
}

/// Largest number of units that a sample may stand for.
const fn most(kind: SampleKind) -> u64 {
    match kind {
        SampleKind::OffCpu
        | SampleKind::Lock
        | SampleKind::Contentions
        | SampleKind::Alloc
        | SampleKind::AllocObjects => 1_000_000_000,
        SampleKind::Cpu
        | SampleKind::PageFaults
        | SampleKind::MajorFaults
        | SampleKind::Switches
        | SampleKind::Event
        | SampleKind::BlockIo
        | SampleKind::Wall => 1_000_000,
    }
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Sampled { kind, every }) in self.kinds.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match every.filter(|_| *every != kind.facts().pace.usual()) {
                Some(every) => write!(f, "{comma}{}={every}", kind.slug())?,
                None => write!(f, "{comma}{}", kind.slug())?,
            }
        }
        self.named.iter().try_for_each(|event| write!(f, ",{event}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::tests::takes;
    use super::*;

    #[test]
    fn kinds_are_named_once_and_cpu_among_them() {
        takes::<Events>(
            &[
                "cpu",
                "cpu,page-faults",
                "cpu,page-faults=1",
                "page-faults=4096,cpu",
                "cpu,off-cpu",
                "cpu,off-cpu=1000000000",
                "cpu,alloc",
                "cpu,alloc=1048576",
                "cpu,major-faults,context-switches=1",
                "cpu,block:block_rq_issue",
                "cpu,block-io,off-cpu",
                "cpu,block-io=10",
                "cpu,off-cpu,sched:sched_migrate_task=10,minor-faults=7",
                "cpu,cycles,instructions,cache-misses,r01c4",
            ],
            &[
                "",
                "page-faults",
                "cpu,cpu",
                "cpu=5",
                "cpu,page-faults=0",
                "cpu,page-faults=1000001",
                "cpu,off-cpu=1000000001",
                "cpu,alloc=0",
                "cpu,alloc=1000000001",
                "cpu,wall",
                "cpu,event",
                "cpu,event=4",
                "cpu,cycles,cycles=5",
                "cpu,a:a,a:b,a:c,a:d,a:e",
                "block:block_rq_issue",
                "cpu,lock",
                "cpu,contentions",
                "cpu,alloc-objects",
                "cpu,alloc_objects=4",
                "cpu,",
            ],
        );
        let usual: Events = " cpu , page-faults=256".parse().unwrap();
        assert_eq!(usual.to_string(), "cpu,page-faults");
        let named: Events = "cpu,sched:sched_migrate_task:10,cycles=10000000".parse().unwrap();
        assert_eq!(named.to_string(), "cpu,sched:sched_migrate_task=10,cycles");
        assert_eq!(named.named().len(), 2);
        let cpu: Events = "cpu".parse().unwrap();
        assert_eq!(cpu, Events::cpu());
        assert_eq!(cpu.with(SampleKind::PageFaults), usual);
        assert_eq!(usual.clone().with(SampleKind::PageFaults), usual);
    }

    #[test]
    fn what_comes_with_another_kind_is_told_by_that_one() {
        let refused = |text: &str| text.parse::<Events>().unwrap_err().to_string();
        assert_eq!(refused("cpu,alloc-objects"), "alloc, and alloc-objects comes with it");
        assert_eq!(refused("cpu,contentions=5"), "off-cpu, and contentions comes with it");
        assert_eq!(refused("cpu,wall"), "cpu,off-cpu, and wall comes with it");
        assert_eq!(refused("cpu,objects"), ALLOWED);
        let alloc: Events = "cpu,alloc".parse().unwrap();
        assert_eq!(Events::cpu().with(SampleKind::AllocObjects), alloc);
        assert_eq!(alloc.clone().with(SampleKind::AllocObjects), alloc);
    }
}
