//! What is watched while an attack goes on: a steady asker's answers, the age of the last window, the daemon's memory
//! and life, the CPU time of the victim's executors over whole windows.

use crate::bench::procfs;
use crate::clock::{WINDOW_MS, border, now, sleep_until};
use crate::launch::Daemon;
use crate::turn;
use anyhow::Result;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is asked, in turn; the last says how old the last window is.
const ASKED: [&str; 3] =
    ["/api/v1/status", "/api/v1/apps", "/api/v1/flamegraph?format=json&from=-5m&max_nodes=1000"];
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(100);
/// Between two looks at the daemon's memory.
const LOOK: Duration = Duration::from_millis(500);

/// What was seen.
#[derive(Default)]
pub struct Seen {
    /// Answered with 200.
    pub answers: usize,
    /// Answered otherwise, or not; the first of them.
    pub failures: usize,
    pub first_failure: Option<String>,
    /// The slowest answer, and the longest time without a good one.
    pub slowest: Duration,
    pub silence: Duration,
    /// Greatest age of the last window, from its end.
    pub window_age: Option<Duration>,
    /// Bytes at the peak: resident, and of BPF maps.
    pub rss: u64,
    pub maps: u64,
    /// CPU seconds of the daemon, and over how many.
    pub cpu: f64,
    pub elapsed: f64,
    /// After how many seconds the daemon was dead.
    pub died: Option<f64>,
    /// The whole windows, Unix milliseconds.
    pub range: (u64, u64),
    /// CPU seconds of each executor over them; None: it ended.
    pub executors: Vec<(u32, Option<f64>)>,
    /// The same by the kernel's clock, sampled with no profiler: seconds, where that was asked.
    pub sampled: BTreeMap<u32, f64>,
}

/// The next start of a window, Unix milliseconds, with time to start something before it.
pub fn next() -> u64 {
    border(now() + 1500)
}

/// Watches from there on over so many whole windows: the fewest, and then until it is enough or they are the most.
pub fn over(
    daemon: &Daemon,
    (from, windows): (u64, RangeInclusive<u64>),
    executors: &[u32],
    enough: impl Fn() -> bool + Sync,
) -> Result<Seen> {
    let pid = daemon.pid();
    // Peaks of this attack alone: 5 resets VmHWM (proc(5), clear_refs).
    let _ = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
    let (done, seen) = (AtomicBool::new(false), Mutex::new(Seen::default()));
    let cpu = |pids: &[u32]| pids.iter().map(|pid| procfs::cpu_seconds(*pid).ok()).collect::<Vec<_>>();
    let begun = (Instant::now(), procfs::cpu_seconds(pid).unwrap_or(0.0));
    let (range, before, after) = std::thread::scope(|scope| {
        scope.spawn(|| ask(daemon, &done, &seen));
        scope.spawn(|| look(pid, &done, &seen));
        // Beside thousands of threads the clock of others is late by some tenths of a second, which is some percent of a range.
        let (range, before, after) = turn::first(|| {
            let mut until = from + windows.start() * WINDOW_MS;
            let most = from + windows.end() * WINDOW_MS;
            sleep_until(from);
            let before = cpu(executors);
            sleep_until(until);
            while until < most && !enough() {
                until += WINDOW_MS;
                sleep_until(until);
            }
            ((from, until), before, cpu(executors))
        });
        done.store(true, Ordering::Relaxed);
        (range, before, after)
    });
    let mut seen = seen.into_inner().unwrap_or_default();
    seen.range = range;
    seen.elapsed = begun.0.elapsed().as_secs_f64();
    seen.cpu = procfs::cpu_seconds(pid).unwrap_or(0.0) - begun.1;
    let spent = before.iter().zip(&after).map(|(before, after)| Some(after.as_ref()? - before.as_ref()?));
    seen.executors = executors.iter().copied().zip(spent).collect();
    Ok(seen)
}

/// One question after the other.
fn ask(daemon: &Daemon, done: &AtomicBool, seen: &Mutex<Seen>) {
    let mut answered = Instant::now();
    for path in ASKED.iter().cycle() {
        let last = done.load(Ordering::Relaxed);
        let begun = Instant::now();
        let reply = daemon.get(path);
        let Ok(mut seen) = seen.lock() else { return };
        match &reply {
            Ok(reply) if reply.status == 200 => {
                seen.answers += 1;
                seen.slowest = seen.slowest.max(begun.elapsed());
                seen.silence = seen.silence.max(answered.elapsed());
                answered = Instant::now();
                if let Some(age) = window_age(&reply.body) {
                    seen.window_age = Some(seen.window_age.unwrap_or_default().max(age));
                }
            }
            other => {
                seen.failures += 1;
                seen.silence = seen.silence.max(answered.elapsed());
                let why = match other {
                    Ok(reply) => format!("{path}: {}", reply.status),
                    Err(why) => format!("{path}: {}", why.root_cause()),
                };
                seen.first_failure.get_or_insert(why);
            }
        }
        drop(seen);
        if last {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Memory and life.
fn look(pid: u32, done: &AtomicBool, seen: &Mutex<Seen>) {
    let begun = Instant::now();
    while !done.load(Ordering::Relaxed) {
        let (rss, maps) = (procfs::peak_rss_bytes(pid).ok(), procfs::bpf_bytes(pid).ok());
        if let Ok(mut seen) = seen.lock() {
            seen.rss = seen.rss.max(rss.unwrap_or(0));
            seen.maps = seen.maps.max(maps.unwrap_or(0));
            if seen.died.is_none() && !alive(pid) {
                seen.died = Some(begun.elapsed().as_secs_f64());
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether a process runs: one that has ended and that nobody has waited for does not.
pub fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// From the end of the last window of an answer until now.
fn window_age(body: &str) -> Option<Duration> {
    let answer: serde_json::Value = serde_json::from_str(body).ok()?;
    let until = unix_ms(answer["span"]["until"].as_str()?)?;
    Some(Duration::from_millis(now().saturating_sub(until)))
}

/// Unix milliseconds of `2026-11-22T10:00:00.000Z`.
fn unix_ms(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    // Years begin with March, so that a leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let seconds =
        (days.checked_sub(719_468)? * 24 + number(11..13)?) * 3600 + number(14..16)? * 60 + number(17..19)?;
    Some(seconds * 1000 + number(20..23).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read() {
        assert_eq!(unix_ms("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(unix_ms("2026-11-22T10:00:00.250Z"), Some(1_795_341_600_250));
        assert_eq!(unix_ms("2024-02-29T00:00:01Z"), Some(1_709_164_801_000));
        assert_eq!(unix_ms("nonsense"), None);
    }

    #[test]
    fn the_dead_are_not_alive() {
        assert!(alive(std::process::id()) && !alive(u32::MAX));
    }
}
