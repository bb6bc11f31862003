//! Flame graphs as pictures.

use super::*;

/// Text and fill of a drawn frame by the beginning of its tooltip.
fn frame<'a>(svg: &'a str, tooltip: &str) -> Option<(&'a str, &'a str)> {
    let group = svg.split("<g>").find(|g| g.starts_with(&format!("<title>{tooltip}")))?;
    let fill = group.split("fill=\"").nth(1)?.split('"').next()?;
    let text = group.split("<text").nth(1)?.split('>').nth(1)?.split('<').next()?;
    Some((text, fill))
}

#[test]
fn a_flame_graph_shows_kinds_by_colour_and_names_without_marks() {
    let svg = text(Format::Svg, &mixed(), &ExportOptions { title: "app-1".into(), ..plain() });
    assert!(svg.contains(">app-1</text>"));
    assert!(svg.contains(
        "1970-01-01T00:00:00.000Z to 1970-01-01T00:00:10.000Z, 10 samples (error 31.6 %); frames below 0.1 % are not drawn<"
    ));
    let rgb = |tooltip| {
        let (_, fill) = frame(&svg, tooltip).unwrap_or_else(|| panic!("no {tooltip} in {svg}"));
        let numbers: Vec<u8> =
            fill.trim_matches(|c: char| !c.is_ascii_digit()).split(',').map(|n| n.parse().unwrap()).collect();
        (numbers[0], numbers[1], numbers[2])
    };
    let green = rgb("a.B.run (5 samples, 50.00%)");
    assert!(green.1 > green.0 + 90 && green.1 > green.2 + 90, "{green:?}");
    let interpreted = rgb("a.B.run (1 samples");
    assert!(interpreted != green && interpreted.0 > interpreted.2 + 90, "{interpreted:?}");
    let orange = rgb("do_sys_open (3 samples");
    assert!(orange.0 > orange.1 && orange.1 > orange.2 + 90, "{orange:?}");
    // By inferno's own rules these two would be Java: a capital, a dot.
    let red = rgb("JVM_Sleep (1 samples");
    assert!(red.0 > red.1 + 90, "{red:?}");
    let blue = rgb("worker.py:main (4 samples");
    assert!(blue.2 > blue.0 + 90, "{blue:?}");
    assert_eq!(frame(&svg, "a.B.inner (").map(|f| f.0), Some("a.B.inner"));
    let drawing = svg.split("</script>").nth(1).unwrap();
    assert!(!drawing.contains("_["), "marks show: {drawing}");
    assert_eq!(svg, text(Format::Svg, &mixed(), &ExportOptions { title: "app-1".into(), ..plain() }));
}

#[test]
fn time_is_drawn_as_milliseconds() {
    let svg = text(Format::Svg, &mixed(), &ExportOptions { unit: Unit::Weight, ..plain() });
    assert!(svg.contains("<title>a.B.run (50 ms, 50.00%)</title>"));
    assert!(svg.contains("<title>all (100 ms, 100%)</title>"));
}

#[test]
fn a_frame_is_drawn_in_one_piece_whatever_sorts_into_it() {
    let svg = text(
        Format::Svg,
        &answer(tree(&[
            (&[(N, "a")], 1),
            (&[(N, "a"), (N, "x")], 1),
            (&[(N, "a b"), (N, "y")], 1),
            (&[(N, "a:c")], 1),
            (&[(N, "worker 12")], 7),
            (&[(N, "# not a comment")], 2),
        ])),
        &plain(),
    );
    assert_eq!(svg.matches("<title>a (2 samples, 15.38%)").count(), 1);
    assert_eq!(svg.matches("<title>worker\u{a0}12 (7 samples, 53.85%)").count(), 1);
    assert_eq!(svg.matches("<title>#\u{a0}not a comment (2 samples").count(), 1);
    assert!(svg.contains("<title>all (13 samples, 100%)"));
}

#[test]
fn what_is_too_narrow_is_left_out_and_its_callers_keep_their_width() {
    let mut nodes = tree(&[(&[(N, "wide")], 0), (&[(N, "other")], 80_000)]);
    for i in 0..20_000 {
        let mut node = nodes.nodes[1].clone();
        (node.parent, node.self_count, node.total_count) = (1, 1, 1);
        node.frame = Arc::new(Frame::new(N, format!("narrow{i}"), ""));
        nodes.nodes.push(node);
    }
    nodes.nodes[1].total_count = 20_000;
    nodes.nodes[0].total_count = 100_000;
    let svg = text(Format::Svg, &answer(nodes), &plain());
    assert!(svg.contains("<title>wide (20,000 samples, 20.00%)"));
    assert!(!svg.contains("narrow"));
    assert!(svg.len() < 100_000, "{}", svg.len());
}
