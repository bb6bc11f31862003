//! Whether stated errors are true: a hundred runs of one program (tests/jobs/ErrorJobs.java: tasks of a Spark job), of each of
//! which the answer for one of two methods, or classes, is held against what the run itself did there.
//!
//! An answer's relative standard error is 1/sqrt(n), n being the samples of that method in that task. So of 100 runs some 95 are
//! inside two of them. Fewer than 90: the error is larger than is stated. More than 99: it is smaller, which is no lie, and told.

use super::super::row::Row;
use super::Bench;
use super::measured::{seen, told};
use crate::clock::{now, sleep_until_visible};
use crate::launch::asked::{Labelled, samples};
use crate::launch::{Daemon, Job, SparkJob};
use anyhow::{Context as _, Result, ensure};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(600);
const JOB: [&str; 1] = ["ErrorJobs"];
/// Two at a time.
const MASTER: &str = "local-cluster[1,2,1024]";
/// Runs, milliseconds of one that computes or waits, MB of one that allocates: each rests on some hundred samples or fewer.
const RUNS: [u32; 3] = [100, 1000, 64];
/// Methods stay frames of their own, and those that wait are interpreted: a stack is as deep in either.
const FLAGS: &str = concat!(
    "-XX:CompileCommand=quiet -XX:CompileCommand=dontinline,ErrorJobs::* ",
    "-XX:CompileCommand=exclude,ErrorJobs::waits*"
);
const EVENTS: [&str; 2] = ["--events", "cpu,off-cpu,alloc"];
/// Of 100 runs, inside two stated errors.
const INSIDE: (f64, f64) = (90.0, 99.0);

/// What the runs did of a kind of samples, its unit, and the frames for much of it and for less.
struct Part {
    kind: &'static str,
    unit: &'static str,
    frames: [&'static str; 2],
}

const PARTS: [Part; 3] = [
    Part { kind: "cpu", unit: "ns", frames: ["ErrorJobs.computesMore", "ErrorJobs.computesLess"] },
    Part { kind: "off-cpu", unit: "ns", frames: ["ErrorJobs.waitsMore", "ErrorJobs.waitsLess"] },
    Part { kind: "alloc", unit: "bytes", frames: ["ErrorJobs$More[]", "ErrorJobs$Less[]"] },
];

pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let kit = bench.options.kit.kit()?;
    let daemon = Daemon::start(&bench.binary, &bench.work.join("errors-daemon"), None, &EVENTS)?;
    let work = bench.work.join("errors");
    let job = SparkJob::java(&JOB, &kit.venv, &kit.jdk.home, &work).master(MASTER).java_options(FLAGS);
    let mut job = RUNS.into_iter().fold(job, |job, number| job.arg(number.to_string())).start()?;
    let app = job.wait_fact("app", TIMEOUT)?;
    known(&daemon, &mut job)?;
    let from = now();
    std::fs::write(work.join("go"), "").context("starting the runs")?;
    job.wait_fact("done", TIMEOUT)?;
    let until = sleep_until_visible(now());
    let query = format!("app={app}&from={from}&until={until}");
    let mut rows = Vec::new();
    for part in PARTS {
        rows.extend(of_part(&daemon, &job, &query, &part)?);
    }
    std::fs::write(work.join("stop"), "").context("stopping the job")?;
    job.wait(TIMEOUT)?;
    ensure!(daemon.stop()?.success(), "the daemon failed");
    Ok(rows)
}

/// Waits until the daemon samples what the executor allocates, and walks its stacks.
fn known(daemon: &Daemon, job: &mut Job) -> Result<()> {
    let pid: u32 = job.wait_fact("executor", TIMEOUT)?.parse().context("the executor's pid")?;
    let begun = Instant::now();
    loop {
        let jvm = daemon.jvm(pid)?;
        if jvm["allocations"] == "probe" && jvm["stacks"] == "code_tables" {
            return Ok(());
        }
        ensure!(begun.elapsed() < TIMEOUT, "the daemon does not know the executor: {jvm}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn of_part(daemon: &Daemon, job: &Job, query: &str, part: &Part) -> Result<Vec<Row>> {
    let Part { kind, unit, frames } = part;
    let stage = job.fact(&format!("{kind}.stage")).context("no stage")?;
    let ask = |unit: &str| samples(daemon, &format!("{query}&stage={stage}&type={kind}&unit={unit}"));
    let (weights, counts) = (ask(unit)?, ask("samples")?);
    let mut rows = Vec::new();
    for (frame, name) in frames.iter().zip(["more", "less"]) {
        let truth = told(job, &format!("{kind}.{name}"))?;
        let of_frame = |found: &[Labelled]| seen(found, |sample| sample.is_in(frame));
        let (weights, counts) = (of_frame(&weights), of_frame(&counts));
        let run = |(task, truth): (&u64, &f64)| {
            let of = |sum: Option<&f64>| sum.copied().unwrap_or(0.0);
            Run { seen: of(weights.get(task)), samples: of(counts.get(task)), truth: *truth }
        };
        let runs: Vec<Run> = truth.iter().map(run).collect();
        rows.push(judged(format!("errors: {frame}, runs inside two stated errors"), &runs));
    }
    Ok(rows)
}

/// What was seen of a run, on how many samples, and the truth.
struct Run {
    seen: f64,
    samples: f64,
    truth: f64,
}

impl Run {
    /// How far off it is, as a part of the truth.
    fn off(&self) -> f64 {
        self.seen / self.truth - 1.0
    }

    /// The relative standard error that is stated.
    fn stated(&self) -> f64 {
        1.0 / self.samples.sqrt()
    }

    /// Without samples no error is stated, and nothing is inside.
    fn inside(&self) -> bool {
        self.samples > 0.0 && (self.seen - self.truth).abs() <= 2.0 * self.seen * self.stated()
    }
}

/// How many runs are inside two stated errors. Beside it the root mean square of how far they are off, the mean of the stated
/// errors, and how the two compare; and the mean of how far they are off, which no number of samples takes away.
fn judged(what: String, runs: &[Run]) -> Row {
    let inside = runs.iter().filter(|run| run.inside()).count();
    let sampled: Vec<&Run> = runs.iter().filter(|run| run.samples > 0.0).collect();
    let mean = |of: fn(&Run) -> f64| {
        100.0 * sampled.iter().map(|run| of(run)).sum::<f64>() / sampled.len().max(1) as f64
    };
    let (off, stated, bias) =
        (10.0 * mean(|run| run.off().powi(2)).sqrt(), mean(Run::stated), mean(Run::off));
    let figure = format!(
        "{inside}; off {off:.1} % ({bias:+.1} mean), stated {stated:.1} %: {:.2}",
        off / stated.max(f64::MIN_POSITIVE)
    );
    let (least, most) = INSIDE;
    let share = 100.0 * inside as f64 / runs.len().max(1) as f64;
    if share > most {
        return Row::told(what, format!("{figure}, too large"), runs.len());
    }
    Row::is(what, figure, &format!("{least} to {most} %"), share >= least, runs.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 runs on 100 samples each, so with an error of 10 %, of which some are 30 % off and the others by `near`.
    fn runs(far: usize, near: f64) -> Vec<Run> {
        let run = |at| Run { seen: if at < far { 1.3 } else { 1.0 + near }, samples: 100.0, truth: 1.0 };
        (0..100).map(run).collect()
    }

    #[test]
    fn too_many_outside_are_a_lie_and_too_few_are_not() {
        assert!(runs(1, 0.1)[0].off() > 0.29 && !runs(1, 0.1)[0].inside() && runs(1, 0.1)[1].inside());
        let fails = |far| judged("x".to_owned(), &runs(far, 0.05)).fails();
        assert!(fails(11) && !fails(10) && !fails(1) && !fails(0));
        let none = || Run { seen: 0.0, samples: 0.0, truth: 1.0 };
        assert!(judged("x".to_owned(), &[none()]).fails() && judged("x".to_owned(), &[]).fails());
    }
}
