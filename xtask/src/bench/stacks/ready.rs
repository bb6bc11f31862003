//! Time from a JVM's start to its first whole stack: programs that work from their first moment on are started
//! under a running daemon, and what is not yet whole is counted: a thread that never waits gives so many samples a
//! second, so samples are time. Told, with an aim.

use super::{Bench, java};
use crate::bench::row::Row;
use crate::bench::stats::Summary;
use crate::clock::now;
use crate::launch::Daemon;
use crate::oracle::{Oracle, stacks};
use anyhow::{Context as _, Result};
use std::time::Duration;

/// Samples a second: a sample is a millisecond.
const HZ: u32 = 997;
/// Seconds that are looked at, of windows of one second each.
const SECONDS: u64 = 4;
/// JVMs started.
const STARTS: usize = 5;
/// Aim, seconds.
const AIM: f64 = 2.0;

/// Measures.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for major in bench.majors(&[17, 25]) {
        let Some(java) = java(major, skipped, "ready") else { continue };
        let words = ["--hz", &HZ.to_string(), "--window", "1s"];
        let daemon = Daemon::start(&bench.binary, &bench.work.join("ready-daemon"), None, &words)?;
        let classes = java.place(&bench.classes)?;
        let mut times = Vec::new();
        for start in 0..STARTS {
            let oracle = Oracle {
                java: java.command.clone(),
                flags: bench.options.java_flags.iter().filter(|flag| !flag.is_empty()).cloned().collect(),
                programs: vec!["deep10".to_owned()],
                seconds: 60,
                window_ms: 1000,
            };
            let began = now();
            let jvm = oracle.start(&classes, &bench.work.join(format!("ready-{start}.log")))?;
            std::thread::sleep(Duration::from_secs(SECONDS) + super::VISIBLE_AFTER);
            match first_whole(&daemon, jvm.pid(), began)? {
                Some(seconds) => times.push(seconds),
                None => println!("   Java {major}: no whole stack in {SECONDS} s"),
            }
        }
        daemon.stop()?;
        println!("   Java {major}: {times:.2?} s");
        let what = format!("ready: Java {major}, s from start to first whole Java stack");
        let figure = match Summary::of(&times) {
            Some(all) => {
                format!("median {:.2}, worst {:.2}; {} of {STARTS} starts", all.median, all.max, all.n)
            }
            None => "none was whole".to_owned(),
        };
        let holds = times.len() == STARTS && times.iter().all(|time| *time < AIM);
        rows.push(Row::is(what, figure, &format!("aim < {AIM}"), holds, times.len()));
    }
    Ok(rows)
}

/// Seconds from `began` to the first whole Java stack: whole windows that have none, and of the first that has
/// one the samples that are not whole.
fn first_whole(daemon: &Daemon, pid: u32, began: u64) -> Result<Option<f64>> {
    for from in (began / 1000 * 1000..began + SECONDS * 1000).step_by(1000) {
        let path = format!("/api/v1/flamegraph?pid={pid}&from={from}&until={}&format=json", from + 1000);
        let answer = daemon.json(&path).with_context(|| format!("asking for {pid}"))?;
        let java = stacks(&answer);
        let of_java = || java.iter().filter(|stack| stack.has_java_leaf());
        let whole: usize = of_java().filter(|s| s.is_rooted() && !s.java().is_empty()).map(|s| s.count).sum();
        let cut: usize = of_java().map(|s| s.count).sum::<usize>() - whole;
        if whole > 0 {
            // The whole ones are the window's last; before the JVM's first Java there is its own start.
            let end = (from + 1000).saturating_sub(began) as f64 / 1000.0;
            let full = whole as f64 / f64::from(HZ);
            return Ok(Some((end - full).max(cut as f64 / f64::from(HZ))));
        }
    }
    Ok(None)
}
