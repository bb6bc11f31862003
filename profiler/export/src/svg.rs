//! An interactive flame graph, its root on top, drawn by inferno.
//!
//! In: an answer; out: one self-contained SVG file. Colours tell the kind of code: Java green (inlined
//! aqua, interpreted olive), kernel orange, native red, Python blue, stubs purple, classes of what was allocated yellow, unknown and prefix
//! frames grey. inferno knows a frame by its text alone, so Java and kernel frames go in with a suffix
//! that it takes off again (`_[j]`, `_[i]`, `_[w]`, `_[k]`: `deannotate` in its flamegraph/mod.rs) and
//! each text's colour comes from a palette map made here.
//!
//! Limits: what is narrower than a thousandth of the picture is not drawn, so its size is bounded; the
//! subtitle says so. An answer without samples is a picture that says so.

use super::text::{clean, one_line, thousands};
use super::walk::{Below, Path, preorder};
use super::{ExportOptions, Unit};
use emberscope_model::{Answer, FrameKind};
use inferno::flamegraph::color::{Color, MultiPalette, PaletteMap};
use inferno::flamegraph::{Direction, Options, Palette, TextTruncateDirection, from_lines};
use std::fmt::Write as _;
use std::io::{self, Write};

/// A node below total / this is not drawn: 1.2 of the picture's 1,200 pixels. A hundred seconds of a
/// young Spark application are 12 MB with a tenth of it, towers one pixel wide of code that ran once.
const NARROW: u64 = 1_000;
/// Stands for the stack of samples that have none.
const NO_FRAMES: &str = "(no frames)";

pub(super) fn write(answer: &Answer, options: &ExportOptions, out: &mut impl Write) -> io::Result<()> {
    let total = answer.tree.nodes.first().map_or(0, |root| options.unit.total(root));
    let title = if options.title.is_empty() { "Flame graph".to_owned() } else { one_line(&options.title) };
    if total == 0 {
        let why = format!("no samples in {} to {}", answer.range.from, answer.range.until);
        return write_empty(&title, &why, out);
    }
    let mut palette = PaletteMap::default();
    // inferno's own root, and samples without a frame.
    palette.insert("", color(FrameKind::Label, ""));
    palette.insert(NO_FRAMES, color(FrameKind::Unknown, NO_FRAMES));
    let lines = lines(answer, options.unit, total, &mut palette);
    let mut drawing = Options::default();
    drawing.title = title;
    drawing.subtitle = Some(subtitle(answer));
    // The root on top: a deep stack must not push it off the first screen.
    drawing.direction = Direction::Inverted;
    drawing.min_width = 100.0 / NARROW as f64;
    drawing.colors = Palette::Multi(MultiPalette::Java);
    drawing.palette_map = Some(&mut palette);
    drawing.text_truncate_direction = TextTruncateDirection::Right;
    if options.unit == Unit::Weight {
        let scale = answer.quality.kind.facts().picture;
        drawing.count_name = scale.unit.to_owned();
        drawing.factor = scale.of.recip();
    }
    // The lines are in the order of the walk, siblings with one name side by side, which an order of
    // bytes does not keep (`a b` sorts between `a` and `a;c`, and would cut `a` in two). Only its chart
    // mode takes lines as they come, last first.
    drawing.flame_chart = true;
    from_lines(&mut drawing, lines.lines().rev(), out)
}

/// Folded lines for inferno, and the colour of every name in them.
fn lines(answer: &Answer, unit: Unit, total: u64, palette: &mut PaletteMap) -> String {
    let mut path = Path::default();
    let mut lines = String::new();
    let walked = preorder::<std::fmt::Error>(&answer.tree, |visit| {
        let node = visit.node;
        if visit.depth == 0 {
            let own = unit.own(node);
            if own > 0 {
                writeln!(lines, "{NO_FRAMES} {own}")?;
            }
            return Ok(Below::Go);
        }
        let name = marked(node.frame.kind, &node.frame.name);
        path.set(visit.depth, &name);
        let value = unit.total(node);
        if value < total / NARROW {
            // Not drawn, and still part of its caller's width.
            if value > 0 && visit.depth > 1 {
                writeln!(lines, "{} {value}", path.parent())?;
            } else if value > 0 {
                writeln!(lines, "{name} {value}")?;
            }
            return Ok(Below::Skip);
        }
        if palette.get(&name).is_none() {
            palette.insert(&name, color(node.frame.kind, &node.frame.name));
        }
        if unit.own(node) > 0 {
            writeln!(lines, "{} {}", path.text(), unit.own(node))?;
        }
        Ok(Below::Go)
    });
    // Writing to a String does not fail.
    debug_assert!(walked.is_ok());
    lines
}

/// A name for inferno: with the mark of its kind, and a no-break space where a plain one would make
/// digits a count or the line a comment.
fn marked(kind: FrameKind, name: &str) -> String {
    let mark = match kind {
        FrameKind::Kernel => "_[k]",
        FrameKind::JavaCompiled => "_[j]",
        FrameKind::JavaInlined => "_[i]",
        FrameKind::JavaInterpreted => "_[w]",
        _ => "",
    };
    let name = clean(name, '\u{a0}');
    match name.strip_prefix("# ") {
        Some(rest) => format!("#\u{a0}{rest}{mark}"),
        None => format!("{name}{mark}"),
    }
}

/// The kind's hue, a little lighter or darker by name, the same in every picture.
fn color(kind: FrameKind, name: &str) -> Color {
    let (r, g, b, spread) = match kind {
        FrameKind::JavaCompiled => (60, 200, 60, 50),
        FrameKind::JavaInlined => (50, 180, 180, 50),
        FrameKind::JavaInterpreted => (165, 190, 60, 40),
        FrameKind::Kernel => (215, 120, 0, 40),
        FrameKind::Native => (205, 80, 80, 50),
        FrameKind::Python => (90, 120, 205, 50),
        FrameKind::Stub => (180, 100, 190, 50),
        FrameKind::Class => (215, 190, 70, 40),
        FrameKind::Unknown => (150, 150, 150, 20),
        FrameKind::Label => (185, 190, 200, 20),
    };
    // FNV-1a, 32 bits.
    let hash = name.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    let lighter = ((hash >> 8) % (spread + 1)) as u8;
    Color { r: lighter.saturating_add(r), g: lighter.saturating_add(g), b: lighter.saturating_add(b) }
}

fn subtitle(answer: &Answer) -> String {
    let quality = &answer.quality;
    let mut text = format!("{} to {}", answer.range.from, answer.range.until);
    if let Some(error) = quality.sampling_error() {
        let _ = write!(text, ", {} samples (error {:.1} %)", thousands(quality.samples), error * 100.0);
    }
    let mut part = |count: u64, what: &str| {
        if count > 0 {
            let _ = write!(text, ", {} {what}", thousands(count));
        }
    };
    part(quality.truncated, "with a cut stack");
    part(quality.lost.samples(), "lost on the node");
    part(quality.missing.count, "parts missing");
    text.push_str("; frames below 0.1 % are not drawn");
    text
}

/// A picture that says why nothing is drawn.
pub(super) fn write_empty(title: &str, why: &str, out: &mut impl Write) -> io::Result<()> {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (title, why) = (escaped(title), escaped(why));
    write!(
        out,
        r##"<?xml version="1.0" standalone="no"?>
<svg version="1.1" width="1200" height="90" viewBox="0 0 1200 90" xmlns="http://www.w3.org/2000/svg">
<rect x="0" y="0" width="100%" height="100%" fill="#f8f8f8"/>
<text x="50%" y="32" text-anchor="middle" font-family="monospace" font-size="17">{title}</text>
<text x="50%" y="60" text-anchor="middle" font-family="monospace" font-size="12">{why}</text>
</svg>
"##
    )
}
