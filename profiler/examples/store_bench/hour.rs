//! The generated hour, the same each time.
//!
//! One application, 16 executors of 4 cores, 99 Hz, 40 stages of 90 s, tasks of 2 to 8 s, 4,000 stacks 40 to 80
//! deep (mean 63), of which a stage has 400 to 450; a sample's stack is drawn by Zipf's law with exponent 1,
//! independently: 22.8 million samples in 360 windows. Where other kinds are asked for, their samples are beside these
//! ([`super::beside`]), which stay as they are. Out: windows, one at a time.

use super::beside::{Beside, Drawn};
use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSet, LabelSetBuilder, LostCounts, Row, SampleKind, Stack, StackEnd,
    TimeRange, WallTime, Window,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The hour's first instant, nanoseconds since 1970: a full hour of the wall clock.
pub const BASE: u64 = 1_795_334_400 * 1_000_000_000;
/// Windows of ten seconds.
pub const WINDOWS: u64 = 360;
/// Its executors.
pub const EXECUTORS: u64 = 16;
/// Its stages.
pub const STAGES: u64 = 40;
const CORES: u64 = 4;
const STACKS: usize = 4_000;
const PERIOD: u64 = 10_101_010;

/// The instant of a second of the hour.
pub fn at(second: i64) -> WallTime {
    WallTime(BASE.wrapping_add_signed(second * 1_000_000_000))
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// One below n.
    pub fn below(&mut self, n: u64) -> u64 {
        self.number() % n
    }
    /// One from 0 to below 1.
    pub fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Stacks that part as calls do: most calls go on as the call before them did, one in forty turns elsewhere.
fn stacks(random: &mut Random) -> Vec<Arc<Stack>> {
    let mut frames: HashMap<u64, Arc<Frame>> = HashMap::new();
    let mut known = HashSet::new();
    let mut out = Vec::with_capacity(STACKS);
    while out.len() < STACKS {
        let depth = 40 + (41.0 * random.share().powf(0.75)) as u64;
        let mut way = Vec::with_capacity(depth as usize);
        let mut at = 0_u64;
        for level in 0..depth {
            let turn = if random.below(40) == 0 { 1 + random.below(6) } else { 0 };
            at = at.wrapping_mul(7).wrapping_add(turn * 31 + level) % 5_000;
            way.push(at);
        }
        // The leaf is one of several functions that its caller calls.
        way.push(5_000 + (at * 7 + random.below(9)) % 600);
        if known.insert(way.clone()) {
            let frame = |at: u64| frames.entry(at).or_insert_with(|| Arc::new(method(at))).clone();
            out.push(Arc::new(Stack { frames: way.into_iter().map(frame).collect(), end: StackEnd::Root }));
        }
    }
    out
}

fn method(at: u64) -> Frame {
    let name = format!("org.apache.spark.sql.execution.part{}.Operator{at}.method{}", at % 40, at % 11);
    Frame { line: (at % 900) as u32, ..Frame::new(FrameKind::JavaCompiled, name, "") }
}

fn executor(number: u64) -> LabelSet {
    [
        (LabelKey::App, "app-20261122080000-0001".to_owned()),
        (LabelKey::AppName, "nightly".to_owned()),
        (LabelKey::ServiceName, "nightly".to_owned()),
        (LabelKey::Role, "executor".to_owned()),
        (LabelKey::Executor, number.to_string()),
        (LabelKey::Node, "node-1".to_owned()),
        (LabelKey::Deploy, "yarn".to_owned()),
        (LabelKey::Process, "java".to_owned()),
        (LabelKey::User, "spark".to_owned()),
        (LabelKey::Pid, (4000 + number).to_string()),
    ]
    .into_iter()
    .fold(LabelSetBuilder::new(), |set, (key, value)| set.set(key, value))
    .build()
}

/// A core and the task that it works on.
struct Core {
    stage: u64,
    task: u64,
    until_ms: u64,
    labels: Arc<LabelSet>,
}

/// Makes windows.
pub struct Hour {
    random: Random,
    stacks: Vec<Arc<Stack>>,
    executors: Vec<LabelSet>,
    of_stage: Vec<Vec<usize>>,
    /// Running sums of 1/k.
    sums: Vec<f64>,
    cores: Vec<Option<Core>>,
    beside: Beside,
    next_task: u64,
    next: u64,
}

impl Hour {
    /// At its beginning. Samples are of CPU time, and of these kinds.
    pub fn new(kinds: &[SampleKind]) -> Self {
        let mut random = Random(42);
        let stacks = stacks(&mut random);
        let of_stage = (0..STAGES)
            .map(|_| (0..400 + random.below(51)).map(|_| random.below(STACKS as u64) as usize).collect())
            .collect();
        let sums = (1..=450_u32).scan(0.0, |sum, k| {
            *sum += 1.0 / f64::from(k);
            Some(*sum)
        });
        Self {
            stacks,
            executors: (1..=EXECUTORS).map(executor).collect(),
            of_stage,
            sums: sums.collect(),
            cores: (0..EXECUTORS * CORES).map(|_| None).collect(),
            beside: Beside::new(kinds),
            next_task: 0,
            next: 0,
            random,
        }
    }

    /// How many tasks have begun.
    pub fn tasks(&self) -> u64 {
        self.next_task
    }

    /// Mean depth of the stacks.
    pub fn depth(&self) -> f64 {
        self.stacks.iter().map(|stack| stack.frames.len()).sum::<usize>() as f64 / self.stacks.len() as f64
    }

    fn core(&mut self, core: usize, now: u64) -> (Arc<LabelSet>, u64, u64) {
        let stage = now / 90_000;
        if let Some(Some(known)) = self.cores.get(core)
            && known.until_ms > now
            && known.stage == stage
        {
            return (known.labels.clone(), known.stage, known.task);
        }
        let task = self.next_task;
        self.next_task += 1;
        let set = LabelSetBuilder::from_set(&self.executors[core / CORES as usize]);
        let set = set.set(LabelKey::Stage, stage.to_string()).set(LabelKey::StageAttempt, "0");
        let set = set.set(LabelKey::TaskAttempt, "0").set(LabelKey::TaskIndex, (task % 1152).to_string());
        let set = set.set(LabelKey::Task, task.to_string()).set(LabelKey::ThreadClass, "task");
        let labels = Arc::new(set.build());
        let until_ms = now + 2_000 + self.random.below(6_001);
        self.cores[core] = Some(Core { stage, task, until_ms, labels: labels.clone() });
        (labels, stage, task)
    }
}

impl Iterator for Hour {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        if self.next >= WINDOWS {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let mut rows: BTreeMap<(u64, SampleKind, usize), Row> = BTreeMap::new();
        for tick in 0..990 {
            let now = number * 10_000 + tick * 10_000 / 990;
            for core in 0..self.cores.len() {
                let (labels, stage, task) = self.core(core, now);
                let own = &self.of_stage[stage as usize];
                let drawn = self.random.share() * self.sums[own.len() - 1];
                let rank = self.sums.partition_point(|sum| *sum < drawn).min(own.len() - 1);
                let (kind, stack) = (SampleKind::Cpu, own[rank]);
                let new = || empty(labels.clone(), self.stacks[stack].clone(), kind);
                add(rows.entry((task, kind, stack)).or_insert_with(new), PERIOD);
                for n in 0..self.beside.kinds() {
                    let Some(Drawn { kind, place, weight }) = self.beside.draw(n) else { continue };
                    let stack = own[place];
                    let new = || {
                        let labels = self.beside.labels((kind, stack), task, &labels);
                        empty(labels, self.beside.stack(kind, stack, &self.stacks[stack]), kind)
                    };
                    add(rows.entry((task, kind, stack)).or_insert_with(new), weight);
                }
            }
        }
        let second = number as i64 * 10;
        Some(Window {
            range: TimeRange { from: at(second), until: at(second + 10) },
            rows: rows.into_values().collect(),
            ledger: Vec::new(),
            pauses: Vec::new(),
            processes: Vec::new(),
            lost: LostCounts::default(),
            partial: false,
        })
    }
}

fn empty(labels: Arc<LabelSet>, stack: Arc<Stack>, kind: SampleKind) -> Row {
    Row { labels, stack, kind, count: 0, weight: 0 }
}

fn add(row: &mut Row, weight: u64) {
    row.count += 1;
    row.weight += weight;
}
