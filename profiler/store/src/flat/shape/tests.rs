//! Calls that only hand on are one with what they call, in whatever order stacks were met.

use super::*;
use crate::facts::StackLine;
use emberscope_model::{Frame, StackEnd};

/// Stacks of (name, signature) from the root, each seen as often as is said, as folded lines.
fn folded(all: &[(&[(&str, &str)], u64)], detail: Detail) -> Vec<String> {
    let mut stacks = Stacks::default();
    let mut sums = Vec::new();
    for (stack, (path, count)) in (0..).zip(all) {
        let mut parent = 0;
        for (name, signature) in *path {
            let signature = Some((*signature).into()).filter(|_| !signature.is_empty());
            let frame = Frame { signature, ..Frame::new(FrameKind::JavaCompiled, *name, "") };
            let place = stacks.frames.iter().position(|known| **known == frame);
            let frame = place.unwrap_or_else(|| {
                stacks.frames.push(Arc::new(frame));
                stacks.frames.len() - 1
            }) as u32;
            let node = StackNode { parent, frame };
            // Node 0 is the root, whatever it says.
            let place = stacks.nodes.iter().skip(1).position(|known| *known == node).map(|at| at + 1);
            parent = place.unwrap_or_else(|| {
                stacks.nodes.push(node);
                stacks.nodes.len() - 1
            }) as u32;
        }
        let depth = path.len() as u32;
        let line =
            StackLine { node: parent, end: StackEnd::Root, depth, approximate: false, unnamed: Box::new([]) };
        stacks.stacks.push(line);
        sums.push((0, stack, *count, *count));
    }
    let tree = Shape::of(&stacks, detail).grow(&stacks, &sums, &[Vec::new()], 1000).unwrap().finish();
    let mut lines = Vec::new();
    for (place, node) in tree.nodes.iter().enumerate().filter(|(_, node)| node.self_count > 0) {
        let (mut at, mut path) = (place, Vec::new());
        while at != 0 {
            path.push(tree.nodes[at].frame.name.to_string());
            at = tree.nodes[at].parent as usize;
        }
        path.reverse();
        lines.push(format!("{} {}", path.join(";"), node.self_count));
    }
    lines
}

#[test]
fn calls_that_only_hand_on_are_one_with_what_they_call() {
    let (bridge, real) = (("a.Map.runTask", "(TaskContext)Object"), ("a.Map.runTask", "(TaskContext)Status"));
    let (forward, body) = (("a.Seq.foreach$", "(Seq, F)void"), ("a.Seq.foreach", "(F)void"));
    let (boxed, lambda) = (("a.B.$anonfun$f$1$adapted", "(Object)Object"), ("a.B.$anonfun$f$1", "(int)int"));
    let all: &[(&[(&str, &str)], u64)] = &[
        (&[bridge, real, ("a.leaf", "()void")], 5),
        (&[bridge], 1),
        (&[bridge, real], 2),
        (&[forward, body, boxed, lambda], 3),
        // A recursion, of a method and through a bridge: its depth stays.
        (&[("a.fib", "(int)int"), ("a.fib", "(int)int")], 4),
        (&[real, bridge, real, bridge, real], 6),
        // Not of scalac's making, or not a method of Java.
        (&[("a.B.$deserializeLambda$", "()Object"), ("a.C.$init$", "()void")], 7),
    ];
    assert_eq!(
        folded(all, Detail::default()),
        [
            "a.B.$deserializeLambda$;a.C.$init$ 7",
            "a.Map.runTask 3",
            "a.Map.runTask;a.Map.runTask;a.Map.runTask 6",
            "a.Map.runTask;a.leaf 5",
            "a.Seq.foreach;a.B.$anonfun$f$1 3",
            "a.fib;a.fib 4",
        ]
    );
    let apart = folded(all, Detail { kinds: true, ..Detail::default() });
    assert!(apart.contains(&"a.Map.runTask;a.Map.runTask;a.leaf 5".to_owned()), "{apart:?}");
    let scala = "a.Seq.foreach$;a.Seq.foreach;a.B.$anonfun$f$1$adapted;a.B.$anonfun$f$1 3";
    assert!(apart.contains(&scala.to_owned()), "{apart:?}");
}

proptest::proptest! {
    /// Whatever the order in which stacks were met, and however bridges and methods alternate.
    #[test]
    fn each_stack_is_folded_by_itself(
        stacks in proptest::collection::vec((proptest::collection::vec((0..3_usize, 0..2_usize), 1..6), 1..9_u64), 1..12),
    ) {
        let (names, signatures) = (["a.f", "a.g", "a.h"], ["()int", "()Object"]);
        let path = |all: &[(usize, usize)]| -> Vec<(&str, &str)> {
            all.iter().map(|(name, signature)| (names[*name], signatures[*signature])).collect()
        };
        let paths: Vec<_> = stacks.iter().map(|(all, count)| (path(all), *count)).collect();
        let mut expected = std::collections::BTreeMap::new();
        for (path, count) in &paths {
            let (mut shown, mut before) = (Vec::new(), None);
            for (name, signature) in path {
                if before.take_if(|(n, s)| n == name && s != signature).is_none() {
                    shown.push(*name);
                    before = Some((*name, *signature));
                }
            }
            *expected.entry(shown.join(";")).or_insert(0) += *count;
        }
        let expected: Vec<String> = expected.iter().map(|(path, count)| format!("{path} {count}")).collect();
        let all: Vec<(&[(&str, &str)], u64)> = paths.iter().map(|(path, count)| (&**path, *count)).collect();
        let mut got = folded(&all, Detail::default());
        got.sort();
        let mut expected = expected;
        expected.sort();
        proptest::prop_assert_eq!(got, expected);
    }
}

#[test]
fn without_signatures_nothing_is_known_to_hand_on() {
    let all: &[(&[(&str, &str)], u64)] = &[(&[("a.f", ""), ("a.f", "()void")], 1)];
    assert_eq!(folded(all, Detail::default()), ["a.f;a.f 1"]);
}
