//! Recordings that our own export writes come back: the same stacks, labels and sums.

use super::super::tests::{folded, told};
use super::super::{Events, Format, ImportError, Imported, Told};
use emberscope_export::{ExportOptions, render};
use emberscope_model::{
    Answer, Frame, FrameKind, LabelKey, Node, Quality, SampleKind, TimeRange, Tree, UnknownReason, WallTime,
};
use proptest::prelude::*;
use std::sync::Arc;

/// 2026-11-22T08:00:00Z, a minute of it.
const RANGE: TimeRange =
    TimeRange { from: WallTime(1_795_334_400_000_000_000), until: WallTime(1_795_334_460_000_000_000) };

/// A tree of (frame, parent, count, weight) below the root.
fn answer(kind: SampleKind, nodes: &[(Frame, u32, u64, u64)]) -> Answer {
    let node = |(frame, parent, count, weight): &(Frame, u32, u64, u64)| Node {
        frame: Arc::new(frame.clone()),
        parent: *parent,
        self_count: *count,
        self_weight: *weight,
        total_count: *count,
        total_weight: *weight,
    };
    let root = (Frame::new(FrameKind::Label, "total", ""), 0, 0, 0);
    let nodes = std::iter::once(&root).chain(nodes).map(node).collect();
    let quality = Quality { kind, ..Quality::default() };
    Answer { tree: Tree::with_totals(nodes), range: RANGE, windows: 6, quality }
}

fn written(answer: &Answer) -> Vec<u8> {
    render(emberscope_export::Format::Jfr, answer, &ExportOptions::default()).unwrap()
}

fn back(answer: &Answer) -> Result<Imported, ImportError> {
    super::super::read(&*written(answer), None, &Told { period: None, ..told() })
}

fn label(text: &str) -> Frame {
    Frame::new(FrameKind::Label, text, "")
}

/// Frames of every kind that stacks have.
fn frames() -> Vec<Frame> {
    let java = |kind, name: &str, signature: Option<&str>, line| Frame {
        signature: signature.map(Into::into),
        line,
        ..Frame::new(kind, name, "")
    };
    vec![
        java(FrameKind::JavaInterpreted, "java.lang.Thread.run", Some("()void"), 840),
        java(FrameKind::JavaCompiled, "a.b.Busy$Sort.<init>", Some("(byte[], a.b.C[][], int)long"), 12),
        java(FrameKind::JavaInlined, "a.b.Foo$$Lambda.apply", None, 0),
        Frame::new(FrameKind::Python, "work", "jobs/etl.py"),
        Frame::new(FrameKind::Stub, "StubRoutines (checkcast)", ""),
        Frame::unknown(UnknownReason::NoPerfMap, "libjvm.so"),
        Frame::unknown(UnknownReason::Unloaded, ""),
        Frame::new(FrameKind::Native, "std::sort<int, (char)1>(int*)", "libnative.so.6"),
        Frame::new(FrameKind::Kernel, "asm_exc_page_fault", "vmlinux"),
    ]
}

#[test]
fn frames_labels_and_sums_come_back() {
    let all = frames();
    let mut nodes = vec![(label("stage=3"), 0, 0, 0), (label("task=57"), 1, 1, 9)];
    for (frame, parent) in all.iter().zip(2..) {
        nodes.push((frame.clone(), parent, 3, 3 * u64::from(parent) * 10_000_001));
    }
    let other = nodes.len() as u32;
    nodes.extend([
        (label("stage=(none)"), 0, 0, 0),
        (label("task=(none)"), other + 1, 0, 0),
        (all[0].clone(), other + 2, 7, 70_000_003),
    ]);
    let answer = answer(SampleKind::Cpu, &nodes);
    let imported = back(&answer).unwrap();
    let root = &answer.tree.nodes[0];
    assert_eq!((imported.sampled.count, imported.sampled.weight), (root.total_count, root.total_weight));
    assert_eq!((imported.format, imported.stackless, imported.truncated), (Format::Jfr, 1, 0));
    assert_eq!(imported.by, format!("Emberscope {}, jdk.ExecutionSample", env!("CARGO_PKG_VERSION")));
    assert!(imported.left_out.is_empty() && imported.remarks.is_empty(), "{imported:?}");
    assert!(imported.range.from >= RANGE.from && imported.range.until <= RANGE.until, "{:?}", imported.range);
    let rows: Vec<_> = imported.windows.iter().flat_map(|window| &window.rows).collect();
    let longest = rows.iter().map(|row| &row.stack.frames).max_by_key(|frames| frames.len()).unwrap();
    let longest: Vec<Frame> = longest.iter().map(|frame| (**frame).clone()).collect();
    assert_eq!(longest, all);
    let of = |stage: &str, task: &str| -> u64 {
        let is = |row: &&&emberscope_model::Row| {
            row.labels.get(LabelKey::Stage) == stage && row.labels.get(LabelKey::Task) == task
        };
        rows.iter().filter(is).map(|row| row.count).sum()
    };
    assert_eq!((of("3", "57"), of("", "")), (28, 7));
    assert!(rows.iter().all(|row| row.labels.get(LabelKey::ThreadClass).is_empty()), "no thread is known");
}

#[test]
fn many_samples_become_fewer_events_of_the_same_sum() {
    let answer = answer(SampleKind::Cpu, &[(frames()[0].clone(), 0, 1_300_001, 13_131_313_131_313)]);
    let bytes = written(&answer);
    let imported = back(&answer).unwrap();
    assert_eq!((imported.sampled.count, imported.sampled.weight), (1_300_001, 13_131_313_131_313));
    assert_eq!(imported.windows.len(), 6, "over the whole span");
    assert!(bytes.len() < 20 << 20, "{} bytes", bytes.len());
    let name = b"an event for 3 samples";
    assert!(bytes.windows(name.len()).any(|part| part == name), "the recording's name says so");
}

#[test]
fn every_kind_comes_back_with_its_sums() {
    for &kind in SampleKind::ASKED.iter().filter(|kind| **kind != SampleKind::Wall) {
        let mut nodes = vec![(label("stage=3"), 0, 0, 0)];
        nodes.extend([(frames()[0].clone(), 1, 3, 1_000_003), (frames()[1].clone(), 2, 2, 70_000_000)]);
        let answer = answer(kind, &nodes);
        let events = Events::from_slug(kind.slug()).unwrap();
        let imported =
            super::super::read(&*written(&answer), None, &Told { period: None, events, ..told() }).unwrap();
        assert_eq!(imported.sampled.weight, answer.tree.nodes[0].total_weight, "{}", kind.slug());
        assert_eq!((imported.kind, imported.stackless), (events.kind(), 0));
        let mut rows = imported.windows.iter().flat_map(|window| &window.rows);
        let wait = if kind == SampleKind::Lock { "lock" } else { "" };
        assert!(
            rows.all(|row| row.labels.get(LabelKey::Stage) == "3" && row.labels.get(LabelKey::Wait) == wait)
        );
        if !kind.holds(SampleKind::OffCpu) {
            assert_eq!(imported.sampled.count, 5, "{}", kind.slug());
        }
    }
}

#[test]
fn waits_are_no_cpu_time() {
    let answer = answer(SampleKind::OffCpu, &[(frames()[0].clone(), 0, 2, 1_000_000_000)]);
    let error = back(&answer).unwrap_err().to_string();
    assert!(
        error.contains("100 of profiler.WallClockSample (threads that slept: --events off-cpu)"),
        "{error}"
    );
    let wall = Told { events: Events::Wall, ..told() };
    assert!(super::super::read(&*written(&answer), None, &wall).is_err(), "and none that could run");
    let faults = self::answer(SampleKind::PageFaults, &[(frames()[0].clone(), 0, 2, 512)]);
    let error = back(&faults).unwrap_err().to_string();
    assert!(error.contains("2 of emberscope.PageFaults (--events page-faults)"), "{error}");
}

proptest! {
    #[test]
    fn any_tree_comes_back(stacks in prop::collection::vec((prop::collection::vec("[a-z]{1,3}", 0..6), 1..400_u64, 1..1_000_000_000_u64), 1..30)) {
        let mut nodes: Vec<(Frame, u32, u64, u64)> = Vec::new();
        let mut want = std::collections::BTreeMap::<String, u64>::new();
        for (names, count, weight) in &stacks {
            let mut parent = 0;
            for name in names {
                nodes.push((Frame::new(FrameKind::Native, name.as_str(), "lib.so"), parent, 0, 0));
                parent = nodes.len() as u32;
            }
            let Some(last) = nodes.last_mut().filter(|_| !names.is_empty()) else { continue };
            (last.2, last.3) = (*count, *weight);
            *want.entry(names.join(";")).or_default() += count;
        }
        prop_assume!(!want.is_empty());
        let answer = answer(SampleKind::Cpu, &nodes);
        let imported = back(&answer).unwrap();
        let want: Vec<String> = want.into_iter().map(|(stack, count)| format!("{stack} {count}")).collect();
        prop_assert_eq!(folded(&imported), want);
        prop_assert_eq!(imported.sampled.weight, answer.tree.nodes[0].total_weight);
    }
}
