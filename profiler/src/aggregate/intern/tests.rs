//! Sharing, sweeping, and what the limits cost.

use super::*;
use crate::model::{FrameKind, LabelKey, LabelSetBuilder};

fn frame(name: &str) -> Frame {
    Frame::new(FrameKind::JavaCompiled, name, "")
}

fn labels(pid: &str) -> LabelSet {
    LabelSetBuilder::new().set(LabelKey::Pid, pid).build()
}

#[test]
fn equal_values_share_one_allocation() {
    let mut table = Interner::new(InternLimits::default(), labels("0"));
    let (a, b) = (table.frame(frame("a")), table.frame(frame("b")));
    assert!(Arc::ptr_eq(&a, &table.frame(frame("a"))));
    let ab = table.stack(&[a.clone(), b.clone()], StackEnd::Root);
    assert!(Arc::ptr_eq(&ab, &table.stack(&[a.clone(), b.clone()], StackEnd::Root)));
    for other in [
        table.stack(&[b.clone(), a.clone()], StackEnd::Root),
        table.stack(&[a.clone(), b.clone()], StackEnd::ReadFailed),
        table.stack(std::slice::from_ref(&a), StackEnd::Root),
    ] {
        assert!(!Arc::ptr_eq(&ab, &other));
    }
    assert!(Arc::ptr_eq(&table.labels(labels("1")), &table.labels(labels("1"))));
}

#[test]
fn sweeping_drops_what_nobody_holds_and_its_bytes() {
    let mut table = Interner::new(InternLimits::default(), labels("0"));
    let a = table.frame(frame("a"));
    let held = table.stack(std::slice::from_ref(&a), StackEnd::Root);
    drop(a);
    table.sweep();
    let small = table.stats();
    assert_eq!((small.frames, small.stacks), (1, 1), "the stack holds its frame");
    for i in 0..5_000 {
        let f = table.frame(frame(&format!("f{i}")));
        table.stack(&[f], StackEnd::Root);
        table.labels(labels(&i.to_string()));
    }
    assert_eq!(table.stats().label_sets, 5_000);
    table.sweep();
    assert_eq!(table.stats(), small);
    drop(held);
    table.sweep();
    assert_eq!(table.stats(), InternStats::default());
}

#[test]
fn over_the_limits_detail_goes_and_is_counted() {
    let limits = InternLimits { frames: 2, stacks: 1, label_sets: 1, bytes: 1 << 20 };
    let mut table = Interner::new(limits, labels("0"));
    let kept: Vec<_> = ["a", "b", "c", "d"].map(|n| table.frame(frame(n))).into();
    assert_eq!(&*kept[2].name, "[unknown: table full]");
    assert!(Arc::ptr_eq(&kept[2], &kept[3]));
    let one = table.stack(&kept[..1], StackEnd::Root);
    let two = table.stack(&kept[..2], StackEnd::DepthLimit);
    assert_eq!(one.frames.len(), 1);
    assert_eq!((&*two.frames[0].name, two.end), ("[unknown: table full]", StackEnd::DepthLimit));
    let _held = table.labels(labels("1"));
    assert_eq!(table.labels(labels("2")).get(LabelKey::Pid), "0");
    let stats = table.stats();
    assert_eq!((stats.refused_frames, stats.refused_stacks, stats.refused_label_sets), (2, 1, 1));
    // What is known is still found.
    assert!(Arc::ptr_eq(&kept[0], &table.frame(frame("a"))));
}

#[test]
fn bytes_are_a_limit_too() {
    let limits = InternLimits { bytes: 10_000, ..InternLimits::default() };
    let mut table = Interner::new(limits, labels("0"));
    let frames: Vec<_> = (0..1_000).map(|i| table.frame(frame(&format!("frame {i}")))).collect();
    assert!(table.stats().bytes <= 10_000);
    assert!(table.stats().refused_frames > 800);
    assert_eq!(frames.len(), 1_000);
}
