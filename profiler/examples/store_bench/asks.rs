//! Questions about the hour: each time with another selection, nothing of an answer kept.

use super::figures::{Line, Times, lines};
use super::hour::{EXECUTORS, Random, STAGES, at};
use super::ingest::{config, seconds};
use emberscope_model::{Detail, LabelKey, MatchOp, Matcher, Query, SampleKind, Selection, TimeRange};
use emberscope_store::{DiskStore, DiskStoreConfig, Store};
use rustix::fs::{Advice, fadvise};
use rustix::time::ClockId;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// Nodes of a flame graph.
const NODES: usize = 16_384;

/// A question.
pub fn query(range: TimeRange, matchers: Vec<Matcher>) -> Query {
    Query {
        range,
        selection: Selection { matchers },
        kind: SampleKind::Cpu,
        group: Vec::new(),
        detail: Detail::default(),
    }
}

fn is(key: LabelKey, value: impl Into<String>) -> Matcher {
    Matcher { key, op: MatchOp::In(vec![value.into()]) }
}

fn range(from: i64, until: i64) -> TimeRange {
    TimeRange { from: at(from), until: at(until) }
}

/// The hour and some of the empty time around it: another question each time, the same samples.
fn around(n: u64) -> TimeRange {
    range(-10 * (n as i64 + 1), 3600 + 10 * (n as i64 % 7))
}

/// Milliseconds on the clock and on all CPUs.
fn one(ask: impl FnOnce() -> Result<(), String>) -> Result<(f64, f64), String> {
    let (begun, cpu) = (Instant::now(), seconds(ClockId::ProcessCPUTime));
    ask()?;
    Ok((begun.elapsed().as_secs_f64() * 1e3, (seconds(ClockId::ProcessCPUTime) - cpu) * 1e3))
}

fn timed(times: u64, mut ask: impl FnMut(u64) -> Result<(), String>) -> Result<Times, String> {
    let mut out = Vec::new();
    for n in 0..times {
        out.push(one(|| ask(n))?);
    }
    Ok(Times::new(out))
}

/// Takes a store's files out of the kernel's cache.
fn evict(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            evict(&entry.path());
        } else if let Ok(file) = File::open(entry.path()) {
            let _ = file.sync_all();
            let _ = fadvise(&file, 0, None, Advice::DontNeed);
        }
    }
}

/// A flame graph as it is drawn: its largest nodes.
fn flame(store: &DiskStore, query: Query) -> Result<(), String> {
    let (shown, _) = store.merge_largest(&query, NODES).map_err(|error| error.to_string())?;
    if shown.tree.nodes.len() < 2 { Err("the answer is empty".to_owned()) } else { Ok(()) }
}

/// Asks.
pub fn run(dir: &Path, times: u64, cache_mib: usize) -> Result<Vec<Line>, String> {
    let config = || DiskStoreConfig { cache_bytes: cache_mib << 20, ..config(dir) };
    let open = || DiskStore::open(config()).map_err(|error| error.to_string());
    let says = |error: emberscope_store::StoreError| error.to_string();
    let mut all = Vec::new();

    let mut cold = Vec::new();
    for n in 0..times.div_ceil(10) {
        evict(dir);
        let store = open()?;
        cold.push(one(|| flame(&store, query(around(n), Vec::new())))?);
    }
    let cold = Times::new(cold);
    let mut row = lines("the whole hour, cold", &cold, Some(300.0), None, Some(1250.0));
    row.truncate(1);
    all.extend(row);

    let store = open()?;
    let nodes = store.merge(&query(around(0), Vec::new())).map_err(says)?.tree.nodes.len();
    println!("the whole hour's tree has {nodes} nodes, of which {NODES} are shown");
    let merge = |range: TimeRange, matchers: Vec<Matcher>| flame(&store, query(range, matchers));
    let mut random = Random(7);
    let whole = timed(times, |n| merge(around(n), Vec::new()))?;
    let mut rows = lines("the whole hour", &whole, Some(30.0), Some(60.0), Some(777.0));
    if let Some(p99) = rows.last_mut() {
        p99.pyroscope = Some(833.0);
    }
    all.extend(rows);
    let few = timed(times, |n| merge(range(10 * (n as i64 + 1), 3600), Vec::new()))?;
    all.extend(lines("the hour without its first minutes", &few, None, None, None));
    let executor = timed(times, |n| {
        let who = is(LabelKey::Executor, (1 + n % EXECUTORS).to_string());
        merge(around(n), vec![who])
    })?;
    all.extend(lines("one executor", &executor, Some(15.0), None, Some(173.0)));
    let stage = timed(times, |n| merge(around(n), vec![is(LabelKey::Stage, (n % STAGES).to_string())]))?;
    all.extend(lines("one stage", &stage, Some(10.0), None, Some(94.0)));
    let task = timed(times, |n| {
        let task = random.below(40_000);
        merge(around(n), vec![is(LabelKey::Task, task.to_string())])
    })?;
    all.extend(lines("one task", &task, Some(5.0), None, None));
    let unplanned = timed(times, |n| {
        let from = (n as i64 * 130) % 1800;
        let who = vec![is(LabelKey::Role, "executor"), is(LabelKey::ThreadClass, "task")];
        merge(range(from, from + 1800), who)
    })?;
    all.extend(lines("role, thread_class and half the hour", &unplanned, None, Some(150.0), None));
    let series = timed(times, |n| {
        let step = Duration::from_secs(15);
        store.series(&query(around(n), Vec::new()), step, &[LabelKey::Stage]).map(drop).map_err(says)
    })?;
    all.extend(lines("series by stage, step 15 s", &series, None, Some(20.0), Some(131.0)));
    let values = timed(times, |n| {
        store.values(&query(around(n), Vec::new()), LabelKey::Task).map(drop).map_err(says)
    })?;
    all.extend(lines("values of task", &values, None, Some(10.0), Some(84.0)));
    Ok(all)
}
