//! What is known by construction (tests/jobs/oracle/Known.java): the shares of three methods that C2 inlines into
//! one caller, the one line that has nearly all of a method's time, and the deepest stack that is kept whole.

use super::{Bench, Seen, java, percent, seen};
use crate::bench::row::Row;
use crate::oracle::{Frame, Stack};
use crate::setup::runtime::Runtime;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// Methods and their shares, in percent.
const SHARES: [(&str, f64); 3] = [("Known.one", 20.0), ("Known.two", 30.0), ("Known.three", 50.0)];
/// Seen over truth may be off by so much, and the sampling error.
const OFF: f64 = 0.03;
/// With debug info everywhere: in points, and the sampling error.
const POINTS: f64 = 1.0;
/// Of samples with the right line, in percent.
const LINES: f64 = 98.0;
/// Frames that a whole stack must be able to have.
const DEPTH: usize = 512;
/// What keeps debug info for every instruction.
const DEBUG: &[&str] = &["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"];
/// C2 would else leave alone what is compiled already and large: what it inlines is what is held.
const INLINED: [&str; 2] = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=inline,Known::*"];
/// Seconds of a program whose shares are compared.
const SECONDS: u64 = 20;

fn leaf(stack: &Stack) -> Option<&Frame> {
    stack.user().rfind(|frame| frame.is_java())
}

/// Runs a program; what the daemon says of it, with `detail` of frames.
fn run(
    bench: &Bench,
    java: &Runtime,
    flags: &[&str],
    (program, seconds): (&str, u64),
    detail: &str,
) -> Result<Seen> {
    let daemon = bench.daemon("known-daemon")?;
    let ran = bench.programs(java, flags, &[program], seconds)?;
    let told = ran.told.first().context("the program told nothing")?;
    let range = told.range.clone().map_err(anyhow::Error::msg)?;
    let seen = seen(&daemon, &format!("pid={}{detail}", ran.jvm.pid()), range)?;
    daemon.stop()?;
    Ok(seen)
}

/// The rows `split`.
pub fn split(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for major in bench.majors(&[17, 25]) {
        let Some(java) = java(major, skipped, "split") else { continue };
        for (how, flags) in [("no flag", &[][..]), ("DebugNonSafepoints", DEBUG)] {
            let seen = run(bench, &java, &[&INLINED[..], flags].concat(), ("split", SECONDS), "&annotate=1")?;
            let inside = |stack: &&Stack| stack.java().iter().any(|frame| frame.name.starts_with("Known."));
            let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
            for stack in seen.stacks.iter().filter(inside) {
                if let Some(leaf) = leaf(stack) {
                    *found.entry((leaf.name.clone(), leaf.kind.clone())).or_default() += stack.count;
                }
            }
            let all: usize = found.values().sum();
            for ((name, kind), n) in &found {
                println!("   Java {major}, {how}: {:.2} % {name} ({kind}), {n} samples", percent(*n, all));
            }
            let inlined: usize =
                found.iter().filter(|((_, kind), _)| kind == "java-inlined").map(|(_, n)| n).sum();
            let what = format!("split: Java {major}, {how}, samples whose leaf is inlined");
            rows.push(Row::told(what, format!("{:.2} %", percent(inlined, all)), all));
            for (method, truth) in SHARES {
                let n: usize = found.iter().filter(|((name, _), _)| name == method).map(|(_, n)| n).sum();
                let share = percent(n, all);
                let what = format!("split: Java {major}, {how}, {method}");
                let (off, bar, error) = if flags.is_empty() {
                    ((share / truth - 1.0).abs(), OFF, 0.7 / (n.max(1) as f64).sqrt())
                } else {
                    ((share - truth).abs(), POINTS, 70.0 / (all.max(1) as f64).sqrt())
                };
                let figure = format!("{share:.2} %, truth {truth} %: {:.3} of it", share / truth);
                rows.push(Row::is(
                    what,
                    figure,
                    &format!("{bar} + {error:.3}"),
                    n > 0 && off <= bar + error,
                    all,
                ));
            }
        }
    }
    Ok(rows)
}

/// The rows `lines`.
pub fn lines(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let source = crate::places::workspace().join("tests/jobs/oracle/Known.java");
    let text = std::fs::read_to_string(&source).with_context(|| format!("reading {}", source.display()))?;
    let hot =
        text.lines().position(|line| line.ends_with("// HOT")).context("no line is marked HOT")? as u64 + 1;
    let mut rows = Vec::new();
    for major in bench.majors(&[17, 25]) {
        let Some(java) = java(major, skipped, "lines") else { continue };
        for (how, flags) in [("no flag", &[][..]), ("DebugNonSafepoints", DEBUG)] {
            let seen = run(bench, &java, flags, ("line", bench.options.seconds), "&lines=1")?;
            let mut found: BTreeMap<(String, u64), usize> = BTreeMap::new();
            for (stack, leaf) in seen.stacks.iter().filter_map(|stack| Some((stack, leaf(stack)?))) {
                if stack.java().iter().any(|frame| frame.name.starts_with("Known.")) {
                    // With lines told apart a name ends in its line.
                    let name = leaf.name.split(':').next().unwrap_or_default();
                    *found.entry((name.to_owned(), leaf.line)).or_default() += stack.count;
                }
            }
            let all: usize = found.values().sum();
            for ((name, line), n) in &found {
                println!("   Java {major}, {how}: {:.2} % {name} line {line}", percent(*n, all));
            }
            let right = found.get(&("Known.line".to_owned(), hot)).copied().unwrap_or(0);
            let what = format!("lines: Java {major}, {how}, leaf in line {hot}");
            rows.push(match flags.is_empty() {
                true => Row::told(what, format!("{:.2} %", percent(right, all)), all),
                false => Row::share(what, right, LINES, all),
            });
        }
    }
    Ok(rows)
}

/// The row `depth`.
pub fn depth(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let flags = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Sweep::dig"];
    for major in bench.majors(&[17, 25]) {
        let Some(java) = java(major, skipped, "depth") else { continue };
        let seen = run(bench, &java, &flags, ("sweep", bench.options.seconds.max(10)), "")?;
        let digs = |stack: &Stack| stack.java().iter().filter(|frame| frame.name == "Sweep.dig").count();
        let deep: Vec<&Stack> = seen.stacks.iter().filter(|stack| digs(stack) > 0).collect();
        let n = deep.iter().map(|stack| stack.count).sum();
        let whole =
            deep.iter().filter(|stack| stack.is_rooted()).map(|stack| stack.physical()).max().unwrap_or(0);
        let cut = deep.iter().filter(|stack| !stack.is_rooted()).map(|stack| stack.physical());
        println!(
            "   Java {major}: whole up to {whole} frames; cut ones have {} to {}; ends: {}",
            cut.clone().min().unwrap_or(0),
            cut.max().unwrap_or(0),
            super::ends(&seen.quality)
        );
        let what = format!("depth: Java {major}, most frames of a whole stack");
        rows.push(Row::is(what, whole.to_string(), &format!(">= {DEPTH}"), whole >= DEPTH, n));
    }
    Ok(rows)
}
