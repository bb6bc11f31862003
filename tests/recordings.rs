//! JFR recordings that `emberscope export` writes, as the `jfr` tool of every JDK here reads them: the same stacks, labels and
//! sums as the other formats have. Needs no root.

use anyhow::{Context as _, Result, ensure};
use emberscope_export::{ExportOptions, Format, render};
use emberscope_model::{Answer, Frame, FrameKind, Node, Quality, SampleKind, TimeRange, Tree, WallTime};
use emberscope_tests::{ran, required, skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Of the store that is read: its samples, and the span that holds them.
const SAMPLES: u64 = 3280;
const SPAN: [&str; 4] = ["--from", "1700000000", "--until", "1700000040"];

/// The `jfr` tools of the machine's JDKs; none after saying that `test` is skipped.
fn tools(test: &str) -> Vec<PathBuf> {
    let homes = [11, 17, 21, 25].map(|major| std::env::var_os(format!("EMBERSCOPE_JAVA{major}")));
    let tool = |home| PathBuf::from(home).join("bin/jfr");
    let found: Vec<PathBuf> = homes.into_iter().flatten().map(tool).filter(|jfr| jfr.is_file()).collect();
    if found.is_empty() {
        skip(test, "no JDK with a jfr tool: `cargo xtask test` sets EMBERSCOPE_JAVA17 and its kin");
    }
    found
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{command:?} ended with {}: {out}{err}", output.status);
    Ok(out.into_owned())
}

/// The events of a type: their values.
fn events(jfr: &Path, name: &str, file: &Path) -> Result<Vec<Value>> {
    let mut print = Command::new(jfr);
    print.args(["print", "--json", "--stack-depth", "64", "--events", name]).arg(file);
    let printed: Value = serde_json::from_str(&run(&mut print)?)?;
    let events = printed["recording"]["events"].as_array().cloned().unwrap_or_default();
    let is = |event: &Value| event["type"].as_str() == Some(name);
    ensure!(events.iter().all(is), "other events than {name}");
    Ok(events.iter().map(|event| event["values"].clone()).collect())
}

/// Samples by stack, as folded lines with labels in front.
fn stacks(events: &[Value], labels: &[&str]) -> Result<BTreeMap<String, u64>> {
    let mut stacks = BTreeMap::new();
    for event in events {
        let label = |name: &&str| format!("{name}={}", event[*name].as_str().unwrap_or("(none)"));
        let mut line: Vec<String> = labels.iter().map(label).collect();
        let frames = event["stackTrace"]["frames"].as_array().map_or(&[][..], Vec::as_slice);
        for frame in frames.iter().rev() {
            let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
            let own = text(&frame["method"]["name"])?;
            let class = text(&frame["method"]["type"]["name"])?.replace('/', ".");
            line.push(match frame["type"].as_str() {
                Some("JIT compiled" | "Inlined" | "Interpreted") => format!("{class}.{own}"),
                _ => own,
            });
        }
        *stacks.entry(line.join(";")).or_default() += event["samples"].as_u64().context("samples")?;
    }
    Ok(stacks)
}

#[test]
fn what_jfr_prints_is_what_was_sampled() -> Result<()> {
    const TEST: &str = "what_jfr_prints_is_what_was_sampled";
    let tools = tools(TEST);
    let Some(binary) = required(TEST, "EMBERSCOPE_BIN").filter(|_| !tools.is_empty()) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    std::fs::create_dir(&data)?;
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/store-1");
    run(Command::new("cp").arg("-r").arg(store).arg(data.join("store")))?;
    let export = |data: &Path, more: &[&str]| -> Result<String> {
        let words =
            [binary.to_str().context("a path")?, "export", "--data-dir", data.to_str().context("a path")?];
        Ok(ran(words.iter().chain(&SPAN).chain(more))?.good()?.out)
    };
    let folded = |data: &Path| -> Result<BTreeMap<String, u64>> {
        let text = export(data, &["--group", "executor,stage,task", "--format", "folded"])?;
        let line =
            |line: &str| Some((line.rsplit_once(' ')?.0.to_owned(), line.rsplit_once(' ')?.1.parse().ok()?));
        text.lines().map(|text| line(text).with_context(|| format!("no folded line: {text}"))).collect()
    };
    let file = dir.path().join("all.jfr");
    export(&data, &["-o", file.to_str().context("a path")?])?;
    let want = folded(&data)?;
    ensure!(want.values().sum::<u64>() == SAMPLES, "{want:?}");
    for jfr in &tools {
        let summary = run(Command::new(jfr).arg("summary").arg(&file))?;
        let counted = summary.lines().find_map(|line| line.trim().strip_prefix("jdk.ExecutionSample"));
        let counted = counted.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
        ensure!(counted == SAMPLES.to_string(), "{summary}");
        let events = events(jfr, "jdk.ExecutionSample", &file)?;
        ensure!(events.len() as u64 == SAMPLES, "{} events", events.len());
        let got = stacks(&events, &["executor", "stage", "task"])?;
        ensure!(got == want, "{}: {got:?} instead of {want:?}", jfr.display());
    }
    let again = dir.path().join("again");
    let words = [binary.as_path(), Path::new("import"), Path::new("--data-dir"), &again, &file];
    ran(words)?.good()?;
    ensure!(folded(&again)? == want, "{:?} instead of {want:?}", folded(&again)?);
    Ok(())
}

#[test]
fn waits_are_printed_as_wall_clock_samples_of_their_length() -> Result<()> {
    let node = |frame, parent, count, weight| Node {
        frame: Arc::new(frame),
        parent,
        self_count: count,
        self_weight: weight,
        total_count: count,
        total_weight: weight,
    };
    let nodes = vec![
        node(Frame::new(FrameKind::Label, "total", ""), 0, 0, 0),
        node(Frame::new(FrameKind::Label, "wait=lock", ""), 0, 0, 0),
        node(Frame::new(FrameKind::JavaCompiled, "a.B.lock", ""), 1, 3, 1_000_000_007),
        node(Frame::new(FrameKind::Native, "futex", "libc.so.6"), 2, 1, 5),
    ];
    let quality = Quality { kind: SampleKind::OffCpu, ..Quality::default() };
    let range = TimeRange {
        from: WallTime::from_millis(1_700_000_000_000),
        until: WallTime::from_millis(1_700_000_010_000),
    };
    let answer = Answer { tree: Tree::with_totals(nodes), range, windows: 1, quality };
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("waits.jfr");
    std::fs::write(&file, render(Format::Jfr, &answer, &ExportOptions::default())?)?;
    for jfr in tools("waits_are_printed_as_wall_clock_samples_of_their_length") {
        let events = events(&jfr, "profiler.WallClockSample", &file)?;
        // One for each 10 ms, and one for what is shorter.
        ensure!(events.len() == 101, "{}: {} events", jfr.display(), events.len());
        ensure!(
            events.iter().all(|event| event["state"] == "STATE_SLEEPING" && event["wait"] == "lock"),
            "{events:?}"
        );
        let seconds = |event: &Value| {
            event["weight"].as_str()?.strip_prefix("PT")?.strip_suffix('S')?.parse::<f64>().ok()
        };
        let sum: Option<f64> = events.iter().map(seconds).sum();
        let sum = sum.with_context(|| format!("no lengths: {:?}", events.first()))?;
        ensure!((sum - 1.000_000_012).abs() < 1e-9, "{sum} s");
    }
    Ok(())
}
