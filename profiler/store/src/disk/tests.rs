//! The store on disk: the same answers wherever the windows are, and what disks and kills do to it.

use super::super::plain::PlainStore;
use super::super::{MemoryStore, MemoryStoreConfig, Store};
use super::*;
use emberscope_model::{
    Accounts, Detail, DropReason, Frame, FrameKind, JvmFacts, LabelKey, LabelSetBuilder, LedgerRow,
    LedgerSums, LostCounts, MatchOp, Matcher, NameSource, ProcessKey, ProcessRecord, Query, Row, SampleKind,
    Selection, Stack, StackEnd, UnknownReason,
};
use proptest::prelude::*;

mod disks;
mod errors;
mod fixture;
mod imported;
mod kills;
mod merged;
mod pauses;
mod rolled;
mod same;
mod spark;
mod threads;

const S: u64 = 1_000_000_000;
const BASE: u64 = 1_700_000_000 * S;
const WEIGHT: u64 = 10_101_010;

fn at(second: u64) -> WallTime {
    WallTime(BASE + second * S)
}

fn range(from: u64, until: u64) -> TimeRange {
    TimeRange { from: at(from), until: at(until) }
}

fn labels(pairs: &[(LabelKey, &str)]) -> Arc<LabelSet> {
    Arc::new(pairs.iter().fold(LabelSetBuilder::new(), |set, (k, v)| set.set(*k, *v)).build())
}

fn process(pid: u64) -> Arc<LabelSet> {
    let (pid, app) = (pid.to_string(), ["unknown", "app-1", "app-2"][pid as usize % 3]);
    labels(&[(LabelKey::App, app), (LabelKey::Executor, &pid), (LabelKey::Pid, &pid)])
}

fn task(process: &LabelSet, task: u64) -> Arc<LabelSet> {
    let set = LabelSetBuilder::from_set(process).set(LabelKey::Task, task.to_string());
    let set = set.set(LabelKey::Stage, (task / 4).to_string()).set(LabelKey::ThreadClass, "task");
    Arc::new(set.build())
}

/// A stack whose frames say all that frames can.
fn stack(number: u64) -> Arc<Stack> {
    let frame = |depth: u64| {
        let path = number >> (depth / 2);
        Arc::new(match (path + depth) % 5 {
            0 => Frame::unknown(UnknownReason::NoPerfMap, "lib.so"),
            1 => Frame {
                line: path as u32 % 3,
                approximate: path.is_multiple_of(2),
                signature: Some("(I)V".into()),
                ..Frame::new(FrameKind::JavaCompiled, format!("a.B.m{}", path % 7), "")
            },
            2 => Frame { line: depth as u32, ..Frame::new(FrameKind::JavaInlined, "a.B.m1", "") },
            _ => Frame::new(FrameKind::Native, format!("f{}", path % 4), "libc.so.6"),
        })
    };
    let end = [StackEnd::Root, StackEnd::Root, StackEnd::NoFramePointer, StackEnd::KernelThread];
    let frames = (0..number % 9).map(|depth| frame(8 - depth)).collect();
    Arc::new(Stack { frames, end: end[number as usize % 4] })
}

/// A window of numbers: process, task, stack, count, and what the weight is beyond the usual.
fn window(from: u64, rows: &[(u64, u64, u64, u64, u64)]) -> Window {
    let mut out = Window {
        range: range(from, from + 10),
        rows: Vec::new(),
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: from.is_multiple_of(3),
    };
    out.lost.0[DropReason::RingFullSample as usize] = from % 5;
    for (pid, tid, number, count, more) in rows {
        let who = process(*pid);
        let labels = if *tid == 0 { who.clone() } else { task(&who, *tid) };
        let key = ProcessKey { pid: *pid as u32, start_ticks: 7 };
        let known = out.rows.iter().position(|row| row.labels == labels && *row.stack == *stack(*number));
        if known.is_none() {
            let labels = labels.clone();
            let weight = count * WEIGHT + more;
            out.rows.push(Row {
                labels,
                stack: stack(*number),
                kind: SampleKind::Cpu,
                count: *count,
                weight,
            });
        }
        if !out.ledger.iter().any(|line| line.labels == labels) {
            let accounts = Accounts { cpu_ns: *count, written_bytes: *more, ..Accounts::default() };
            let sums = LedgerSums { accounts, wall_ns: count * 2, begun: 1 };
            let seen = TimeRange { from: at(from).minus(Duration::from_nanos(*more)), until: at(from + 7) };
            out.ledger.push(LedgerRow { labels, sums, seen });
        }
        if !out.processes.iter().any(|record| record.key == key) {
            let names = if from > 30 { NameSource::Memory } else { NameSource::Waiting("soon".into()) };
            let jvm = (pid % 2 == 0).then(|| JvmFacts { version: "17.0.1".into(), names });
            let (host, program) = (String::new(), format!("main-{pid}"));
            out.processes.push(Arc::new(ProcessRecord { key, labels: who, host, cores: 4, program, jvm }));
        }
    }
    out
}

fn config(dir: &Path) -> DiskStoreConfig {
    let (memory_bytes, retention_age, merge_after) = (usize::MAX, Duration::MAX, Duration::MAX);
    let fsync = Fsync::Never;
    DiskStoreConfig { fsync, memory_bytes, retention_age, merge_after, ..DiskStoreConfig::new(dir) }
}

fn open(dir: &Path) -> DiskStore {
    DiskStore::open(config(dir)).unwrap()
}

fn query(from: u64, until: u64) -> Query {
    Query {
        range: range(from, until),
        selection: Selection::all(),
        kind: SampleKind::Cpu,
        group: Vec::new(),
        detail: Detail::default(),
    }
}

fn samples(store: &dyn Store) -> u64 {
    store.merge(&query(0, 1 << 20)).unwrap().quality.samples
}

/// Some windows with rows enough for every table.
fn some(windows: u64) -> Vec<Window> {
    let rows =
        |w: u64| (0..40).map(|i| (i % 4, i % 6, (w + i * 7) % 50, i + 1, i % 3 * 5)).collect::<Vec<_>>();
    (0..windows).map(|w| window(w * 10, &rows(w))).collect()
}
