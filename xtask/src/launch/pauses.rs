//! A program whose JVM stops its threads often (tests/jobs/Pauses.java), what the JVM's own log has of that, and how a
//! daemon's answer compares.

use super::JavaProgram;
use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const SOURCE: &str = include_str!("../../../tests/jobs/Pauses.java");
/// The log in the program's directory.
const LOG: &str = "pauses.log";
/// A pause of the log and one of the answer may be the same where they end within this: the VM thread may wait for a CPU
/// before it takes the log's time.
const SAME_NS: i64 = 500_000_000;

/// The program, which works for some seconds with some MB kept. It says `ready`, and waits in its directory for the file
/// `go`; `done`, and waits for `stop`.
pub fn program(java_home: &Path, seconds: u32, mb: u32) -> JavaProgram {
    // `tn` is CLOCK_MONOTONIC (os::javaTimeNanos).
    let log = format!("-Xlog:safepoint:file={LOG}:tn,tags");
    let program =
        JavaProgram::new("SparkSubmit", SOURCE, java_home).package("org.apache.spark.deploy").release(11);
    program.flag(log).arg(seconds.to_string()).arg(mb.to_string())
}

/// A pause: begin and end, nanoseconds of CLOCK_MONOTONIC, and the operation's name.
#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    began: i64,
    ended: i64,
    cause: Option<String>,
}

/// How an answer compares with the log.
#[derive(Debug, Default)]
pub struct Compared {
    /// Pauses that are long enough and that the log has, after the first one of the answer.
    pub logged: usize,
    /// Those that the answer lacks.
    pub missing: Vec<Pause>,
    /// Those whose cause is another, each with the one that the answer has.
    pub otherwise: Vec<(Pause, Pause)>,
    /// By how much the begin differs, microseconds.
    pub begin: Vec<f64>,
    /// By how much the end differs, microseconds.
    pub end: Vec<f64>,
}

/// Compares the answer of `/api/v1/pauses` of the program with the pauses of `least` and more that its log in `dir` has up to a
/// time, in milliseconds since 1970.
///
/// # Errors
/// The log cannot be read, or the answer has no pauses.
pub fn compare(dir: &Path, answer: &Value, until: u64, least: Duration) -> Result<Compared> {
    let least_ns = least.as_nanos() as i64;
    let until = until as i64 * 1_000_000 - wall_after_monotonic();
    let log = std::fs::read_to_string(dir.join(LOG)).context("reading the JVM's log")?;
    let (mut found, mut out) = (of_answer(answer)?, Compared::default());
    let first = found.iter().map(|pause| pause.began).min().context("no pause was seen")?;
    for pause in of_log(&log) {
        if !(first - least_ns..until).contains(&pause.began) || pause.ended - pause.began < least_ns {
            continue;
        }
        out.logged += 1;
        // Each is one of the log's: of those with its cause the nearest, else of any.
        let (far, another) =
            (|found: &Pause| (found.ended - pause.ended).abs(), |found: &Pause| found.cause != pause.cause);
        let near = (0..found.len()).filter(|at| far(&found[*at]) < SAME_NS);
        match near.min_by_key(|at| (another(&found[*at]), far(&found[*at]))) {
            None => out.missing.push(pause),
            Some(at) => {
                let found = found.swap_remove(at);
                out.begin.push((found.began - pause.began) as f64 / 1e3);
                out.end.push((found.ended - pause.ended) as f64 / 1e3);
                if found.cause != pause.cause {
                    out.otherwise.push((pause, found));
                }
            }
        }
    }
    Ok(out)
}

/// The median of what is known by its size, and the worst.
pub fn median_and_worst(all: &[f64]) -> (f64, f64) {
    let mut sizes: Vec<f64> = all.iter().map(|one| one.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let at = |place: usize| sizes.get(place).copied().unwrap_or_default();
    (at(sizes.len() / 2), at(sizes.len().saturating_sub(1)))
}

fn of_answer(answer: &Value) -> Result<Vec<Pause>> {
    let offset = wall_after_monotonic();
    let pauses = answer["pauses"].as_array().context("no pauses in the answer")?;
    let one = |pause: &Value| {
        let began = pause["began_ns"].as_i64()? - offset;
        let length = (pause["seconds"].as_f64()? * 1e9).round() as i64;
        Some(Pause { began, ended: began + length, cause: pause["cause"].as_str().map(str::to_owned) })
    };
    pauses.iter().map(|pause| one(pause).context("a pause lacks a field")).collect()
}

/// Nanoseconds by which CLOCK_REALTIME is ahead: the least of some looks, of which one may have been interrupted.
fn wall_after_monotonic() -> i64 {
    let look = || {
        let [monotonic, wall] = [ClockId::Monotonic, ClockId::Realtime].map(|clock| {
            let time = clock_gettime(clock);
            time.tv_sec * 1_000_000_000 + time.tv_nsec
        });
        wall - monotonic
    };
    (0..1000).map(|_| look()).min().unwrap_or_default()
}

/// Pauses of a log: a line each from JDK 14 on, before three.
fn of_log(log: &str) -> Vec<Pause> {
    let (mut pauses, mut region) = (Vec::new(), None);
    let stamp = |line: &str| line.strip_prefix('[')?.split_once("ns]")?.0.parse::<i64>().ok();
    for line in log.lines() {
        let Some(ended) = stamp(line) else { continue };
        if let Some((_, name)) = line.split_once("Entering safepoint region: ") {
            region = Some(name.trim().to_owned()).filter(|name| name != "no vm operation");
        } else if let Some((_, rest)) = line.split_once("application threads were stopped: ") {
            let seconds = rest.split(' ').next().and_then(|text| text.parse::<f64>().ok());
            if let Some(seconds) = seconds {
                pauses.push(Pause { began: ended - (seconds * 1e9) as i64, ended, cause: region.take() });
            }
        } else if let Some((_, rest)) = line.split_once("Safepoint \"") {
            let total = rest.rsplit_once("Total:").and_then(|(_, rest)| rest.trim().split(' ').next());
            if let (Some((name, _)), Some(Ok(total))) = (rest.split_once('"'), total.map(str::parse::<i64>)) {
                pauses.push(Pause { began: ended - total, ended, cause: Some(name.to_owned()) });
            }
        }
    }
    pauses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_log_are_read() {
        let log = "[5000ns][safepoint] Safepoint \"G1CollectForAllocation\", Time since last: 7 ns, Reaching safepoint: 1 ns, \
                   At safepoint: 2 ns, Total: 3000 ns, Threads: 2 runnable, 13 total\n\
                   [6000ns][safepoint] Entering safepoint region: RevokeBias\n[6500ns][safepoint] Leaving safepoint region\n\
                   [7000ns][safepoint] Total time for which application threads were stopped: 0.0000010 seconds, Stopping \
                   threads took: 0.0000001 seconds\nnothing\n";
        let pause = |began, ended, cause: &str| Pause { began, ended, cause: Some(cause.to_owned()) };
        assert_eq!(
            of_log(log),
            [pause(2000, 5000, "G1CollectForAllocation"), pause(6000, 7000, "RevokeBias")]
        );
        assert_eq!(median_and_worst(&[-3.0, 1.0, 2.0]), (2.0, 3.0));
    }
}
