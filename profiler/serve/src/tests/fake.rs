//! A small store on a list of windows, and the windows that the tests ask about: two apps of one name and
//! one of another, an executor with Python beside it, a driver, and a neighbour that is not Spark's.

use emberscope_model::{
    Answer, DropReason, Frame, FrameKind, JvmFacts, LabelKey, LabelSet, LabelSetBuilder, LabelTotal,
    LedgerSums, LedgerTotal, LostCounts, Missing, NameSource, Node, ProcessKey, ProcessRecord, Quality,
    Query, Row, SampleKind, Selection, SeriesPoint, Stack, StackEnd, TimeRange, Tree, UnknownReason,
    WallTime, Window,
};
use emberscope_store::{LabelledSeries, Store, StoreError, StoreUsage};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Start of the first window: 2026-11-21T10:00:00Z.
pub const START: u64 = 1_795_255_200;
const LENGTH: Duration = Duration::from_secs(10);
/// A name that would break out of every format that does not escape.
pub const EVIL: &str = "</script><script>alert(\"1\")&'\n;\u{1}";

#[derive(Default)]
pub struct FakeStore {
    windows: Mutex<Vec<Window>>,
    /// While held by a test, every query waits.
    pub hold: Mutex<()>,
    /// A merge is refused as too large.
    pub too_large: bool,
    /// What every answer lacks.
    pub missing: Missing,
}

impl FakeStore {
    fn lock(&self) -> MutexGuard<'_, Vec<Window>> {
        drop(self.hold.lock().unwrap());
        self.windows.lock().unwrap()
    }
}

fn seconds(s: u64) -> WallTime {
    WallTime::from_millis(s * 1000)
}

fn rounded(range: TimeRange) -> TimeRange {
    TimeRange { from: range.from.floor(LENGTH), until: range.until.ceil(LENGTH) }
}

impl Store for FakeStore {
    fn append(&self, window: Window) {
        self.lock().push(window);
    }
    fn span(&self) -> Option<TimeRange> {
        let windows = self.lock();
        Some(TimeRange { from: windows.first()?.range.from, until: windows.last()?.range.until })
    }
    fn window_length(&self) -> Duration {
        LENGTH
    }
    fn merge(&self, query: &Query) -> Result<Answer, StoreError> {
        if self.too_large {
            return Err(StoreError::TooLarge { what: "nodes", limit: 7 });
        }
        let (mut tree, mut quality, mut count) = (Tree { nodes: Vec::new() }, Quality::default(), 0);
        (quality.kind, quality.missing) = (query.kind, self.missing.clone());
        tree.nodes.push(node(Arc::new(Frame::new(FrameKind::Label, "total", "")), 0));
        for window in self.lock().iter().filter(|w| w.range.overlaps(&query.range)) {
            count += 1;
            quality.lost.add(&window.lost);
            for row in
                window.rows.iter().filter(|r| query.kind.holds(r.kind) && query.selection.matches(&r.labels))
            {
                add(&mut tree, row, &query.group);
                quality.samples += row.count;
                quality.frames += row.count * row.stack.frames.len() as u64;
                quality.truncated += if row.stack.truncated() { row.count } else { 0 };
                quality.unnamed_frames += row.count * row.stack.unnamed() as u64;
            }
        }
        Ok(Answer { tree, range: rounded(query.range), windows: count, quality })
    }
    fn totals(&self, query: &Query) -> Result<Vec<LabelTotal>, StoreError> {
        let mut out: BTreeMap<Arc<LabelSet>, LabelTotal> = BTreeMap::new();
        for window in self.lock().iter().filter(|w| w.range.overlaps(&query.range)) {
            for row in
                window.rows.iter().filter(|r| query.kind.holds(r.kind) && query.selection.matches(&r.labels))
            {
                let labels = row.labels.clone();
                let total = out.entry(labels.clone()).or_insert(LabelTotal {
                    labels,
                    count: 0,
                    weight: 0,
                    seen: window.range,
                });
                total.count += row.count;
                total.weight += row.weight;
                total.seen.cover(&window.range);
            }
        }
        Ok(out.into_values().collect())
    }
    fn series(
        &self,
        query: &Query,
        step: Duration,
        by: &[LabelKey],
    ) -> Result<Vec<LabelledSeries>, StoreError> {
        let mut out: BTreeMap<Vec<String>, BTreeMap<u64, SeriesPoint>> = BTreeMap::new();
        for window in self.lock().iter().filter(|w| w.range.overlaps(&query.range)) {
            for row in
                window.rows.iter().filter(|r| query.kind.holds(r.kind) && query.selection.matches(&r.labels))
            {
                let key = by.iter().map(|k| row.labels.get(*k).to_owned()).collect();
                let time_ms = window.range.from.floor(step).as_millis();
                let points = out.entry(key).or_default();
                let point = points.entry(time_ms).or_insert(SeriesPoint { time_ms, count: 0, weight: 0 });
                point.count += row.count;
                point.weight += row.weight;
            }
        }
        let labelled =
            |values: Vec<String>| by.iter().copied().zip(values.into_iter().map(Arc::from)).collect();
        Ok(out.into_iter().map(|(v, p)| (labelled(v), p.into_values().collect())).collect())
    }
    fn processes(&self, range: TimeRange, selection: &Selection) -> Vec<Arc<ProcessRecord>> {
        let mut out = BTreeMap::new();
        for window in self.lock().iter().filter(|w| w.range.overlaps(&range)) {
            for process in window.processes.iter().filter(|p| selection.matches(&p.labels)) {
                out.insert(process.key, process.clone());
            }
        }
        out.into_values().collect()
    }
    fn ledger(
        &self,
        range: TimeRange,
        selection: &Selection,
        by: &[LabelKey],
    ) -> Result<Vec<LedgerTotal>, StoreError> {
        let mut out: BTreeMap<Vec<Arc<str>>, (LedgerSums, TimeRange)> = BTreeMap::new();
        for window in self.lock().iter().filter(|w| w.range.overlaps(&range)) {
            for line in window.ledger.iter().filter(|line| selection.matches(&line.labels)) {
                let key = by.iter().map(|k| Arc::from(line.labels.get(*k))).collect();
                let (sums, seen) = out.entry(key).or_insert((LedgerSums::default(), line.seen));
                sums.add(&line.sums);
                seen.cover(&line.seen);
            }
        }
        let labelled = |values: Vec<Arc<str>>| by.iter().copied().zip(values).collect();
        Ok(out
            .into_iter()
            .map(|(values, (sums, seen))| LedgerTotal { labels: labelled(values), sums, seen })
            .collect())
    }
    fn relabel(&self, _: &LabelSet, _: &Arc<LabelSet>) {}
    fn forget(&self, _: &LabelSet) {}
    fn usage(&self) -> StoreUsage {
        StoreUsage {
            windows: self.lock().len(),
            bytes: 1234,
            dropped_for_bytes: 2,
            dropped_for_age: 3,
            dropped_for_full: 0,
            ..StoreUsage::default()
        }
    }
}

fn node(frame: Arc<Frame>, parent: u32) -> Node {
    Node::below(parent, frame)
}

fn add(tree: &mut Tree, row: &Row, group: &[LabelKey]) {
    let prefix = group
        .iter()
        .map(|key| Arc::new(Frame::new(FrameKind::Label, format!("{key}={}", row.labels.get(*key)), "")));
    let mut at = 0;
    tree.nodes[0].total_count += row.count;
    tree.nodes[0].total_weight += row.weight;
    for frame in prefix.chain(row.stack.frames.iter().cloned()) {
        let found = (1..tree.nodes.len())
            .find(|i| tree.nodes[*i].parent as usize == at && tree.nodes[*i].frame == frame);
        let next = found.unwrap_or_else(|| {
            tree.nodes.push(node(frame, at as u32));
            tree.nodes.len() - 1
        });
        tree.nodes[next].total_count += row.count;
        tree.nodes[next].total_weight += row.weight;
        at = next;
    }
    tree.nodes[at].self_count += row.count;
    tree.nodes[at].self_weight += row.weight;
}

fn labels(pairs: &[(LabelKey, &str)]) -> Arc<LabelSet> {
    Arc::new(pairs.iter().fold(LabelSetBuilder::new(), |b, (k, v)| b.set(*k, *v)).build())
}

fn row(labels: &Arc<LabelSet>, frames: &[Frame], end: StackEnd, count: u64) -> Row {
    let frames = frames.iter().cloned().map(Arc::new).collect();
    let stack = Arc::new(Stack { frames, end });
    Row { labels: labels.clone(), stack, kind: SampleKind::Cpu, count, weight: count * 10_000_000 }
}

/// Three windows from [`START`]: in each, 60 samples of app-1, 20 of app-2, 10 of a driver, 10 of others.
pub fn three_windows() -> FakeStore {
    use LabelKey::*;
    let spark = |app, name, role, executor, pid: &str, stage| {
        labels(&[
            (App, app),
            (AppName, name),
            (User, "ann"),
            (Role, role),
            (Executor, executor),
            (Pid, pid),
            (Stage, stage),
            (Node, "n1"),
            (Deploy, "standalone"),
            (ThreadClass, "task"),
            (ServiceName, name),
        ])
    };
    let task = spark("app-1", "etl", "executor", "1", "11", "3");
    let other_stage = spark("app-1", "etl", "executor", "1", "11", "4");
    let python = spark("app-1", "etl", "python", "1", "12", "3");
    let twin = spark("app-2", "etl", "executor", "1", "21", "0");
    let driver = spark("app-3", EVIL, "driver", "", "31", "");
    let neighbour =
        labels(&[(Process, "cron"), (Pid, "41"), (Role, "other"), (Node, "n1"), (ServiceName, "cron")]);
    let java = |name| Frame::new(FrameKind::JavaCompiled, name, "");
    let record = |pid, labels: &Arc<LabelSet>, jvm| {
        Arc::new(ProcessRecord {
            key: ProcessKey { pid, start_ticks: 7 },
            labels: labels.clone(),
            host: if pid == 11 { "h1".into() } else { String::new() },
            cores: if pid == 11 { 4 } else { 0 },
            program: format!("program {pid}"),
            jvm,
        })
    };
    // A process's record carries no thread's labels.
    let own =
        |set: &LabelSet| Arc::new(LabelSetBuilder::from_set(set).set(Stage, "").set(ThreadClass, "").build());
    let jvm = JvmFacts { version: "17.0.15".into(), names: NameSource::Asked };
    let store = FakeStore::default();
    for n in 0..3u64 {
        let from = seconds(START + n * 10);
        let mut lost = LostCounts::default();
        lost.0[DropReason::RingFullSample as usize] = 1;
        store.append(Window {
            ledger: Vec::new(),
            pauses: Vec::new(),
            range: TimeRange { from, until: from.plus(LENGTH) },
            rows: vec![
                row(&task, &[java("Main.run"), java("Main.sort"), java("Main.run")], StackEnd::Root, 40),
                row(&other_stage, &[java("Main.run")], StackEnd::Root, 10),
                row(&python, &[Frame::new(FrameKind::Python, "udf", "job.py")], StackEnd::Root, 10),
                row(&twin, &[java("Twin.run")], StackEnd::Root, 20),
                row(&driver, &[java(EVIL)], StackEnd::DepthLimit, 10),
                row(&neighbour, &[Frame::unknown(UnknownReason::NoSymbol, "")], StackEnd::Root, 10),
            ],
            processes: vec![
                record(11, &own(&task), Some(jvm.clone())),
                record(12, &own(&python), None),
                record(
                    21,
                    &own(&twin),
                    Some(JvmFacts { version: "8".into(), names: NameSource::None("JDK 8".into()) }),
                ),
                record(31, &own(&driver), None),
                record(41, &own(&neighbour), None),
            ],
            lost,
            partial: false,
        });
    }
    store
}
