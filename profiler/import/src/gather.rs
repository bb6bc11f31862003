//! Samples on their way into windows: equal frames, stacks and rows once, all of it bounded.
//!
//! In: samples. Out: [`Imported`]. A window has the length asked for where samples have times, else the profile's span.

use super::imported::{Imported, LeftOut};
use super::limits;
use super::{Format, ImportError};
use emberscope_model::{
    Frame, LabelKey, LabelSet, LabelSetBuilder, LostCounts, Row, SampleKind, Stack, StackEnd, ThreadClass,
    TimeRange, WallTime, Window,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Labels of some samples beside those of the whole file.
pub type Labels = Vec<(LabelKey, Arc<str>)>;

/// How much a stack was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Samples of this stack.
    pub count: u64,
    /// What those samples stand for, in the unit of their kind: of CPU time nanoseconds.
    pub weight: u64,
}

/// Number of a set of labels, number of a stack.
type Place = (u32, u32);

/// Samples in the making.
#[derive(Debug)]
pub struct Gather {
    kind: SampleKind,
    window: Duration,
    memory: usize,
    frames: HashMap<Arc<Frame>, u32>,
    by_number: Vec<Arc<Frame>>,
    stacks: HashMap<(Box<[u32]>, bool), u32>,
    stack_list: Vec<(Box<[u32]>, bool)>,
    sets: HashMap<Labels, u32>,
    set_list: Vec<Labels>,
    windows: BTreeMap<TimeKey, HashMap<Place, Sampled>>,
    left_out: BTreeMap<String, u64>,
}

/// A window's first instant, and the first that is behind it: nanoseconds since 1970.
type TimeKey = (u64, u64);

impl Gather {
    /// Of no samples yet; those that come are of this kind.
    pub fn new(kind: SampleKind, window: Duration) -> Self {
        Self {
            kind,
            window,
            memory: 0,
            frames: HashMap::new(),
            by_number: Vec::new(),
            stacks: HashMap::new(),
            stack_list: Vec::new(),
            sets: HashMap::new(),
            set_list: Vec::new(),
            windows: BTreeMap::new(),
            left_out: BTreeMap::new(),
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), ImportError> {
        self.memory += bytes;
        if self.memory > limits::MEMORY { Err(ImportError::Memory) } else { Ok(()) }
    }

    /// The number of a frame.
    ///
    /// # Errors
    /// [`ImportError::Memory`]: the frame is new and there is no room.
    pub fn frame(&mut self, frame: Frame) -> Result<u32, ImportError> {
        if let Some(number) = self.frames.get(&frame) {
            return Ok(*number);
        }
        self.take(200 + frame.name.len() + frame.module.len())?;
        let (number, frame) = (self.by_number.len() as u32, Arc::new(frame));
        self.by_number.push(frame.clone());
        self.frames.insert(frame, number);
        Ok(number)
    }

    /// The number of a stack; frames are from the root, `cut`: it does not reach it.
    ///
    /// # Errors
    /// [`ImportError::Memory`]: the stack is new and there is no room.
    pub fn stack(&mut self, frames: &[u32], cut: bool) -> Result<u32, ImportError> {
        let key: (Box<[u32]>, bool) = (frames.into(), cut);
        if let Some(number) = self.stacks.get(&key) {
            return Ok(*number);
        }
        self.take(160 + frames.len() * 16)?;
        let number = self.stack_list.len() as u32;
        self.stack_list.push(key.clone());
        self.stacks.insert(key, number);
        Ok(number)
    }

    /// The number of a set of labels, in the order of keys.
    ///
    /// # Errors
    /// [`ImportError::Memory`]: the set is new and there is no room.
    pub fn labels(&mut self, labels: Labels) -> Result<u32, ImportError> {
        if let Some(number) = self.sets.get(&labels) {
            return Ok(*number);
        }
        self.take(200 + labels.iter().map(|(_, value)| value.len() + 32).sum::<usize>())?;
        let number = self.set_list.len() as u32;
        self.set_list.push(labels.clone());
        self.sets.insert(labels, number);
        Ok(number)
    }

    /// Adds samples to the window in which an instant lies.
    ///
    /// # Errors
    /// As for [`Self::within`].
    pub fn at(&mut self, time: WallTime, place: Place, sampled: &Sampled) -> Result<(), ImportError> {
        let from = time.floor(self.window);
        self.within(TimeRange { from, until: from.plus(self.window) }, place, sampled)
    }

    /// Adds a wait that began at an instant: to each window in which it lasted its part, the sample to the first.
    ///
    /// # Errors
    /// As for [`Self::within`].
    pub fn lasting(&mut self, began: WallTime, place: Place, sampled: &Sampled) -> Result<(), ImportError> {
        let (mut at, mut left) = (began, *sampled);
        loop {
            let ends = at.floor(self.window).plus(self.window);
            let weight = left.weight.min(ends.0.saturating_sub(at.0).max(1));
            self.at(at, place, &Sampled { count: left.count, weight })?;
            left = Sampled { count: 0, weight: left.weight - weight };
            if left.weight == 0 {
                return Ok(());
            }
            at = ends;
        }
    }

    /// Adds samples to the window of a span.
    ///
    /// # Errors
    /// [`ImportError::Time`]: before 1980, after tomorrow. [`ImportError::Windows`], [`ImportError::Memory`]: no room.
    pub fn within(&mut self, range: TimeRange, place: Place, sampled: &Sampled) -> Result<(), ImportError> {
        let key = (range.from.0, range.until.0);
        if !self.windows.contains_key(&key) {
            check(range)?;
            if self.windows.len() >= limits::WINDOWS {
                return Err(ImportError::Windows);
            }
            self.take(256)?;
        }
        let window = self.windows.entry(key).or_default();
        let new = !window.contains_key(&place);
        let sum = window.entry(place).or_insert(Sampled { count: 0, weight: 0 });
        sum.count = sum.count.saturating_add(sampled.count);
        sum.weight = sum.weight.saturating_add(sampled.weight);
        if new { self.take(96) } else { Ok(()) }
    }

    /// Counts what is not taken.
    pub fn leave_out(&mut self, what: impl Into<String>, count: u64) {
        let sum = self.left_out.entry(what.into()).or_default();
        *sum = sum.saturating_add(count);
    }

    /// All windows, in order of time.
    ///
    /// # Errors
    /// [`ImportError::Nothing`]: no samples were added. It names what was left out.
    pub fn finish(self, format: Format, by: String) -> Result<Imported, ImportError> {
        let left_out: Vec<LeftOut> =
            self.left_out.into_iter().map(|(what, count)| LeftOut { what, count }).collect();
        let Some(first) = self.windows.first_key_value().map(|(key, _)| *key) else {
            let others: Vec<String> =
                left_out.iter().map(|out| format!("{} of {}", out.count, out.what)).collect();
            let says =
                if others.is_empty() { String::new() } else { format!(" (left out: {})", others.join(", ")) };
            return Err(ImportError::Nothing(format!("{}{says}", self.kind.facts().title)));
        };
        let frame = |number: &u32| self.by_number.get(*number as usize).cloned();
        let stacks: Vec<Arc<Stack>> = (self.stack_list.iter())
            .map(|(frames, cut)| {
                let end = if *cut { StackEnd::DepthLimit } else { StackEnd::Root };
                Arc::new(Stack { frames: frames.iter().filter_map(frame).collect(), end })
            })
            .collect();
        let set = |labels: &Labels| {
            let set = LabelSetBuilder::new();
            Arc::new(labels.iter().fold(set, |set, (key, value)| set.set(*key, value.clone())).build())
        };
        let sets: Vec<Arc<LabelSet>> = self.set_list.iter().map(set).collect();
        let mut range = TimeRange { from: WallTime(first.0), until: WallTime(first.1) };
        let (mut sampled, mut truncated, mut stackless) = (Sampled { count: 0, weight: 0 }, 0, 0);
        let mut windows = Vec::with_capacity(self.windows.len());
        for ((from, until), sums) in self.windows {
            let own = TimeRange { from: WallTime(from), until: WallTime(until) };
            range.cover(&own);
            let (mut sums, mut rows) = (sums.into_iter().collect::<Vec<(Place, Sampled)>>(), Vec::new());
            sums.sort_unstable_by_key(|(place, _)| *place);
            for ((set, stack), Sampled { count, weight }) in sums {
                let (Some(labels), Some(stack)) = (sets.get(set as usize), stacks.get(stack as usize)) else {
                    continue;
                };
                sampled.count = sampled.count.saturating_add(count);
                sampled.weight = sampled.weight.saturating_add(weight);
                truncated += if stack.truncated() { count } else { 0 };
                stackless += if stack.frames.is_empty() { count } else { 0 };
                let (labels, stack, kind) = (labels.clone(), stack.clone(), self.kind);
                rows.push(Row { labels, stack, kind, count, weight });
            }
            windows.push(Window {
                range: own,
                rows,
                ledger: Vec::new(),
                pauses: Vec::new(),
                processes: Vec::new(),
                lost: LostCounts::default(),
                partial: false,
            });
        }
        Ok(Imported {
            format,
            by,
            kind: self.kind,
            windows,
            range,
            guessed: false,
            sampled,
            truncated,
            stackless,
            left_out,
            remarks: Vec::new(),
        })
    }
}

/// The class of a thread, and who sampled, as labels.
pub fn labels(source: &str, class: Option<ThreadClass>) -> Labels {
    let class = class.map(|class| (LabelKey::ThreadClass, Arc::from(class.slug())));
    class.into_iter().chain([(LabelKey::Source, Arc::from(source))]).collect()
}

/// 1980-01-01, nanoseconds since 1970: an earlier time is a clock that was not set.
const EARLIEST: u64 = 315_532_800 * 1_000_000_000;
fn check(range: TimeRange) -> Result<(), ImportError> {
    let latest = WallTime::now().plus(Duration::from_secs(86_400));
    match range.from.0 < EARLIEST || range.until > latest.plus(Duration::from_secs(60)) {
        true => Err(ImportError::Time(range.from.to_string())),
        false => Ok(()),
    }
}

/// The span of a profile whose samples have no times, and whether it is guessed from the file's last change.
///
/// # Errors
/// [`ImportError::HasTimes`]: the file has a span of its own, and flags say another.
pub fn span(told: &super::Told, own: Option<TimeRange>) -> Result<(TimeRange, bool), ImportError> {
    match (told.range, own) {
        (Some(_), Some(_)) => Err(ImportError::HasTimes),
        (Some(range), None) | (None, Some(range)) => Ok((range, false)),
        (None, None) => {
            let from = WallTime(told.written_ns).floor(told.window);
            Ok((TimeRange { from, until: from.plus(told.window) }, true))
        }
    }
}
