//! A chunk's events: settings first, then samples with their stacks.
//!
//! In: a chunk. Out: samples in [`Recording`], and counts of what is no sample of a running thread. How much a sample
//! stands for is what the recording was set to (`period` of the JDK's events, `interval` and `wall` of async-profiler's),
//! or what the event itself says (`jdk.CPUTimeSample`). async-profiler's `jdk.ExecutionSample` may be of any event; only
//! those that count time on a CPU are taken. Our own recordings say of each event what it weighs, and have labels as fields.

use super::super::gather::{Labels, Sampled, labels};
use super::super::{ImportError, Told, name};
use super::bytes::{Bad, Reader};
use super::chunk::{HEADER, Header};
use super::frames;
use super::metadata::{self, Class, Types};
use super::pools::Pools;
use super::recording::{Counted, Recording};
use super::settings::Settings;
use super::values::Values;
use emberscope_model::{LabelKey, WallTime};
use std::collections::HashMap;
use std::sync::Arc;

/// Events that are samples of something else.
const OTHERS: [&str; 13] = [
    "jdk.ObjectAllocationInNewTLAB",
    "jdk.ObjectAllocationOutsideTLAB",
    "jdk.ObjectAllocationSample",
    "jdk.JavaMonitorEnter",
    "jdk.JavaMonitorWait",
    "jdk.ThreadPark",
    "jdk.OldObjectSample",
    "profiler.LiveObject",
    "profiler.Malloc",
    "profiler.Free",
    "profiler.NativeLock",
    "profiler.MethodTrace",
    "jdk.MethodTrace",
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

/// Numbers of the types that matter.
struct Numbers {
    execution: Option<i64>,
    cpu_time: Option<i64>,
    native: Option<i64>,
    wall: Option<i64>,
    setting: Option<i64>,
    lost: Option<i64>,
    others: HashMap<i64, &'static str>,
}

impl Numbers {
    fn of(types: &Types) -> Self {
        let number = |name| types.number(name);
        Self {
            execution: number("jdk.ExecutionSample"),
            cpu_time: number("jdk.CPUTimeSample"),
            native: number("jdk.NativeMethodSample"),
            wall: number("profiler.WallClockSample"),
            setting: number("jdk.ActiveSetting"),
            lost: number("jdk.CPUTimeSamplesLost"),
            others: OTHERS.iter().filter_map(|name| Some((number(name)?, *name))).collect(),
        }
    }
}

/// Fields of a sample.
#[derive(Debug, Default)]
struct Fields {
    ticks: i64,
    trace: i64,
    thread: i64,
    state: i64,
    samples: Option<i64>,
    /// What a sample of CPU time stands for, nanoseconds.
    period: u64,
    lost: i64,
    /// Of our own recordings: what the event weighs, and its labels.
    weight: Option<u64>,
    labels: Labels,
}

/// A chunk that is being read.
struct Chunk<'a> {
    header: &'a Header,
    pools: Pools,
    numbers: Numbers,
    settings: Settings,
    /// By trace and whether it is of `cpu_time`.
    stacks: HashMap<(i64, bool), u32>,
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

    fn fields(&self, class: &Class, values: &mut Values<'_>, reader: &mut Reader<'_>) -> Result<Fields, Bad> {
        let mut fields = Fields::default();
        let ours = self.settings.writer().is_some();
        for field in &class.fields {
            if let Some(key) = LabelKey::from_name(&field.name).filter(|key| ours && *key != LabelKey::Source)
            {
                let value = name::clean(&self.pools.text(&values.text(field, reader)?));
                if !value.is_empty() && !fields.labels.iter().any(|(known, _)| *known == key) {
                    fields.labels.push((key, Arc::from(value)));
                }
                continue;
            }
            let number = values.number(field, reader)?;
            match field.name.as_str() {
                "startTime" => fields.ticks = number,
                "stackTrace" => fields.trace = number,
                "sampledThread" | "eventThread" => fields.thread = number,
                "state" => fields.state = number,
                "samples" => fields.samples = Some(number),
                "samplingPeriod" if field.ticks => fields.period = self.header.length(number),
                "samplingPeriod" => fields.period = u64::try_from(number).unwrap_or_default(),
                "lostSamples" => fields.lost = number,
                "weight" if ours => fields.weight = u64::try_from(number).ok(),
                _ => {}
            }
        }
        fields.labels.sort_unstable_by_key(|(key, _)| *key);
        Ok(fields)
    }

    fn event(
        &mut self,
        number: i64,
        (types, values): (&Types, &mut Values<'_>),
        reader: &mut Reader<'_>,
        recording: &mut Recording,
    ) -> Result<(), Wrong> {
        let here = Some(number);
        if let Some(what) = self.numbers.others.get(&number) {
            recording.counts.add_other(what);
            return Ok(());
        }
        let numbers = &self.numbers;
        let known = [numbers.execution, numbers.cpu_time, numbers.native, numbers.wall, numbers.lost];
        let Some(class) = types.get(number).filter(|_| known.contains(&here)) else { return Ok(()) };
        let fields = self.fields(class, values, reader)?;
        if here == self.numbers.lost {
            recording.lost = recording.lost.saturating_add(u64::try_from(fields.lost).unwrap_or_default());
            return Ok(());
        }
        if here == self.numbers.execution
            && let Some(event) = self.settings.no_cpu()
        {
            let what =
                format!("jdk.ExecutionSample of async-profiler's event {event}, which is no time on a CPU");
            recording.counts.add_other(&what);
            return Ok(());
        }
        self.sample(self.counted(here, fields.state), fields, recording)
    }

    /// What an event of a sample's type counts.
    fn counted(&self, here: Option<i64>, state: i64) -> Counted {
        match here {
            _ if here == self.numbers.execution => Counted::Execution,
            _ if here == self.numbers.cpu_time => Counted::CpuTime,
            _ if here == self.numbers.native => Counted::Native,
            _ => match self.pools.states.get(&state).map(String::as_str) {
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
        let weight = match (counted, fields.weight) {
            (Counted::CpuTime, _) => fields.period.saturating_mul(samples),
            (_, Some(weight)) => {
                let who = format!("Emberscope {}", self.settings.writer().unwrap_or_default());
                Recording::tell(&mut recording.by, format!("{}, {}", who.trim_end(), counted.event()));
                weight
            }
            (_, None) => self.settings.period(counted, self.told.period, recording)?.saturating_mul(samples),
        };
        let source = match (counted, self.settings.is_async_profiler()) {
            (Counted::CpuTime, _) => "jfr-cpu-time",
            (Counted::Native, _) => "jfr-native",
            (Counted::WallRunnable | Counted::WallSleeping, _) => "async-profiler-wall",
            (Counted::Execution, true) => "async-profiler",
            (Counted::Execution, false) => "jfr",
        };
        // Our own threads are sets of labels.
        let thread = self.pools.threads.get(&fields.thread).filter(|_| self.settings.writer().is_none());
        let class = thread.map(|name| (self.told.class_of)(name));
        let of_cpu_time = counted == Counted::CpuTime;
        let gather = if of_cpu_time { &mut recording.cpu_time } else { &mut recording.main };
        let set = gather.labels([fields.labels, labels(source, class)].concat())?;
        let stack = match self.stacks.get(&(fields.trace, of_cpu_time)) {
            Some(stack) => *stack,
            None => {
                let stack = frames::stack(&self.pools, fields.trace, gather)?;
                self.stacks.insert((fields.trace, of_cpu_time), stack);
                stack
            }
        };
        let sampled = Sampled { count: samples, weight };
        let time: WallTime = self.header.time(fields.ticks);
        Ok(gather.at(time, (set, stack), &sampled)?)
    }
}
