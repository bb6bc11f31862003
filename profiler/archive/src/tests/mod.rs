//! An archive in a directory: what it answers is what the store answers, whatever was broken off, joined, changed.

use super::copy::once::{once, once_to};
use super::*;
use emberscope_model::{
    Accounts, Detail, DropReason, Frame, FrameKind, LabelKey, LabelSet, LabelSetBuilder, LedgerRow,
    LedgerSums, LostCounts, MatchOp, Matcher, ProcessKey, ProcessRecord, Query, Row, SampleKind, Selection,
    Stack, StackEnd, TimeRange, WallTime, Window,
};
use emberscope_store::{
    AnswerLimits, DiskStore, DiskStoreConfig, Fsync, MANIFEST, RollUp, ShelfStore, Store, blocks_of,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, SystemTime};

mod compacting;
mod copying;
mod greedy;
mod hostile;
mod merging;
mod nodes;
mod reading;
mod words;

const S: u64 = 1_000_000_000;
/// The beginning of an hour.
const BASE: u64 = 1_699_999_200 * S;
const HOUR: u64 = 3600;

fn at(second: u64) -> WallTime {
    WallTime(BASE + second * S)
}

fn range(from: u64, until: u64) -> TimeRange {
    TimeRange { from: at(from), until: at(until) }
}

/// A URL below which archives are made, in place of directories: tests that look into the directory then fail.
const ELSEWHERE: &str = "EMBERSCOPE_TEST_ARCHIVE";

/// A place to work in: stores of nodes, an archive, a cache.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(place.archive()).unwrap();
        place
    }
    fn store(&self, node: &str) -> PathBuf {
        self.0.path().join(format!("store-{node}"))
    }
    fn archive(&self) -> PathBuf {
        self.0.path().join("archive")
    }
    fn url(&self) -> String {
        match std::env::var(ELSEWHERE) {
            Ok(url) => format!("{url}/{}", self.0.path().file_name().unwrap().display()),
            Err(_) => format!("file://{}", self.archive().display()),
        }
    }
    fn config(&self, node: &str) -> ArchiverConfig {
        ArchiverConfig::new(self.store(node), node, self.url())
    }
    /// A daemon's store.
    fn open(&self, node: &str) -> DiskStore {
        let (memory_bytes, retention_age) = (usize::MAX, Duration::MAX);
        let config = DiskStoreConfig::new(self.store(node));
        DiskStore::open(DiskStoreConfig { fsync: Fsync::Never, memory_bytes, retention_age, ..config })
            .unwrap()
    }
    /// Copies all there is, as one that was started just now.
    fn copy(&self, node: &str) -> ArchiveUsage {
        run(once(self.config(node))).unwrap()
    }
    /// The same, broken off after some changes.
    fn copy_some(&self, node: &str, changes: i64) -> Result<ArchiveUsage, String> {
        let mut remote = Remote::open(&self.url(), true).unwrap();
        remote.changes = Some(Arc::new(AtomicI64::new(changes)));
        run(once_to(self.config(node), remote))
    }
    fn reader_with(&self, change: impl FnOnce(ReaderConfig) -> ReaderConfig) -> ShelfStore<Reader> {
        let cache = tempfile::tempdir_in(self.0.path()).unwrap().keep();
        let config = ReaderConfig { refresh: Duration::ZERO, ..ReaderConfig::new(self.url(), cache) };
        ShelfStore::new(
            Reader::open(change(config)).unwrap(),
            Duration::from_secs(10),
            AnswerLimits::default(),
        )
    }
    /// One that has seen nothing yet.
    fn reader(&self) -> ShelfStore<Reader> {
        self.reader_with(|config| config)
    }
    /// All objects, by name.
    fn objects(&self) -> Vec<String> {
        let remote = Remote::open(&self.url(), true).unwrap();
        let all = run(remote.list("v1", usize::MAX)).unwrap();
        all.into_iter().map(|object| object.name).collect()
    }
    fn count(&self, below: &str) -> usize {
        self.objects().iter().filter(|name| name.starts_with(below)).count()
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn labels(pairs: &[(LabelKey, &str)]) -> Arc<LabelSet> {
    Arc::new(pairs.iter().fold(LabelSetBuilder::new(), |set, (k, v)| set.set(*k, *v)).build())
}

fn executor(node: &str, number: u64) -> Arc<LabelSet> {
    let (app, pid) = (["app-1", "app-2"][number as usize % 2], (number + 100).to_string());
    let number = number.to_string();
    labels(&[
        (LabelKey::Node, node),
        (LabelKey::App, app),
        (LabelKey::Role, "executor"),
        (LabelKey::Executor, &number),
        (LabelKey::Pid, &pid),
    ])
}

fn task(process: &LabelSet, stage: u64, task: u64) -> Arc<LabelSet> {
    let set = LabelSetBuilder::from_set(process).set(LabelKey::Task, task.to_string());
    let set = set.set(LabelKey::Stage, stage.to_string()).set(LabelKey::ThreadClass, "task");
    Arc::new(set.build())
}

fn stack(node: &str, number: u64) -> Arc<Stack> {
    let mut frames = vec![Arc::new(Frame::new(FrameKind::JavaCompiled, "java.lang.Thread.run", ""))];
    frames.extend((0..number % 7).map(|depth| {
        let path = number >> depth;
        let name =
            if path.is_multiple_of(5) { format!("a.Only.on_{node}") } else { format!("a.B.m{}", path % 9) };
        Arc::new(Frame { line: path as u32 % 3, ..Frame::new(FrameKind::JavaCompiled, name, "") })
    }));
    let end = [StackEnd::Root, StackEnd::Root, StackEnd::NoFramePointer][number as usize % 3];
    Arc::new(Stack { frames: frames.into(), end })
}

fn window(node: &str, from: u64) -> Window {
    let mut out = Window {
        range: range(from, from + 10),
        rows: Vec::new(),
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    };
    out.lost.0[DropReason::RingFullSample as usize] = from / 10 % 3;
    for number in 0..3 {
        let who = executor(node, number);
        let key = ProcessKey { pid: number as u32 + 100, start_ticks: 7 };
        let program = format!("main-{number}");
        let record =
            ProcessRecord { key, labels: who.clone(), host: String::new(), cores: 4, program, jvm: None };
        out.processes.push(Arc::new(record));
        for slot in 0..4 {
            let labels = task(&who, from / 90, from / 40 * 4 + slot);
            for path in 0..5 {
                let count = 1 + (from / 10 + slot + path) % 6;
                out.rows.push(Row {
                    labels: labels.clone(),
                    stack: stack(node, from / 10 * 3 + slot * 11 + path),
                    kind: SampleKind::Cpu,
                    count,
                    weight: count * 10_101_010 + slot,
                });
            }
            let accounts = Accounts { cpu_ns: from + slot, ..Accounts::default() };
            let sums = LedgerSums { accounts, wall_ns: 5, begun: 1 };
            out.ledger.push(LedgerRow { labels, sums, seen: range(from, from + 7) });
        }
    }
    out
}

/// An hour of each of the nodes a and b, in the archive.
fn two_hours() -> Place {
    let place = Place::new();
    for node in ["a", "b"] {
        let store = place.open(node);
        fill(&store, node, 0, HOUR);
        store.settle();
        place.copy(node);
    }
    place
}

/// Windows of ten seconds from one second to another.
fn fill(store: &DiskStore, node: &str, from: u64, until: u64) {
    for second in (from..until).step_by(10) {
        store.append(window(node, second));
    }
}

/// Waits until that many blocks are written; the open part stays open.
fn written(store: &DiskStore, dir: &Path, blocks: usize) {
    let begun = std::time::Instant::now();
    let journals = || emberscope_store::journals_of(dir).unwrap().len();
    while store.disk().unwrap().blocks < blocks || journals() > 1 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the blocks are not written");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn query(from: u64, until: u64, matchers: &[(LabelKey, &str)], group: &[LabelKey]) -> Query {
    let matcher =
        |(key, value): &(LabelKey, &str)| Matcher { key: *key, op: MatchOp::In(vec![value.to_string()]) };
    Query {
        range: range(from, until),
        selection: Selection { matchers: matchers.iter().map(matcher).collect() },
        kind: SampleKind::Cpu,
        group: group.to_vec(),
        detail: Detail { lines: true, kinds: true },
    }
}

/// Everything that a store tells of a selection, in an order of its own.
fn told(store: &dyn Store, query: &Query) -> String {
    let answer = store.merge(query).unwrap();
    let mut paths: Vec<(String, u64, u64)> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for node in &answer.tree.nodes {
        let parent = names.get(node.parent as usize).cloned().unwrap_or_default();
        let name = format!("{parent};{:?}", node.frame);
        names.push(name.clone());
        paths.push((name, node.self_count, node.self_weight));
    }
    paths.sort();
    let by = [LabelKey::Node, LabelKey::Stage];
    format!(
        "{:?}\n{:?}\n{paths:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        answer.range,
        answer.quality,
        store.values(query, LabelKey::Stage).unwrap(),
        store.series(query, Duration::from_secs(60), &by).unwrap(),
        store.ledger(query.range, &query.selection, &by).unwrap(),
        store.processes(query.range, &query.selection),
    )
}

/// Questions of all kinds, over a whole store of two hours and a bit.
fn questions() -> Vec<Query> {
    use LabelKey::{App, Executor, Node, Stage, Task};
    vec![
        query(0, 3 * HOUR, &[], &[]),
        query(0, 3 * HOUR, &[(App, "app-1")], &[Stage, Task]),
        query(HOUR - 60, HOUR + 90, &[(Executor, "2")], &[Node]),
        query(2 * HOUR, 3 * HOUR, &[(Stage, "85")], &[Task]),
        query(5 * HOUR, 6 * HOUR, &[], &[]),
    ]
}

fn same(store: &dyn Store, other: &dyn Store) {
    for question in questions() {
        let (ours, theirs) = (told(store, &question), told(other, &question));
        assert_eq!(ours, theirs, "{question:?}");
    }
}
