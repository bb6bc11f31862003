//! Pauses of JVMs against the JVM's own log (`launch::pauses`), on each JDK with each collector: which are missing, and by how
//! much begin and end differ, of each pause over 1 ms.

use super::super::row::Row;
use super::Bench;
use super::allocations::{COLLECTORS, home};
use crate::clock::{now, sleep_until_visible};
use crate::launch::Daemon;
use crate::launch::pauses::{Compared, compare, median_and_worst, program};
use crate::setup::runtime::MAJORS;
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(300);
/// Seconds of work, and MB that are kept: up to 200 pauses a second and more, of which a window lists 1,000.
const WORK: (u32, u32) = (5, 60);
/// The bar of begin and end, microseconds.
const BAR_US: f64 = 200.0;

pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for major in MAJORS {
        let Some(home) = home(major) else {
            rows.push(Row::told(format!("JDK {major}"), "not on this machine", 0));
            continue;
        };
        if major < 11 {
            rows.push(Row::told(
                format!("JDK {major}"),
                "has no such log, and no probes where it is stripped",
                0,
            ));
            continue;
        }
        for (name, flag, _) in COLLECTORS.into_iter().filter(|(.., first)| major >= *first) {
            let name = format!("JDK {major} {name}");
            let compared = of_jvm(bench, &home, &name, flag)?;
            let n = compared.logged;
            rows.push(Row::at_most(
                format!("{name}: pauses over 1 ms that are missing"),
                compared.missing.len(),
                0,
                n,
            ));
            rows.push(Row::at_most(format!("{name}: with another cause"), compared.otherwise.len(), 0, n));
            let both = || compared.begin.iter().zip(&compared.end);
            let far = both().filter(|(begin, end)| begin.abs().max(end.abs()) > BAR_US).count();
            let what = format!("{name}: begin or end over {BAR_US:.0} us off the log");
            rows.push(Row::at_most(what, far, 0, both().count()));
            for (what, all) in [("begin", &compared.begin), ("end", &compared.end)] {
                let (median, worst) = median_and_worst(all);
                let beyond = all.iter().filter(|us| us.abs() > BAR_US).count();
                let figure =
                    format!("{median:.0} us at the median, {worst:.0} at worst, {beyond} over {BAR_US:.0}");
                rows.push(Row::told(format!("{name}: {what} against the log"), figure, n));
            }
        }
    }
    Ok(rows)
}

fn of_jvm(bench: &Bench, home: &Path, name: &str, flag: &str) -> Result<Compared> {
    let work = bench.work.join(name.replace(' ', "-"));
    std::fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let daemon = Daemon::start(&bench.binary, &work.join("data"), None, &[])?;
    let mut java = program(home, WORK.0, WORK.1).flag(flag).flag("-Xmx256m").start(&work)?;
    java.wait_fact("ready", TIMEOUT)?;
    let begun = Instant::now();
    while daemon.jvm(java.pid())?["pauses"] != "probe" {
        ensure!(begun.elapsed() < TIMEOUT, "the daemon sees no pauses of {name}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let from = now();
    std::fs::write(work.join("go"), "").context("starting the work")?;
    java.wait_fact("done", TIMEOUT)?;
    let done = now();
    let until = sleep_until_visible(done);
    let query = format!("pid={}&from={from}&until={until}&limit=100000", java.pid());
    let answer = daemon.json(&format!("/api/v1/pauses?{query}"))?;
    std::fs::write(work.join("stop"), "").context("stopping the program")?;
    java.wait(TIMEOUT)?;
    ensure!(daemon.stop()?.success(), "the daemon failed");
    compare(&work, &answer, done, Duration::from_millis(1))
}
