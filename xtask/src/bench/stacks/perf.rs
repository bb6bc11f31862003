//! `perf record --call-graph dwarf` and the daemon on the same run of a C program without frame pointers
//! (tests/fixtures/mix.c): the same twenty functions first, with the same shares.
//!
//! perf copies 8 KiB of stack with each sample and unwinds it afterwards, by the same unwind information as the
//! daemon's tables but with other code. Functions of the program are compared; what the leaf is in a library counts as
//! one.

use super::Bench;
use crate::bench::row::Row;
use crate::clock;
use crate::launch::Running;
use crate::oracle::stacks;
use crate::{places, step};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

/// Both sample this often.
const HZ: &str = "499";
const SECONDS: u64 = 20;
const TOP: usize = 20;
/// Points of share.
const POINTS: f64 = 2.0;
/// How the program's functions begin.
const OWN: &str = "mix_";
const LIBRARY: &str = "[libraries]";

/// Samples by function: with it as the leaf, and with it anywhere.
#[derive(Debug, Default)]
struct Shares {
    n: f64,
    own: BTreeMap<String, f64>,
    total: BTreeMap<String, f64>,
}

impl Shares {
    /// Names of a stack's user frames, in any order but for the leaf.
    fn add<'a>(&mut self, leaf: &str, names: impl Iterator<Item = &'a str>, count: f64) {
        self.n += count;
        let leaf = if leaf.starts_with(OWN) { leaf } else { LIBRARY };
        *self.own.entry(leaf.to_owned()).or_default() += count;
        for name in names.filter(|name| name.starts_with(OWN)).collect::<BTreeSet<_>>() {
            *self.total.entry(name.to_owned()).or_default() += count;
        }
    }

    /// The functions with the largest shares as leaf.
    fn top(&self) -> Vec<&str> {
        let mut all: Vec<_> = self.own.iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(a.1));
        all.into_iter().take(TOP).map(|(name, _)| name.as_str()).collect()
    }
}

/// Measures.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    if !Command::new("perf").arg("--version").output().is_ok_and(|done| done.status.success()) {
        skipped.push("perf: there is no `perf` here (Debian's linux-perf)".to_owned());
        return Ok(Vec::new());
    }
    let program = bench.work.join("mix");
    let source = places::workspace().join("tests/fixtures/mix.c");
    let mut cc = Command::new("cc");
    // Functions of the same share are the same code: the compiler would make them one, under any of their names.
    cc.args(["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-ipa-icf", "-o"])
        .arg(&program)
        .arg(source);
    step::run("compiling the program of known shares", &mut cc, "install gcc")?;
    let daemon = bench.daemon("perf-daemon")?;
    let mut running = Running::start("mix", &mut Command::new(&program), &bench.work.join("mix.log"))?;
    running.wait_fact("ready", Duration::from_secs(20))?;
    std::thread::sleep(Duration::from_secs(2));
    let data = bench.work.join("perf.data");
    let pid = running.pid().to_string();
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-e", "cpu-clock", "-F", HZ, "--call-graph", "dwarf", "-p", &pid, "-o"]);
    record.arg(&data).args(["--", "sleep", &SECONDS.to_string()]);
    let began = clock::now();
    step::run("recording with perf", &mut record, "perf must be allowed to sample (run as root)")?;
    let ended = clock::now();
    // The window that this is in must close.
    std::thread::sleep(super::VISIBLE_AFTER);
    drop(running);
    let answer =
        daemon.json(&format!("/api/v1/flamegraph?pid={pid}&from={began}&until={ended}&format=json"))?;
    daemon.stop()?;
    let mut ours = Shares::default();
    for stack in stacks(&answer) {
        let Some(leaf) = stack.user().next_back() else { continue };
        ours.add(&leaf.name, stack.user().map(|frame| frame.name.as_str()), stack.count as f64);
    }
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "-F", "ip,sym,dso", "-i"]).arg(&data);
    let text = script.output().with_context(|| format!("starting {}", step::shown(&script)))?;
    let theirs = of_perf(&String::from_utf8_lossy(&text.stdout));
    Ok(judged(&ours, &theirs))
}

/// The samples that `perf script` prints: a line for each frame, the leaf first, and an empty line after each sample.
fn of_perf(text: &str) -> Shares {
    let mut shares = Shares::default();
    for sample in text.split("\n\n") {
        let frame = |line: &'_ str| {
            let (_, rest) = line.trim().split_once(' ')?;
            let (name, module) = rest.rsplit_once(" (")?;
            (!module.starts_with("[kernel")).then(|| name.to_owned())
        };
        let names: Vec<String> = sample.lines().filter_map(frame).collect();
        let Some(leaf) = names.first() else { continue };
        shares.add(leaf, names.iter().map(String::as_str), 1.0);
    }
    shares
}

fn judged(ours: &Shares, theirs: &Shares) -> Vec<Row> {
    let n = ours.n.min(theirs.n).max(1.0);
    let error = 70.0 / n.sqrt();
    let off = |a: &BTreeMap<String, f64>, b: &BTreeMap<String, f64>| {
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        let share = |all: &BTreeMap<String, f64>, name: &String, n: f64| {
            all.get(name).copied().unwrap_or_default() / n.max(1.0) * 100.0
        };
        let offs = names.into_iter().map(|name| (share(a, name, ours.n) - share(b, name, theirs.n), name));
        let worst = offs.max_by(|x, y| x.0.abs().total_cmp(&y.0.abs()));
        worst.map_or((f64::INFINITY, "none".to_owned()), |(off, name)| (off, name.clone()))
    };
    let (first, second): (BTreeSet<&str>, BTreeSet<&str>) =
        (ours.top().into_iter().collect(), theirs.top().into_iter().collect());
    let same = first.intersection(&second).count();
    let bar = format!("{POINTS} + {error:.2} points");
    let mut rows = vec![Row::is(
        format!("perf: the same first {TOP} of {} functions", ours.own.len()),
        format!("{same}, of {:.0} samples of perf's and {:.0} of ours", theirs.n, ours.n),
        &TOP.to_string(),
        same == TOP,
        n as usize,
    )];
    for (what, (off, name)) in
        [("as the leaf", off(&ours.own, &theirs.own)), ("in the stack", off(&ours.total, &theirs.total))]
    {
        rows.push(Row::is(
            format!("perf: largest difference of a function's share, {what}"),
            format!("{off:+.2} points: {name}"),
            &bar,
            off.abs() <= POINTS + error,
            n as usize,
        ));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_perf_are_read_and_compared() {
        let text = "        401136 mix_a (/tmp/mix)\n        401200 mix_first (/tmp/mix)\n\n    \
            ffffffff81000000 entry ([kernel.kallsyms])\n        7f00 msort (/usr/lib/libc.so.6)\n        \
            401200 mix_first (/tmp/mix)\n\n";
        let theirs = of_perf(text);
        assert_eq!((theirs.n, theirs.own["mix_a"], theirs.own[LIBRARY]), (2.0, 1.0, 1.0));
        assert_eq!(theirs.total["mix_first"], 2.0);
        let mut ours = Shares::default();
        ours.add("mix_a", ["mix_first", "mix_a"].into_iter(), 10.0);
        assert!(judged(&theirs, &theirs).iter().skip(1).all(|row| !row.fails()));
        // Half of the samples elsewhere, and eleven of two functions: no figure is right by chance.
        assert!(judged(&ours, &theirs)[0].fails());
    }
}
