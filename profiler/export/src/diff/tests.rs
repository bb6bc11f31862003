//! Differences of small trees: every sample is told, scaled and in its colour.

use super::*;
use crate::methods;
use crate::tests::tree;
use proptest::prelude::*;

const J: FrameKind = FrameKind::JavaCompiled;
const T: FrameKind = FrameKind::JavaInterpreted;

fn options(left_factor: f64, right_factor: f64) -> DiffOptions {
    let (title, subtitle) = ("a <b>".into(), "l & r".into());
    DiffOptions { kind: SampleKind::Cpu, left_factor, right_factor, title, subtitle }
}

fn both() -> Aligned {
    let left = tree(&[(&[(J, "run"), (T, "f")], 4), (&[(J, "run"), (J, "gone")], 2)]);
    let right = tree(&[(&[(J, "run"), (J, "f"), (J, "slow")], 30), (&[(J, "run")], 6)]);
    Aligned::new(&left, &right)
}

#[test]
fn both_sides_have_the_same_nodes() {
    let trees = both();
    let told: Vec<_> = trees
        .left
        .nodes
        .iter()
        .zip(&trees.right.nodes)
        .map(|(l, r)| {
            assert!(Arc::ptr_eq(&l.frame, &r.frame) && l.parent == r.parent);
            (&*l.frame.name, l.self_count, l.total_count, r.self_count, r.total_count)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("total", 0, 6, 0, 36),
            ("run", 0, 6, 6, 36),
            ("f", 4, 4, 0, 30),
            ("slow", 0, 0, 30, 30),
            ("gone", 2, 2, 0, 0),
        ]
    );
    let names = |tree| methods(tree).iter().map(|m| m.name.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&trees.left), names(&trees.right));
    let nothing = Tree { nodes: Vec::new() };
    assert_eq!(Aligned::new(&nothing, &nothing).right.nodes.len(), 1);
}

#[test]
fn another_jdk_is_no_difference() {
    const THREAD: (FrameKind, &str) = (J, "java.lang.Thread.run");
    let (with, work) = ((J, "java.lang.Thread.runWith"), (J, "job.Work"));
    let left = tree(&[(&[THREAD, work, (J, "StubRoutines (1)")], 30)]);
    let right = tree(&[
        (&[THREAD, with, work, (J, "StubRoutines (initialstubs)")], 10),
        (&[THREAD, with, work, (J, "StubRoutines (compilerstubs)")], 20),
    ]);
    let trees = Aligned::new(&left, &right);
    let text = String::from_utf8(render(Format::Folded, &trees, &options(1.0, 1.0)).unwrap()).unwrap();
    let mut words = text.trim_end().rsplit(' ');
    assert_eq!(words.next(), words.next(), "{text}");
    assert_eq!(words.collect::<Vec<_>>(), ["java.lang.Thread.run;job.Work;StubRoutines"], "{text}");
}

proptest! {
    #[test]
    fn nothing_is_lost_or_moved(
        stacks in prop::collection::vec((any::<bool>(), prop::collection::vec(0usize..4, 0..6), 1u64..50), 0..30)
    ) {
        let paths: Vec<Vec<(FrameKind, &str)>> = stacks
            .iter()
            .map(|(_, path, _)| path.iter().map(|i| (J, ["a", "b;c", "# d", "e 1"][*i])).collect())
            .collect();
        let side = |left: bool| -> Tree {
            let own = stacks.iter().zip(&paths).filter(|((is_left, ..), _)| *is_left == left);
            tree(&own.map(|((_, _, n), path)| (path.as_slice(), *n)).collect::<Vec<_>>())
        };
        let (left, right) = (side(true), side(false));
        let trees = Aligned::new(&left, &right);
        for (before, after) in [(&left, &trees.left), (&right, &trees.right)] {
            let sorted = |tree: &Tree| {
                let mut rows: Vec<_> = methods(tree)
                    .iter()
                    .map(|m| (m.name.to_owned(), m.own, m.total))
                    .filter(|(_, _, total)| total.count > 0)
                    .collect();
                rows.sort_by(|a, b| a.0.cmp(&b.0));
                rows
            };
            prop_assert_eq!(sorted(before), sorted(after));
            prop_assert_eq!(before.nodes[0].total_weight, after.nodes[0].total_weight);
        }
        let text = String::from_utf8(render(Format::Folded, &trees, &options(1.0, 1.0)).unwrap()).unwrap();
        let sum = |column: usize| -> u64 {
            text.lines().map(|l| l.rsplitn(3, ' ').nth(column).unwrap().parse::<u64>().unwrap()).sum()
        };
        prop_assert_eq!((sum(1), sum(0)), (left.nodes[0].total_weight, right.nodes[0].total_weight));
        let svg = String::from_utf8(render(Format::Svg, &trees, &options(1.0, 1.0)).unwrap()).unwrap();
        let all = format!("<title>all ({} us, 100%)", crate::text::thousands(right.nodes[0].total_weight / 1000));
        prop_assert!(right.nodes[0].total_weight == 0 || svg.contains(&all), "{}", all);
    }
}

#[test]
fn folded_stacks_have_two_scaled_counts() {
    let text = render(Format::Folded, &both(), &options(0.5, 0.1)).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "run 0 6000000\nrun;f 20000000 0\nrun;f;slow 0 30000000\nrun;gone 10000000 0\n"
    );
}

#[test]
fn other_formats_are_refused_with_the_mend() {
    let refused = |format| {
        let error = render(format, &both(), &options(1.0, 1.0)).unwrap_err();
        std::error::Error::source(&error).map(ToString::to_string).unwrap()
    };
    assert!(refused(Format::Json).contains("ask /api/v1/diff for format=json"));
    for format in [Format::Pprof, Format::Parquet, Format::Jfr] {
        assert_eq!(refused(format), "it holds one answer, not two");
    }
}

#[test]
fn the_pictures_numbers_are_in_the_unit_of_the_kind() {
    let drawn = |kind, factor| {
        let options = DiffOptions { kind, ..options(factor, factor) };
        String::from_utf8(render(Format::Svg, &both(), &options).unwrap()).unwrap()
    };
    // A sample of `tree` weighs 10,000,000: here 1 MiB, or a fault.
    let bytes = drawn(SampleKind::Alloc, 0.1048576);
    assert!(bytes.contains("<title>slow (30,720 KiB, 83.33%; +83.33%)"), "{bytes}");
    let faults = drawn(SampleKind::PageFaults, 1e-7);
    assert!(faults.contains("<title>slow (30 faults, 83.33%; +83.33%)"), "{faults}");
}

#[test]
fn the_picture_is_red_where_the_right_side_has_more() {
    let svg = String::from_utf8(render(Format::Svg, &both(), &options(1.0, 1.0)).unwrap()).unwrap();
    assert!(svg.contains(">a &lt;b&gt;</text>") && svg.contains("l &amp; r"));
    let fill = |tooltip: &str| {
        let group = svg.split("<g>").find(|g| g.starts_with(&format!("<title>{tooltip}"))).unwrap();
        group.split("fill=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    assert_eq!(fill("slow (300,000 us, 83.33%; +83.33%)"), "rgb(255,100,100)");
    assert!(fill("f (300,000 us, 83.33%; -11.11%)").ends_with(",255)"), "blue: less of its own");
    assert!(!svg.contains("gone"), "nothing on the right, no width");
    let nothing = Tree { nodes: Vec::new() };
    let empty = Aligned::new(&both().left, &nothing);
    let svg = String::from_utf8(render(Format::Svg, &empty, &options(1.0, 1.0)).unwrap()).unwrap();
    assert!(svg.contains("the right side has no samples") && !svg.contains("<b>"));
}
