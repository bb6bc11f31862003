//! Sharing, sweeping, and what the limits cost.

use super::*;
use emberscope_model::FrameKind;

fn frame(name: &str) -> Arc<Frame> {
    Arc::new(Frame::new(FrameKind::JavaCompiled, name, ""))
}

#[test]
fn equal_stacks_share_one_allocation() {
    let mut table = Interner::new(InternLimits::default());
    let (a, b) = (frame("a"), frame("b"));
    let ab = table.stack(&[a.clone(), b.clone()], StackEnd::Root);
    assert!(Arc::ptr_eq(&ab, &table.stack(&[a.clone(), b.clone()], StackEnd::Root)));
    for other in [
        table.stack(&[b.clone(), a.clone()], StackEnd::Root),
        table.stack(&[a.clone(), b.clone()], StackEnd::ReadFailed),
        table.stack(std::slice::from_ref(&a), StackEnd::Root),
    ] {
        assert!(!Arc::ptr_eq(&ab, &other));
    }
}

#[test]
fn sweeping_drops_what_nobody_holds_and_its_bytes() {
    let mut table = Interner::new(InternLimits::default());
    let held = table.stack(&[frame("a")], StackEnd::Root);
    let small = table.stats();
    for i in 0..5_000 {
        table.stack(&[frame(&format!("f{i}"))], StackEnd::Root);
    }
    assert_eq!(table.stats().stacks, 5_001);
    table.sweep();
    assert_eq!(table.stats(), small);
    drop(held);
    table.sweep();
    assert_eq!(table.stats(), InternStats::default());
}

#[test]
fn over_the_limits_detail_goes_and_is_counted() {
    let (a, b) = (frame("a"), frame("b"));
    for limits in [
        InternLimits { stacks: 1, ..InternLimits::default() },
        InternLimits { bytes: stack_bytes(1), ..InternLimits::default() },
    ] {
        let mut table = Interner::new(limits);
        let one = table.stack(std::slice::from_ref(&a), StackEnd::Root);
        let two = table.stack(&[a.clone(), b.clone()], StackEnd::DepthLimit);
        assert_eq!(one.frames.len(), 1);
        assert_eq!((&*two.frames[0].name, two.end), ("[unknown: table full]", StackEnd::DepthLimit));
        assert_eq!((table.stats().stacks, table.stats().refused_stacks), (1, 1));
        // What is known is still found.
        assert!(Arc::ptr_eq(&one, &table.stack(std::slice::from_ref(&a), StackEnd::Root)));
    }
}
