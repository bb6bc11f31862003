//! The generated hour of many nodes: one application, an executor of four cores on each, different on each.
//!
//! 99 Hz, 40 stages of 90 s, tasks of 4 s, 4,000 stacks 30 to 60 deep of which a stage has 400; which of them a
//! sample has is drawn by a power law, independently, from a seed of the node. One stack in a hundred ends in three
//! frames that no other node has. Out: windows, one at a time.

use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSet, LabelSetBuilder, LostCounts, Row, SampleKind, Stack, StackEnd,
    TimeRange, WallTime, Window,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The hour's first instant, nanoseconds since 1970: a full hour of the wall clock.
pub const BASE: u64 = 1_795_334_400 * 1_000_000_000;
/// Windows of ten seconds.
pub const WINDOWS: u64 = 360;
/// The application.
pub const APP: &str = "app-20261122080000-0001";
const CORES: u64 = 4;
const STAGES: u64 = 40;
const STACKS: u64 = 4_000;
const OF_STAGE: u64 = 400;
/// Frames of a node's own, in the stacks that have them.
const OWN: u64 = 3;
const SAMPLES: u64 = 990;
const PERIOD: u64 = 10_101_010;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// One of `OF_STAGE`, the first most often.
    fn rank(&mut self) -> u64 {
        let share = (self.number() >> 11) as f64 / (1_u64 << 53) as f64;
        (OF_STAGE as f64).powf(share) as u64 - 1
    }
}

/// A node's hour.
pub struct Node {
    name: String,
    random: Random,
    stacks: HashMap<u64, Arc<Stack>>,
    process: LabelSet,
}

impl Node {
    /// The node of a number.
    pub fn new(number: u64) -> Self {
        let name = format!("node-{number:04}");
        let process = [
            (LabelKey::App, APP.to_owned()),
            (LabelKey::AppName, "nightly".to_owned()),
            (LabelKey::ServiceName, "nightly".to_owned()),
            (LabelKey::Role, "executor".to_owned()),
            (LabelKey::Executor, number.to_string()),
            (LabelKey::Node, name.clone()),
            (LabelKey::Process, "java".to_owned()),
            (LabelKey::Pid, (4000 + number).to_string()),
        ];
        let process =
            process.into_iter().fold(LabelSetBuilder::new(), |set, (key, value)| set.set(key, value));
        Self { name, random: Random(number), stacks: HashMap::new(), process: process.build() }
    }

    /// The node's name, as labels and the archive have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A window, and how many samples it has.
    pub fn window(&mut self, number: u64) -> (Window, u64) {
        let from = WallTime(BASE + number * 10_000_000_000);
        let range = TimeRange { from, until: WallTime(from.0 + 10_000_000_000) };
        let stage = number / 9 % STAGES;
        let mut rows = Vec::new();
        for core in 0..CORES {
            let task = number / 2 * CORES * 5 + core;
            let set = LabelSetBuilder::from_set(&self.process).set(LabelKey::Stage, stage.to_string());
            let set = set.set(LabelKey::Task, task.to_string()).set(LabelKey::ThreadClass, "task");
            let labels = Arc::new(set.build());
            let mut counts: HashMap<u64, u64> = HashMap::new();
            for _ in 0..SAMPLES {
                *counts.entry(self.random.rank()).or_default() += 1;
            }
            for (rank, count) in counts {
                let stack = self.stack((stage * 97 + rank * 13) % STACKS);
                rows.push(Row {
                    labels: labels.clone(),
                    stack,
                    kind: SampleKind::Cpu,
                    count,
                    weight: count * PERIOD,
                });
            }
        }
        let (ledger, processes, lost) = (Vec::new(), Vec::new(), LostCounts::default());
        (Window { range, rows, ledger, pauses: Vec::new(), processes, lost, partial: false }, CORES * SAMPLES)
    }

    fn stack(&mut self, number: u64) -> Arc<Stack> {
        let name = &self.name;
        let make = || {
            let mut random = Random(number / 8);
            let depth = 30 + number % 31;
            let mut way = number / 200;
            let frames = (0..depth).map(|level| {
                if random.number().is_multiple_of(12) {
                    way = way.wrapping_mul(7).wrapping_add(level + number) % 3_000;
                }
                let own = if number % 100 == 7 && level + OWN >= depth { name.as_str() } else { "" };
                let method =
                    format!("org.apache.spark.sql.part{}.Operator{way}{own}.method{level}", way % 40);
                Arc::new(Frame::new(FrameKind::JavaCompiled, method, ""))
            });
            Arc::new(Stack { frames: frames.collect(), end: StackEnd::Root })
        };
        self.stacks.entry(number).or_insert_with(make).clone()
    }
}
