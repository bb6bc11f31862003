//! Which kinds of samples are taken, and how often.
//!
//! In: `cpu,page-faults=256`. Out: each kind once, with what it is sampled every so much of. CPU time goes by `hz`.

use super::values::{Refused, refused};
use emberscope_model::{Pace, SampleKind};
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
pub struct Events(Vec<Sampled>);

impl Events {
    /// CPU time alone.
    pub fn cpu() -> Self {
        Self(vec![Sampled { kind: SampleKind::Cpu, every: None }])
    }

    /// Each kind that is sampled, once.
    pub fn get(&self) -> &[Sampled] {
        &self.0
    }

    /// These, and a kind that may be missing among them.
    pub fn with(mut self, kind: SampleKind) -> Self {
        if self.0.iter().all(|sampled| sampled.kind != kind) {
            self.0.push(Sampled { kind, every: kind.facts().pace.usual() });
        }
        self
    }
}

impl FromStr for Events {
    type Err = Refused;
    fn from_str(text: &str) -> Result<Self, Refused> {
        let mut all: Vec<Sampled> = Vec::new();
        for item in text.split(',').map(str::trim) {
            let Some(sampled) = one(item) else { return refused(ALLOWED) };
            if all.iter().any(|known| known.kind == sampled.kind) {
                return refused(ALLOWED);
            }
            all.push(sampled);
        }
        match all.iter().any(|sampled| sampled.kind == SampleKind::Cpu) {
            true => Ok(Self(all)),
            false => refused(ALLOWED),
        }
    }
}

const ALLOWED: &str = "cpu, and with commas between other kinds, each once: page-faults, or page-faults=N for a sample \
                       each N faults, 1 to 1000000; major-faults and context-switches likewise; off-cpu, or off-cpu=N for a stack each N nanoseconds of waiting, \
                       about, 1 to 1000000000; alloc, or alloc=N for a sample each N bytes allocated, 1 to \
                       1000000000";

fn one(item: &str) -> Option<Sampled> {
    let (slug, every) = item.split_once('=').map_or((item, None), |(slug, every)| (slug, Some(every)));
    let kind = SampleKind::from_slug(slug)?;
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
        SampleKind::OffCpu | SampleKind::Lock | SampleKind::Alloc => 1_000_000_000,
        SampleKind::Cpu
        | SampleKind::PageFaults
        | SampleKind::MajorFaults
        | SampleKind::Switches
        | SampleKind::Wall => 1_000_000,
    }
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Sampled { kind, every }) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match every.filter(|_| *every != kind.facts().pace.usual()) {
                Some(every) => write!(f, "{comma}{}={every}", kind.slug())?,
                None => write!(f, "{comma}{}", kind.slug())?,
            }
        }
        Ok(())
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
                "cpu,lock",
                "cpu,",
            ],
        );
        let usual: Events = " cpu , page-faults=256".parse().unwrap();
        assert_eq!(usual.to_string(), "cpu,page-faults");
        let cpu: Events = "cpu".parse().unwrap();
        assert_eq!(cpu, Events::cpu());
        assert_eq!(cpu.with(SampleKind::PageFaults), usual);
        assert_eq!(usual.clone().with(SampleKind::PageFaults), usual);
    }
}
