//! The generated hour: what it takes on disk and how long answers take. A measurement, not a test.
//!
//! One app, 16 executors x 4 cores, 99 Hz, 40 stages of 90 s, tasks of 2 to 8 s, 4,000 stacks 40 to 80 deep,
//! 400 to 450 a stage, Zipf 1.0. Figures are of the store alone: no HTTP, no rendering.

use super::*;
use std::collections::HashMap;
use std::time::Instant;

/// A generator of numbers that are the same each time (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Stacks that part at each depth as calls do: a path down a tree of some thousands of methods.
fn stacks(random: &mut Random) -> Vec<Arc<Stack>> {
    let mut frames: HashMap<(u64, u64), Arc<Frame>> = HashMap::new();
    let mut stack = || {
        let depth = 40 + random.below(41);
        let depth = depth.max(40 + random.below(41));
        let mut path = 0_u64;
        let frames = (0..depth).map(|level| {
            // Where most calls go on alike, some part.
            let turn = if random.below(12) == 0 { 1 + random.below(5) } else { 0 };
            path = path.wrapping_mul(7).wrapping_add(turn + level) % 5_000;
            let name = || {
                format!("org.apache.spark.sql.execution.part{}.Operator{path}.method{}", path % 40, path % 11)
            };
            let made = || {
                Arc::new(Frame {
                    line: (path % 900) as u32,
                    ..Frame::new(FrameKind::JavaCompiled, name(), "")
                })
            };
            frames.entry((0, path)).or_insert_with(made).clone()
        });
        Arc::new(Stack { frames: frames.collect(), end: StackEnd::Root })
    };
    (0..4_000).map(|_| stack()).collect()
}

struct Slot {
    stage: u64,
    task: u64,
    until: u64,
    labels: Arc<LabelSet>,
}

/// Calls `take` with each of the hour's windows.
fn hour(mut take: impl FnMut(Window)) {
    let mut random = Random(42);
    let stacks = stacks(&mut random);
    let executors: Vec<LabelSet> = (1..=16)
        .map(|executor: u64| {
            let set = LabelSetBuilder::new().set(LabelKey::App, "app-20261122080000-0001");
            let set = set.set(LabelKey::AppName, "nightly").set(LabelKey::ServiceName, "nightly");
            let set = set.set(LabelKey::Role, "executor").set(LabelKey::Executor, executor.to_string());
            let set = set
                .set(LabelKey::Node, "node-1")
                .set(LabelKey::Deploy, "yarn")
                .set(LabelKey::Process, "java");
            set.set(LabelKey::User, "spark").set(LabelKey::Pid, (4000 + executor).to_string()).build()
        })
        .collect();
    let of_stage: Vec<Vec<usize>> = (0..40)
        .map(|_| (0..400 + random.below(51)).map(|_| random.below(4_000) as usize).collect())
        .collect();
    // Running sums of 1/k.
    let sums: Vec<f64> = (1..=450)
        .scan(0.0, |sum, k| {
            *sum += 1.0 / f64::from(k);
            Some(*sum)
        })
        .collect();
    let mut next_task = 0;
    let mut slots: Vec<Option<Slot>> = (0..64).map(|_| None).collect();
    for number in 0..360_u64 {
        let mut counts: HashMap<(usize, usize), (Arc<LabelSet>, u64)> = HashMap::new();
        for tick in 0..990_u64 {
            let now = number * 10_000 + tick * 10_000 / 990;
            let stage = now / 90_000;
            for (core, slot) in slots.iter_mut().enumerate() {
                if slot.as_ref().is_none_or(|slot| slot.until <= now || slot.stage != stage) {
                    let (executor, task) = (&executors[core / 4], next_task);
                    next_task += 1;
                    let set = LabelSetBuilder::from_set(executor).set(LabelKey::Stage, stage.to_string());
                    let set = set.set(LabelKey::StageAttempt, "0").set(LabelKey::TaskAttempt, "0");
                    let set = set.set(LabelKey::TaskIndex, (task % 1152).to_string());
                    let set = set.set(LabelKey::Task, task.to_string()).set(LabelKey::ThreadClass, "task");
                    let until = now + 2_000 + random.below(6_001);
                    *slot = Some(Slot { stage, task, until, labels: Arc::new(set.build()) });
                }
                let Some(slot) = slot else { continue };
                let own = &of_stage[stage as usize];
                let at = random.share() * sums[own.len() - 1];
                let rank = sums.partition_point(|sum| *sum < at).min(own.len() - 1);
                let entry = counts.entry((slot.task as usize, own[rank]));
                entry.or_insert_with(|| (slot.labels.clone(), 0)).1 += 1;
            }
        }
        let mut rows: Vec<((usize, usize), (Arc<LabelSet>, u64))> = counts.into_iter().collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        let rows = rows.into_iter().map(|((_, stack), (labels, count))| {
            let (stack, weight) = (stacks[stack].clone(), count * WEIGHT);
            Row { labels, stack, kind: SampleKind::Cpu, count, weight }
        });
        let (lost, ledger, processes) = (LostCounts::default(), Vec::new(), Vec::new());
        let range = range(number * 10, number * 10 + 10);
        take(Window { range, rows: rows.collect(), ledger, processes, lost, partial: false });
    }
}

/// CPU seconds of this process, and its most resident memory in MB.
fn used() -> (f64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    (ticks / 100.0, peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024)
}

fn timed(what: &str, mut ask: impl FnMut(u64)) {
    let mut times: Vec<f64> = (0..40)
        .map(|n| {
            let start = Instant::now();
            ask(n);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{what:<44} p50 {:>8.2} ms  p99 {:>8.2} ms", times[20], times[39]);
}

#[test]
#[ignore = "a measurement: run it with --release --ignored --nocapture"]
fn the_generated_hour() {
    let dir = tempfile::tempdir().unwrap();
    let config = DiskStoreConfig { memory_bytes: 96 << 20, cache_bytes: 32 << 20, ..config(dir.path()) };
    let store = DiskStore::open(config.clone()).unwrap();
    let (mut rows, mut samples, mut own) = (0, 0, 0.0);
    hour(|window| {
        rows += window.rows.len();
        samples += window.rows.iter().map(|row| row.count).sum::<u64>();
        let before = used().0;
        store.append(window);
        own += used().0 - before;
    });
    let in_memory = store.usage().bytes;
    let before = used().0;
    store.settle();
    own += used().0 - before;
    let disk = store.disk().unwrap();
    println!("rows {rows}, samples {samples}, blocks {}, open part {in_memory} bytes", disk.blocks);
    println!("bytes a sample {:.3} ({} bytes)", disk.bytes as f64 / samples as f64, disk.bytes);
    for block in std::fs::read_dir(dir.path().join("blocks")).unwrap() {
        for file in std::fs::read_dir(block.unwrap().path()).unwrap() {
            let file = file.unwrap();
            println!("  {:<28} {:>9}", file.file_name().to_string_lossy(), file.metadata().unwrap().len());
        }
    }
    println!("ingest CPU {own:.1} s (10 ms ticks), peak resident with the generator {} MB", used().1);
    drop(store);
    let store = DiskStore::open(config).unwrap();
    let all = query(0, 3600);
    let start = Instant::now();
    let nodes = store.merge(&all).unwrap().tree.nodes.len();
    println!("cold: the whole hour {:.1} ms, {nodes} nodes", start.elapsed().as_secs_f64() * 1e3);
    let only = |key, value: u64| {
        let op = MatchOp::In(vec![value.to_string()]);
        Query { selection: Selection { matchers: vec![Matcher { key, op }] }, ..all.clone() }
    };
    timed("whole hour", |_| drop(store.merge(&all).unwrap()));
    timed("one executor", |n| drop(store.merge(&only(LabelKey::Executor, 1 + n % 16)).unwrap()));
    timed("one stage", |n| drop(store.merge(&only(LabelKey::Stage, n % 40)).unwrap()));
    timed("one task", |n| drop(store.merge(&only(LabelKey::Task, n * 1000)).unwrap()));
    timed("role, thread class, half the hour", |n| {
        let is = |key, value: &str| Matcher { key, op: MatchOp::In(vec![value.to_owned()]) };
        let matchers = vec![is(LabelKey::Role, "executor"), is(LabelKey::ThreadClass, "task")];
        let range = range(n * 10, 1800 + n * 10);
        drop(store.merge(&Query { range, selection: Selection { matchers }, ..all.clone() }).unwrap());
    });
    timed("series by stage, step 15 s", |n| {
        let query = query(n * 10, 3600);
        drop(store.series(&query, Duration::from_secs(15), &[LabelKey::Stage]).unwrap());
    });
    timed("totals (values of task)", |_| drop(store.totals(&all).unwrap()));
}
