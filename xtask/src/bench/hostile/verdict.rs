//! What was seen during an attack, as lines of the table.

use super::watch::Seen;
use crate::bench::row::Row;
use crate::launch::Daemon;

/// Samples a second and CPU of a daemon that is told nothing.
const HZ: f64 = 99.0;
/// Of the daemon and its maps, in MB.
const MEMORY: f64 = 128.0;
/// Seconds: the last window's age; a time without a good answer that no longer counts as answers that go on.
const AGE: f64 = 15.0;
const SILENCE: f64 = 10.0;

/// The lines of an attack. The daemon, if it lives, is asked for the samples.
pub fn rows(attack: &str, seen: &Seen, daemon: Option<&Daemon>) -> Vec<Row> {
    let mut rows = of_executors(attack, seen, daemon);
    let n = seen.answers;
    let age = seen.window_age.map(|age| age.as_secs_f64());
    rows.push(Row::is(
        format!("{attack}: greatest age of the last window"),
        age.map_or("none seen".to_owned(), |age| format!("{age:.1} s")),
        &format!("<= {AGE} s"),
        // Nothing new can be seen where nothing is answered.
        age.is_some_and(|age| age.max(seen.silence.as_secs_f64()) <= AGE),
        n,
    ));
    let (rss, maps) = (seen.rss as f64 / 1e6, seen.maps as f64 / 1e6);
    rows.push(Row::is(
        format!("{attack}: memory at its peak"),
        format!("{:.1} MB: daemon {rss:.1}, BPF {maps:.1}", rss + maps),
        &format!("<= {MEMORY} MB"),
        rss + maps <= MEMORY,
        1,
    ));
    let failed = seen.first_failure.as_deref().map_or(String::new(), |why| format!(" ({})", short(why)));
    rows.push(Row::is(
        format!("{attack}: answers to a steady asker"),
        format!(
            "{:.1}/s, slowest {:.2} s, {} failed{failed}",
            n as f64 / seen.elapsed.max(0.1),
            seen.slowest.as_secs_f64(),
            seen.failures
        ),
        "go on",
        n > 0 && seen.silence.as_secs_f64() <= SILENCE && seen.failures * 100 <= n,
        n + seen.failures,
    ));
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let share = seen.cpu / seen.elapsed.max(0.1) / cores * 100.0;
    rows.push(Row::told(format!("{attack}: CPU of the daemon"), format!("{share:.1} % of the machine"), 1));
    let life = seen.died.map_or("lives".to_owned(), |after| format!("dead after {after:.0} s"));
    rows.push(Row::is(format!("{attack}: the daemon"), life, "lives", seen.died.is_none(), 1));
    rows
}

/// Samples of each executor; where they are not as /proc has it, those of the kernel's clock alone, too: a timer's interrupt that
/// comes late finds who runs then.
fn of_executors(attack: &str, seen: &Seen, daemon: Option<&Daemon>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (pid, cpu) in &seen.executors {
        let what = format!("{attack}: executor {pid}, samples x period against /proc");
        rows.push(match (cpu, daemon.map(|daemon| samples(daemon, *pid, seen.range))) {
            (None, _) => Row::told(what, "it ended by itself", 0),
            (Some(cpu), Some(Some(n))) => {
                let share = cpu / (seen.range.1.saturating_sub(seen.range.0) as f64 / 1000.0).max(0.1);
                Row::deviation_of_share(what, (n / HZ, *cpu), 1.0, (n, share))
            }
            (Some(_), _) => Row::is(what, "no answer", "1 %", false, 0),
        });
        if let (true, Some(cpu), Some(sampled)) =
            (rows.last().is_some_and(Row::fails), cpu, seen.sampled.get(pid))
        {
            let off = (sampled / cpu.max(0.01) - 1.0) * 100.0;
            rows.push(Row::told(
                format!("{attack}: executor {pid}, the kernel's clock without a profiler, against /proc"),
                format!("{sampled:.3} s, truth {cpu:.3} s: {off:+.2} %"),
                1,
            ));
        }
    }
    rows
}

/// Samples of a process.
fn samples(daemon: &Daemon, pid: u32, (from, until): (u64, u64)) -> Option<f64> {
    let path = format!("/api/v1/flamegraph?pid={pid}&from={from}&until={until}&format=json");
    daemon.json(&path).ok()?["quality"]["samples"].as_f64()
}

/// The beginning of a text.
fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn silence_and_death_are_failures() {
        let good = || Seen {
            answers: 100,
            window_age: Some(Duration::from_secs(13)),
            elapsed: 10.0,
            rss: 50_000_000,
            ..Seen::default()
        };
        let failing = |seen: &Seen| rows("a", seen, None).iter().filter(|row| row.fails()).count();
        assert_eq!(failing(&good()), 0);
        assert_eq!(failing(&Seen { died: Some(3.0), ..good() }), 1);
        assert_eq!(failing(&Seen { rss: 200_000_000, ..good() }), 1);
        // Late windows, and no answers.
        assert_eq!(failing(&Seen { silence: Duration::from_secs(20), ..good() }), 2);
        assert_eq!(failing(&Seen { failures: 2, ..good() }), 1);
        assert_eq!(failing(&Seen { executors: vec![(1, Some(1.0))], ..good() }), 1);
    }
}
