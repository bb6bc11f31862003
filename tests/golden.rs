//! Golden pairs: rows of windows in, every export out, byte by byte.
//!
//! `golden/NAME.rows` holds a query (first line) and the rows of its windows, a JSON value a line;
//! `golden/NAME.<output>` what must come out. Of the SVG only the drawing is compared, not inferno's
//! script. Nothing here writes to `golden/`: a difference leaves the new output in the build directory
//! and names both files, and whoever agrees with it copies it by hand.

use anyhow::{Context, Result, bail, ensure};
use emberscope_export::{ExportOptions, Format, Unit, methods, render, sort};
use emberscope_model::{
    Detail, DropReason, Frame, FrameKind, LabelKey, LabelSet, LabelSetBuilder, LostCounts, Query, Row,
    SampleKind, Selection, Stack, StackEnd, TimeRange, UnknownReason, WallTime, Window,
};
use emberscope_store::{MemoryStore, MemoryStoreConfig, Store};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const CASES: &[&str] = &["spark", "grouped", "hostile", "empty"];
const PERIOD_NS: u64 = 10_101_010;

#[test]
fn exports_are_as_agreed() -> Result<()> {
    let mut different = Vec::new();
    for case in CASES {
        for (output, bytes) in outputs(case).with_context(|| format!("case {case}"))? {
            let golden = directory().join(format!("{case}.{output}"));
            if std::fs::read(&golden).ok().as_deref() != Some(&bytes) {
                let actual = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{case}.{output}"));
                std::fs::write(&actual, &bytes)?;
                different.push(format!("  diff {} {}", golden.display(), actual.display()));
            }
        }
    }
    ensure!(different.is_empty(), "exports differ from what was agreed:\n{}", different.join("\n"));
    Ok(())
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

fn outputs(case: &str) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let text = std::fs::read_to_string(directory().join(format!("{case}.rows")))?;
    let mut lines = text.lines().map(serde_json::from_str::<Value>);
    let asked = lines.next().context("the query")??;
    let store = MemoryStore::new(MemoryStoreConfig::default());
    for line in lines {
        store.append(window(&line?)?);
    }
    let query = Query {
        range: range(&asked)?,
        selection: Selection::all(),
        kind: SampleKind::Cpu,
        group: list(&asked["group"]).filter_map(Value::as_str).filter_map(LabelKey::from_name).collect(),
        detail: Detail { kinds: true, ..Detail::default() },
    };
    let answer = store.merge(&query)?;
    let unit =
        asked["unit"].as_str().and_then(|unit| Unit::from_slug(unit, SampleKind::Cpu)).context("unit")?;
    let plain = ExportOptions { unit, title: text_of(&asked["title"]), annotate: false };
    let annotated = ExportOptions { annotate: true, ..plain.clone() };
    let svg = String::from_utf8(render(Format::Svg, &answer, &plain)?)?;
    let drawing = svg.split_once("</script>").map_or(&*svg, |(_, drawing)| drawing);
    let mut json = serde_json::to_string_pretty(&serde_json::from_slice::<Value>(&render(
        Format::Json,
        &answer,
        &plain,
    )?)?)?;
    json.push('\n');
    let mut methods = methods(&answer.tree);
    sort(&mut methods, false);
    let table = methods
        .iter()
        .map(|m| {
            let (own, total) = match unit {
                Unit::Samples => (m.own.count, m.total.count),
                Unit::Weight => (m.own.weight, m.total.weight),
            };
            let kinds: Vec<&str> = m.kinds.iter().copied().collect();
            format!("{own} {total} {:?} {:?} {}\n", m.name, m.module, kinds.join(","))
        })
        .collect::<String>();
    Ok(vec![
        ("folded", render(Format::Folded, &answer, &plain)?),
        ("annotated.folded", render(Format::Folded, &answer, &annotated)?),
        ("drawing.xml", drawing.replace("<g>", "\n<g>").trim_start().as_bytes().to_vec()),
        ("json", json.into_bytes()),
        ("top", table.into_bytes()),
    ])
}

fn window(value: &Value) -> Result<Window> {
    let rows = list(&value["rows"]).map(row).collect::<Result<Vec<_>>>()?;
    let mut lost = LostCounts::default();
    for reason in DropReason::ALL {
        lost.0[*reason as usize] = value["lost"][reason.slug()].as_u64().unwrap_or(0);
    }
    Ok(Window {
        range: range(value)?,
        rows,
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost,
        partial: false,
    })
}

/// `[labels, count, end, [[kind, name, module], ...]]`, the root first.
fn row(value: &Value) -> Result<Row> {
    let mut labels = LabelSetBuilder::new();
    for (key, value) in value[0].as_object().context("labels")? {
        let key = LabelKey::from_name(key).with_context(|| format!("no label {key}"))?;
        labels = labels.set(key, text_of(value));
    }
    let labels: Arc<LabelSet> = Arc::new(labels.build());
    let count = value[1].as_u64().context("count")?;
    let end = StackEnd::ALL.iter().find(|end| Some(end.slug()) == value[2].as_str()).context("end")?;
    let frames = list(&value[3]).map(frame).collect::<Result<Vec<_>>>()?;
    let stack = Arc::new(Stack { frames: frames.into(), end: *end });
    Ok(Row { labels, stack, kind: SampleKind::Cpu, count, weight: count * PERIOD_NS })
}

fn frame(value: &Value) -> Result<Arc<Frame>> {
    use FrameKind::*;
    const KINDS: [FrameKind; 7] = [Kernel, Native, JavaCompiled, JavaInlined, JavaInterpreted, Stub, Python];
    let (kind, name, module) = (text_of(&value[0]), text_of(&value[1]), text_of(&value[2]));
    if kind == "unknown" {
        let reason = UnknownReason::ALL.iter().find(|reason| reason.slug() == name).context("reason")?;
        return Ok(Arc::new(Frame::unknown(*reason, module)));
    }
    match KINDS.into_iter().find(|k| k.slug() == kind) {
        Some(kind) => Ok(Arc::new(Frame::new(kind, name, module))),
        None => bail!("no kind of frame is called {kind}"),
    }
}

fn range(value: &Value) -> Result<TimeRange> {
    let second = |key| value[key].as_u64().with_context(|| format!("{key}, in seconds"));
    let at = |second: u64| WallTime::from_millis(second * 1_000);
    Ok(TimeRange { from: at(second("from")?), until: at(second("until")?) })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
