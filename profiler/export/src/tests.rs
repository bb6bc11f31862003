//! The writers on small trees, on hostile names, and on nothing.

use super::*;
use emberscope_model::{
    Frame, FrameKind, MissingPart, Quality, SampleKind, TimeRange, Tree, UnknownReason, WallTime,
};
use proptest::prelude::*;
use std::sync::Arc;

mod pictures;

const WEIGHT: u64 = 10_000_000;

pub(super) type Stack<'a> = (&'a [(FrameKind, &'a str)], u64);

pub(super) fn tree(stacks: &[Stack<'_>]) -> Tree {
    let node = |frame: Frame, parent| Node {
        frame: Arc::new(frame),
        parent,
        self_count: 0,
        self_weight: 0,
        total_count: 0,
        total_weight: 0,
    };
    let mut nodes = vec![node(Frame::new(FrameKind::Label, "total", ""), 0)];
    for (path, count) in stacks {
        let mut at = 0usize;
        for (kind, name) in *path {
            let same = |(i, n): &(usize, &Node)| {
                *i > 0 && n.parent as usize == at && n.frame.kind == *kind && &*n.frame.name == *name
            };
            let known = nodes.iter().enumerate().find(same).map(|(i, _)| i);
            at = known.unwrap_or_else(|| {
                nodes.push(node(Frame::new(*kind, *name, ""), at as u32));
                nodes.len() - 1
            });
        }
        nodes[at].self_count += count;
        nodes[at].self_weight += count * WEIGHT;
    }
    for i in (0..nodes.len()).rev() {
        nodes[i].total_count += nodes[i].self_count;
        nodes[i].total_weight += nodes[i].self_weight;
        let (parent, count, weight) = (nodes[i].parent as usize, nodes[i].total_count, nodes[i].total_weight);
        if i > 0 {
            nodes[parent].total_count += count;
            nodes[parent].total_weight += weight;
        }
    }
    Tree { nodes }
}

pub(super) fn answer(tree: Tree) -> Answer {
    let samples = tree.nodes[0].total_count;
    let range = TimeRange { from: WallTime::from_millis(0), until: WallTime::from_millis(10_000) };
    Answer { tree, range, windows: 1, quality: Quality { samples, ..Quality::default() } }
}

fn text(format: Format, answer: &Answer, options: &ExportOptions) -> String {
    String::from_utf8(render(format, answer, options).expect("rendered")).expect("UTF-8")
}

fn plain() -> ExportOptions {
    ExportOptions::default()
}

use FrameKind::{JavaCompiled as J, JavaInlined as I, JavaInterpreted as T, Kernel as K, Native as N};

fn mixed() -> Answer {
    answer(tree(&[
        (&[(N, "start_thread"), (J, "a.B.run"), (I, "a.B.inner"), (K, "do_sys_open")], 3),
        (&[(N, "start_thread"), (J, "a.B.run")], 2),
        (&[(N, "start_thread"), (T, "a.B.run"), (N, "JVM_Sleep")], 1),
        (&[(FrameKind::Python, "worker.py:main")], 4),
    ]))
}

#[test]
fn slugs_round_trip() {
    for format in Format::ALL {
        assert_eq!(Format::from_slug(format.slug()), Some(*format));
    }
    assert_eq!(Format::from_slug("speedscope"), None);
    assert_eq!(Unit::from_slug("ns", SampleKind::Cpu), Some(Unit::Weight));
    assert_eq!(Unit::from_slug("samples", SampleKind::Cpu), Some(Unit::Samples));
    assert_eq!(Unit::from_slug("", SampleKind::Cpu), None);
}

#[test]
fn an_export_over_the_limit_is_refused() {
    let mut out = Bounded { limit: 4, ..Bounded::new(Vec::new()) };
    assert!(out.write_all(b"1234").is_ok());
    assert!(out.write_all(b"5").is_err() && out.full);
    assert_eq!(out.out, b"1234");
}

#[test]
fn folded_stacks() {
    assert_eq!(
        text(Format::Folded, &mixed(), &plain()),
        "start_thread;a.B.run 2\nstart_thread;a.B.run;a.B.inner;do_sys_open 3\n\
         start_thread;a.B.run;JVM_Sleep 1\nworker.py:main 4\n"
    );
    let annotated = ExportOptions { annotate: true, unit: Unit::Weight, ..plain() };
    assert_eq!(
        text(Format::Folded, &mixed(), &annotated),
        "start_thread;a.B.run_[j] 20000000\nstart_thread;a.B.run_[j];a.B.inner_[i];do_sys_open_[k] 30000000\n\
         start_thread;a.B.run_[0];JVM_Sleep 10000000\nworker.py:main 40000000\n"
    );
}

#[test]
fn nothing_is_an_answer_too() {
    let empty = answer(tree(&[]));
    assert_eq!(text(Format::Folded, &empty, &plain()), "");
    let svg = text(Format::Svg, &empty, &ExportOptions { title: "<b>&".into(), ..plain() });
    assert!(svg.contains("no samples in 1970-01-01T00:00:00.000Z to 1970-01-01T00:00:10.000Z"));
    assert!(svg.contains("&lt;b&gt;&amp;") && !svg.contains("<b>"));
    let json: serde_json::Value = serde_json::from_str(&text(Format::Json, &empty, &plain())).unwrap();
    assert_eq!((json["total"].as_u64(), json["nodes"].as_array().unwrap().len()), (Some(0), 1));
    assert!(methods(&empty.tree).is_empty());
    // Not even a root.
    let bare = Answer { tree: Tree { nodes: Vec::new() }, ..answer(tree(&[])) };
    for format in Format::ALL {
        assert!(render(*format, &bare, &plain()).is_ok());
    }
}

/// What somebody would put into a thread, class or application name.
const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "]]><script>alert(1)</script>",
    "\"onload=\"alert(1)",
    "'-alert(1)-'",
    "&amp;lt;&#60;",
    "a;b;c 7",
    "line\nbreak 12\r\n",
    "\0\u{1b}[31m\u{8}\u{fffe}\u{202e}x",
    "",
    " ",
    "--",
    "# x",
    "name_[k]",
    "<!--",
];

#[test]
fn hostile_names_stay_text() {
    let tags = regex::Regex::new(r"<[^>]*>?").unwrap();
    let known = regex::Regex::new(
        r#"^<(/?(svg|g|text|title)|rect|text|svg)( [a-z:_]+="[A-Za-z0-9_ ,.()%#/-]*")*/?>$"#,
    )
    .unwrap();
    for name in HOSTILE {
        let hostile = answer(tree(&[(&[(N, name), (J, name)], 3), (&[(K, name)], 2)]));
        let options = ExportOptions { title: (*name).to_owned(), annotate: true, ..plain() };
        let svg = text(Format::Svg, &hostile, &options);
        let drawing = svg.split_once("</script>").unwrap().1;
        for tag in tags.find_iter(drawing) {
            assert!(known.is_match(tag.as_str()), "{name:?} made {}", tag.as_str());
        }
        assert!(!svg.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{name:?}");
        assert!(svg.contains("<title>all (5 samples, 100%)"), "{name:?} cost samples");

        let folded = text(Format::Folded, &hostile, &options);
        let counts: Vec<(usize, u64)> = folded
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(stack, count)| (stack.split(';').count(), count.parse().unwrap()))
            .collect();
        assert_eq!(counts.iter().map(|c| c.1).sum::<u64>(), 5, "{folded:?}");
        assert!(counts.contains(&(2, 3)) && counts.contains(&(1, 2)), "{folded:?}");

        let json: serde_json::Value = serde_json::from_str(&text(Format::Json, &hostile, &plain())).unwrap();
        assert_eq!(json["nodes"][1]["name"], *name, "as it is");
    }
}

#[test]
fn deep_stacks_are_flat_json() {
    let names: Vec<String> = (0..600).map(|i| format!("f{i}")).collect();
    let path: Vec<_> = names.iter().map(|n| (J, n.as_str())).collect();
    let deep = answer(tree(&[(&path, 1)]));
    // serde_json refuses to read deeper than 128.
    let json: serde_json::Value = serde_json::from_str(&text(Format::Json, &deep, &plain())).unwrap();
    assert_eq!(json["nodes"].as_array().unwrap().len(), 601);
    assert_eq!(json["nodes"][0]["parent"], serde_json::Value::Null);
    assert_eq!((&json["nodes"][600]["parent"], &json["nodes"][600]["self"]), (&599.into(), &1.into()));
    assert!(text(Format::Svg, &deep, &plain()).contains("<title>f599 (1 samples, 100.00%)"));
    assert_eq!(text(Format::Folded, &deep, &plain()).matches(';').count(), 599);
}

#[test]
fn json_says_what_it_rests_on() {
    let mut answer = mixed();
    answer.quality.truncated = 2;
    answer.quality.frames = 30;
    answer.quality.unnamed_frames = 4;
    answer.quality.unnamed.insert(UnknownReason::NoPerfMap.slug(), 4);
    answer.quality.ends.insert("root", 8);
    answer.quality.lost.0[0] = 3;
    answer.quality.lost.0[1] = 9;
    answer.quality.missing.add(MissingPart::new("block-1", answer.range, "bad"));
    let options = ExportOptions { unit: Unit::Weight, ..plain() };
    let json: serde_json::Value = serde_json::from_str(&text(Format::Json, &answer, &options)).unwrap();
    assert_eq!(
        json["quality"],
        serde_json::json!({
            "samples": 10, "lost": 3, "truncated": 2, "frames": 30, "unnamed_frames": 4,
            "approximate": 0, "sampling_error": 0.1f64.sqrt(), "ends": {"root": 8}, "unnamed": {"no perf map": 4},
            "lost_by_reason": {"ring_full_sample": 3, "ring_full_stack": 9}, "missing": 1,
            "missing_parts": [{"name": "block-1", "from": "1970-01-01T00:00:00.000Z",
                "until": "1970-01-01T00:00:10.000Z", "says": "bad"}],
        })
    );
    assert_eq!(json["range"]["until"], "1970-01-01T00:00:10.000Z");
    assert_eq!((json["unit"].as_str(), json["total"].as_u64()), (Some("ns"), Some(100_000_000)));
    assert_eq!(json["windows"], 1);
    assert!(text(Format::Svg, &answer, &options).contains("1 parts missing"));
    assert_eq!(json["nodes"][2]["kind"], "java");
}

#[test]
fn recursion_counts_once_in_the_total() {
    let tree = tree(&[
        (&[(FrameKind::Label, "stage=1"), (J, "f"), (J, "g"), (J, "f"), (J, "f")], 3),
        (&[(FrameKind::Label, "stage=1"), (J, "f"), (J, "h")], 2),
        (&[(FrameKind::Label, "stage=2"), (J, "g"), (J, "f")], 5),
        (&[(FrameKind::Label, "stage=2"), (T, "f")], 1),
    ]);
    let mut rows = methods(&tree);
    sort(&mut rows, false);
    let told = |rows: &[Method<'_>]| -> Vec<(String, u64, u64)> {
        rows.iter().map(|m| (m.name.to_owned(), m.own.count, m.total.count)).collect()
    };
    let row = |name: &str, own, total| (name.to_owned(), own, total);
    assert_eq!(told(&rows), [row("f", 9, 11), row("h", 2, 2), row("g", 0, 8)]);
    let kinds: Vec<&str> = rows[0].kinds.iter().copied().collect();
    assert_eq!(kinds, [J.slug(), T.slug()], "one method, whatever it ran as");
    assert_eq!((rows[0].own.weight, rows[0].total.weight), (9 * WEIGHT, 11 * WEIGHT));
    sort(&mut rows, true);
    assert_eq!(told(&rows), [row("f", 9, 11), row("g", 0, 8), row("h", 2, 2)]);
}

proptest! {
    #[test]
    fn every_format_carries_every_sample(
        stacks in prop::collection::vec((prop::collection::vec(any::<String>(), 0..5), 1u64..50), 1..20)
    ) {
        let paths: Vec<Vec<(FrameKind, &str)>> =
            stacks.iter().map(|(path, _)| path.iter().map(|n| (J, n.as_str())).collect()).collect();
        let stacks: Vec<Stack<'_>> =
            paths.iter().zip(&stacks).map(|(path, (_, n))| (path.as_slice(), *n)).collect();
        let total: u64 = stacks.iter().map(|s| s.1).sum();
        let answer = answer(tree(&stacks));
        let folded = text(Format::Folded, &answer, &ExportOptions { annotate: true, ..plain() });
        let mut sum = 0;
        for line in folded.lines() {
            sum += line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        }
        prop_assert_eq!(sum, total);
        let svg = text(Format::Svg, &answer, &plain());
        let all = format!("<title>all ({total} samples, 100%)");
        prop_assert!(svg.contains(&all));
        prop_assert!(!svg.contains("<title>(null)"));
        let sum: u64 = methods(&answer.tree).iter().map(|row| row.own.count).sum();
        prop_assert_eq!(sum + answer.tree.nodes[0].self_count, total);
    }
}
