//! A chunk's events: settings first, then samples with their stacks.
//!
//! In: a chunk. Out: samples in [`Recording`], and counts of what is not asked for. How much a sample
//! stands for is what the recording was set to (`period` of the JDK's events, `interval` and `wall` of async-profiler's),
//! or what the event itself says: `jdk.CPUTimeSample`, a wait's `duration`, an allocation's bytes (of a new buffer all of its:
//! `tlabSize`, where async-profiler has what the sample stands for). async-profiler's `jdk.ExecutionSample` may be of any event; only
//! those that count time on a CPU are taken. Our own recordings say of each event what it weighs, and have labels as fields.

use super::super::gather::{Sampled, labels};
use super::super::{Events, ImportError, Told, length, name};
use super::bytes::{Bad, Reader};
use super::chunk::{HEADER, Header};
use super::fields::{self, Fields};
use super::frames;
use super::known::{Event, Numbers};
use super::metadata::{self, Types};
use super::pools::Pools;
use super::recording::{Counted, Recording};
use super::settings::Settings;
use super::values::Values;
use emberscope_model::{LabelKey, SampleKind, WaitReason, WallTime};
use std::collections::HashMap;

/// What threads park for when they wait for a lock, as these classes begin: conditions, queues and pools are no locks.
const LOCKS: [&str; 4] = [
    "java.util.concurrent.locks.ReentrantLock",
    "java.util.concurrent.locks.ReentrantReadWriteLock",
    "java.util.concurrent.locks.StampedLock",
    "java.util.concurrent.Semaphore",
];

/// Why a chunk cannot be read.
pub enum Wrong {
    Bad(Bad),
    Import(ImportError),
}

impl From<Bad> for Wrong {
    fn from(bad: Bad) -> Self {
        Self::Bad(bad)
    }
}

impl From<ImportError> for Wrong {
    fn from(error: ImportError) -> Self {
        Self::Import(error)
    }
}

/// A chunk that is being read.
struct Chunk<'a> {
    header: &'a Header,
    pools: Pools,
    numbers: Numbers,
    settings: Settings,
    /// By trace, class at its end, and whether it is of the better ones.
    stacks: HashMap<(i64, i64, bool), u32>,
    told: &'a Told,
}

/// Walks over all events: their type, and a reader behind it.
fn each<'d>(
    data: &'d [u8],
    header: &Header,
    mut take: impl FnMut(i64, Reader<'d>) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    let mut at = HEADER;
    while at < data.len() {
        let mut reader = Reader::new(data, at, header.compressed);
        let size = reader.int()?;
        let end = usize::try_from(size).ok().and_then(|size| at.checked_add(size));
        let end = end.filter(|end| *end > reader.at && *end <= data.len());
        let says = || format!("has an event of {size} bytes, which the chunk has no room for");
        let end = end.ok_or_else(|| Bad { at, says: says() })?;
        let number = reader.long()?;
        // An event ends where it says: what is behind it is no part of it.
        let own = data.get(..end).unwrap_or(data);
        take(number, Reader::new(own, reader.at, header.compressed))?;
        at = end;
    }
    Ok(())
}

/// Reads a chunk.
///
/// # Errors
/// [`Wrong::Bad`]: its bytes make no sense. [`Wrong::Import`]: no period, or no room. What was added until then
/// stays.
pub fn read(data: &[u8], header: &Header, told: &Told, recording: &mut Recording) -> Result<(), Wrong> {
    let mut reader = Reader::new(data, header.metadata, header.compressed);
    let types = metadata::read(&mut reader)?;
    let mut values = Values::new(&types, data.len());
    let mut chunk = Chunk {
        header,
        pools: Pools::default(),
        numbers: Numbers::of(&types),
        settings: Settings::of(&types),
        stacks: HashMap::new(),
        told,
    };
    each(data, header, |number, mut reader| match number {
        1 => Ok(chunk.pools.read(&mut values, &mut reader)?),
        _ => Ok(()),
    })?;
    each(data, header, |number, mut reader| {
        if Some(number) == chunk.numbers.setting {
            chunk.setting(&types, &mut values, &mut reader)?;
        }
        Ok(())
    })?;
    each(data, header, |number, mut reader| {
        chunk.event(number, (&types, &mut values), &mut reader, recording)
    })
}

impl Chunk<'_> {
    fn setting(
        &mut self,
        types: &Types,
        values: &mut Values<'_>,
        reader: &mut Reader<'_>,
    ) -> Result<(), Bad> {
        let class = self.numbers.setting.and_then(|number| types.get(number));
        let (mut id, mut key, mut value) = (0, String::new(), String::new());
        for field in class.map_or(&[][..], |class| &class.fields) {
            match field.name.as_str() {
                "id" => id = values.number(field, reader)?,
                "name" => key = self.pools.text(&values.text(field, reader)?),
                "value" => value = self.pools.text(&values.text(field, reader)?),
                _ => values.skip(field, reader)?,
            }
        }
        self.settings.insert(id, key, value);
        Ok(())
    }

    fn event(
        &mut self,
        number: i64,
        (types, values): (&Types, &mut Values<'_>),
        reader: &mut Reader<'_>,
        recording: &mut Recording,
    ) -> Result<(), Wrong> {
        let known = self.numbers.events.get(&number).copied();
        let (Some(event), Some(class)) = (known, types.get(number)) else { return Ok(()) };
        match event {
            Event::Other(what) => {
                recording.counts.add_other(what);
                return Ok(());
            }
            Event::Own(kind) if !self.is_asked(kind) => {
                // Wall time is of two kinds, and none itself.
                let what = match kind {
                    SampleKind::Wall => class.name.clone(),
                    _ => format!("{} (--events {})", class.name, kind.slug()),
                };
                recording.counts.add_other(&what);
                return Ok(());
            }
            _ => {}
        }
        let ours = self.settings.writer().is_some();
        let fields = fields::read(class, (self.header, &self.pools, ours), values, reader)?;
        if event == Event::Lost {
            recording.lost = recording.lost.saturating_add(u64::try_from(fields.lost).unwrap_or_default());
            return Ok(());
        }
        if event == Event::Execution
            && let Some(event) = self.settings.no_cpu()
        {
            let what =
                format!("jdk.ExecutionSample of async-profiler's event {event}, which is no time on a CPU");
            recording.counts.add_other(&what);
            return Ok(());
        }
        if event == Event::Park {
            let class = self.pools.class(fields.class);
            if !LOCKS.iter().any(|lock| class.starts_with(lock)) {
                recording.counts.add_other("jdk.ThreadPark of what is no lock");
                return Ok(());
            }
        }
        let counted = self.counted(event, fields.state);
        if counted.is_asked_by(self.told.events)
            && let Some(threshold) = self.settings.threshold(number)
        {
            let says =
                format!("{} shorter than {} is not in the recording", counted.event(), length(threshold));
            Recording::tell(&mut recording.remarks, says);
        }
        self.sample(counted, fields, recording)
    }

    fn is_asked(&self, kind: SampleKind) -> bool {
        match self.told.events {
            Events::Kind(asked) => asked == kind,
            Events::Lock => kind == SampleKind::Lock,
            Events::Cpu | Events::Native | Events::Wall => false,
        }
    }

    /// What an event of a sample's type counts.
    fn counted(&self, event: Event, state: i64) -> Counted {
        match event {
            Event::Execution => Counted::Execution,
            Event::CpuTime => Counted::CpuTime,
            Event::Native => Counted::Native,
            Event::MonitorEnter => Counted::MonitorEnter,
            Event::Park => Counted::Park,
            Event::Allocation => Counted::Allocation,
            Event::AllocationSample => Counted::AllocationSample,
            Event::Own(_) | Event::Lost | Event::Other(_) => Counted::Own,
            Event::Wall => match self.pools.states.get(&state).map(String::as_str) {
                Some("STATE_RUNNABLE") => Counted::WallRunnable,
                _ => Counted::WallSleeping,
            },
        }
    }

    fn sample(&mut self, counted: Counted, fields: Fields, recording: &mut Recording) -> Result<(), Wrong> {
        let samples = u64::try_from(fields.samples.unwrap_or(1)).unwrap_or_default();
        recording.counts.add(counted, samples);
        if !counted.is_asked_by(self.told.events) || samples == 0 {
            return Ok(());
        }
        let is_wait = matches!(counted, Counted::MonitorEnter | Counted::Park);
        let weight = match (counted, fields.weight) {
            (Counted::CpuTime, _) => fields.period.saturating_mul(samples),
            (Counted::MonitorEnter | Counted::Park | Counted::Allocation | Counted::AllocationSample, _) => {
                let who = format!("{}, {}", self.settings.who(), counted.event());
                Recording::tell(&mut recording.by, who);
                let bytes = fields.bytes.unwrap_or(fields.object);
                if is_wait { fields.duration } else { u64::try_from(bytes).unwrap_or_default() }
            }
            (_, Some(weight)) => {
                let event = match counted {
                    Counted::Own => format!("samples of {}", self.told.events.slug()),
                    _ => counted.event().to_owned(),
                };
                Recording::tell(&mut recording.by, format!("{}, {event}", self.settings.who()));
                weight
            }
            (Counted::Own, None) => {
                recording.counts.add_other("events of Emberscope's that do not say what they weigh");
                return Ok(());
            }
            (_, None) => self.settings.period(counted, self.told.period, recording)?.saturating_mul(samples),
        };
        let source = match (counted, self.settings.is_async_profiler()) {
            (Counted::CpuTime, _) => "jfr-cpu-time",
            (Counted::Native, _) => "jfr-native",
            (Counted::WallRunnable | Counted::WallSleeping, _) => "async-profiler-wall",
            (_, true) => "async-profiler",
            (_, false) => "jfr",
        };
        // Our own threads are sets of labels.
        let ours = self.settings.writer().is_some();
        let thread = |number: i64| self.pools.threads.get(&number).filter(|_| !ours);
        let class = thread(fields.thread).map(|name| (self.told.class_of)(name));
        let (better, mut own) = (counted.is_better(), fields.labels);
        if is_wait {
            own.push((LabelKey::Lock, self.pools.class(fields.class).into()));
            own.extend(thread(fields.owner).map(|name| (LabelKey::LockOwner, name::clean(name).into())));
        }
        if self.told.events == Events::Lock && !own.iter().any(|(key, _)| *key == LabelKey::Wait) {
            own.push((LabelKey::Wait, WaitReason::Lock.slug().into()));
        }
        own.sort_by_key(|(key, _)| *key);
        let gather = if better { &mut recording.better } else { &mut recording.main };
        let set = gather.labels([own, labels(source, class)].concat())?;
        let leaf = if is_wait { 0 } else { fields.class };
        let stack = match self.stacks.get(&(fields.trace, leaf, better)) {
            Some(stack) => *stack,
            None => {
                let class = Some(self.pools.class(leaf)).filter(|name| !name.is_empty());
                let stack = frames::stack(&self.pools, fields.trace, class.as_deref(), gather)?;
                self.stacks.insert((fields.trace, leaf, better), stack);
                stack
            }
        };
        let sampled = Sampled { count: samples, weight };
        let time: WallTime = self.header.time(fields.ticks);
        match is_wait {
            true => Ok(gather.lasting(time, (set, stack), &sampled)?),
            false => Ok(gather.at(time, (set, stack), &sampled)?),
        }
    }
}
