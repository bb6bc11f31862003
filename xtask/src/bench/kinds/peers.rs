//! Where tasks' wall time goes, and what a job allocates, as this daemon and async-profiler see them on the same run.
//!
//! async-profiler is an agent of the executor's JVM from its start on. Time: tests/jobs/WaitJobs.java, stacks of tasks alone, by
//! the methods that are on them. Allocations: queries of tests/jobs/queries.py, by the class at the leaf. Both sample, so both
//! have an error.

use super::super::row::Row;
use super::{Bench, WITH_ALLOCATIONS, WITH_WAITS};
use crate::clock::{now, sleep_until_visible};
use crate::launch::spark::WAIT_JOBS;
use crate::launch::{Daemon, SparkJob};
use crate::oracle::fold::{fold, of_collapsed};
use crate::setup::{SparkKit, async_profiler, packages};
use anyhow::{Context as _, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(600);
/// How long an executor may take to end, and the agent to write.
const END: Duration = Duration::from_secs(60);
/// Methods, or classes, that are compared, and how many both must have among their first.
const FIRST: usize = 20;
const SHARED: f64 = 90.0;
/// Points that a share may be off, beside the errors.
const POINTS: f64 = 2.0;
/// What is on more stacks than that is the way to all of them, in percent.
const TRUNK: f64 = 90.0;
/// In each stack of a task.
const TASK: &str = "org.apache.spark.executor.Executor$TaskRunner.run";
/// One of so many bytes is sampled by either.
const EVERY: f64 = 524_288.0;
/// Queries that allocate objects of many classes.
const QUERIES: [&str; 6] = ["star_join", "rank", "distinct", "statistics", "words", "hash_join_and_sets"];

/// Weight by name.
type Sums = BTreeMap<String, f64>;

/// The JVM's flag that has async-profiler sample an event, and write collapsed stacks into a file as the JVM ends.
///
/// # Errors
/// The agent cannot be had.
pub fn agent(event: &str, file: &Path) -> Result<String> {
    let library = async_profiler::ensure()?;
    let options = format!("start,event={event},jstackdepth=2048,collapsed,total,file={}", file.display());
    Ok(format!("-agentpath:{}={options}", library.display()))
}

pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    if let Err(why) = async_profiler::ensure() {
        return Ok(vec![Row::told("async-profiler", format!("skipped: {why:#}"), 0)]);
    }
    let kit = bench.options.kit.kit()?;
    let mut rows = wall(bench, &kit)?;
    rows.extend(allocated(bench, &kit)?);
    Ok(rows)
}

fn wall(bench: &Bench, kit: &SparkKit) -> Result<Vec<Row>> {
    let work = bench.work.join("peers-wall");
    let job = SparkJob::java(&WAIT_JOBS, &kit.venv, &kit.jdk.home, &work);
    let job = job.arg(bench.options.times.to_string()).arg(bench.options.millis.to_string());
    let query = "type=wall&thread_class=task&role=executor&unit=ns&format=folded";
    let (ours, theirs) = both(bench, job, &work, ("wall,interval=5ms", &WITH_WAITS), query)?;
    // The class of the lock that a thread waited for is the leaf of its stack here.
    let is_class =
        |name: &str| name.rsplit('.').next().is_some_and(|last| last.starts_with(char::is_uppercase));
    let of_ours = |name: &str| Some(fold(name)).filter(|_| is_java(name) && !is_class(name));
    // Native frames have no slash and no dot.
    let of_theirs = |name: &str| Some(of_collapsed(name)).filter(|_| name.contains('.'));
    let ours = Stacks::of(&ours, TASK, of_ours)?.by_method();
    let theirs = Stacks::of(&theirs, TASK, of_theirs)?;
    // `total` is in nanoseconds: 5 ms a sample.
    let n = theirs.all / 5e6;
    Ok(compare("wall time of tasks, methods", &ours, &theirs.by_method(), (n, 70.0 / n.max(1.0).sqrt())))
}

fn allocated(bench: &Bench, kit: &SparkKit) -> Result<Vec<Row>> {
    let work = bench.work.join("peers-alloc");
    let job = SparkJob::new("queries.py", &kit.venv, &kit.jdk.home, &work);
    let job = job.arg("--rows").arg("500000").arg("--times").arg("2");
    let job = QUERIES.into_iter().fold(job, |job, name| job.arg("--only").arg(name));
    let job = job.packages(packages::pandas(&kit.venv)?);
    let query = "type=alloc&role=executor&unit=bytes&format=folded";
    let (ours, theirs) = both(bench, job, &work, ("alloc,alloc=512k", &WITH_ALLOCATIONS), query)?;
    let ours = Stacks::of(&ours, "", |name| Some(name.to_owned()))?;
    // `java.lang.String_[i]`: bytes in a buffer, `_[k]`: outside.
    let class = |name: &str| {
        let name = ["_[i]", "_[k]"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        Some(of_collapsed(name))
    };
    let theirs = Stacks::of(&theirs, "", class)?;
    let (n, m) = (ours.all / EVERY, theirs.all / EVERY);
    let error = 70.0 / n.max(1.0).sqrt() + 70.0 / m.max(1.0).sqrt();
    let mut rows = compare("allocated, classes", &ours.by_leaf(), &theirs.by_leaf(), (n.min(m), error));
    let mib = |bytes: f64| bytes / 1_048_576.0;
    let figure = format!("{:.0} and {:.0} MiB", mib(ours.all), mib(theirs.all));
    rows.push(Row::told("allocated in all, ours and async-profiler's", figure, n as usize));
    Ok(rows)
}

/// Runs a job beside both; folded stacks of each. `event` is async-profiler's, `words` are the daemon's.
fn both(
    bench: &Bench,
    job: SparkJob,
    work: &Path,
    (event, words): (&str, &[&str]),
    query: &str,
) -> Result<(String, String)> {
    let daemon = Daemon::start(&bench.binary, &work.join("daemon"), None, words)?;
    let file = work.join("agent.collapsed");
    let from = now();
    let flag = agent(event, &file)?;
    let job = job.master("local-cluster[1,2,1536]").conf("spark.executor.extraJavaOptions", flag);
    let mut job = job.start()?;
    let app = job.wait_fact("app", TIMEOUT)?;
    job.wait_fact("done", TIMEOUT)?;
    let until = sleep_until_visible(now());
    let path = format!("/api/v1/flamegraph?app={app}&from={from}&until={until}&{query}");
    let ours = daemon.get(&path)?;
    ensure!(ours.status == 200, "{path}: {}", ours.body);
    std::fs::write(work.join("stop"), "").context("stopping the job")?;
    job.wait(TIMEOUT)?;
    ensure!(daemon.stop()?.success(), "the daemon failed");
    let begun = Instant::now();
    let theirs = loop {
        match std::fs::read_to_string(&file) {
            Ok(text) if !text.is_empty() => break text,
            _ => ensure!(begun.elapsed() < END, "async-profiler left no samples in {}", file.display()),
        }
        std::thread::sleep(Duration::from_millis(500));
    };
    Ok((ours.body, theirs))
}

/// `java.lang.Thread.run`, and no function of C.
fn is_java(name: &str) -> bool {
    name.contains('.') && !name.contains(['[', '(', ' ']) && !name.contains("::")
}

/// Some stacks, root first, of frames that have a name here.
struct Stacks {
    stacks: Vec<(Vec<String>, f64)>,
    all: f64,
}

impl Stacks {
    /// Of folded lines, those that have a frame (`""`: all of them). `name`: what a frame is called; None: it is left out.
    fn of(folded: &str, with: &str, name: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let mut stacks = Vec::new();
        for line in folded.lines() {
            let (stack, weight) = line.rsplit_once(' ').context("a weight")?;
            let frames: Vec<String> = stack.split(';').filter_map(&name).collect();
            if with.is_empty() || frames.iter().any(|frame| frame == with) {
                stacks.push((frames, weight.parse().with_context(|| format!("a weight in {line:?}"))?));
            }
        }
        let all = stacks.iter().map(|(_, weight)| weight).sum();
        Ok(Self { stacks, all })
    }

    /// Percent of the whole by each name that is on a stack, but for the way to all.
    fn by_method(&self) -> Sums {
        let mut sums = self.shares(|frames| frames.iter().collect());
        sums.retain(|_, share| *share < TRUNK);
        sums
    }

    /// Percent of the whole by the last name.
    fn by_leaf(&self) -> Sums {
        self.shares(|frames| frames.last().into_iter().collect())
    }

    fn shares(&self, names: impl Fn(&[String]) -> BTreeSet<&String>) -> Sums {
        let mut sums = Sums::new();
        for (frames, weight) in &self.stacks {
            for name in names(frames) {
                *sums.entry(name.clone()).or_default() += 100.0 * weight / self.all;
            }
        }
        sums
    }
}

/// The names with the largest shares.
fn first(sums: &Sums) -> Vec<(&String, f64)> {
    let mut all: Vec<(&String, f64)> = sums.iter().map(|(name, share)| (name, *share)).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(FIRST);
    all
}

/// How many of our first names are among theirs, and how far a share of these is off at most. Names whose share is as
/// large as that of their twentieth, but for the error, are among these.
fn compare(what: &str, ours: &Sums, theirs: &Sums, (n, error): (f64, f64)) -> Vec<Row> {
    let first_ours = first(ours);
    let least = first(theirs).last().map_or(0.0, |(_, share)| *share);
    let (mut shared, mut worst) = (0, 0.0_f64);
    for (name, share) in &first_ours {
        let other = theirs.get(*name).copied().unwrap_or(0.0);
        println!("   {name}: {share:.2} % here, {other:.2} % async-profiler, {:+.2}", share - other);
        shared += usize::from(other > 0.0 && other >= least - error);
        worst = worst.max((share - other).abs());
    }
    let count = first_ours.len();
    let figure = format!("{worst:.2} of {count}");
    let bar = format!("{POINTS} + {error:.2}");
    let holds = count > 0 && worst <= POINTS + error;
    vec![
        Row::share(format!("{what}: of the first {count} that both have"), shared, SHARED, count),
        Row::is(format!("{what}: points apart at most"), figure, &bar, holds, n as usize),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_counts_once_a_stack_and_the_way_to_all_is_none() {
        let folded = "a.run;a.b;a.b;native 30\na.run;a.c 10\nb.other 60\n";
        let stacks = Stacks::of(folded, "a.run", |name| Some(name.to_owned()).filter(|_| is_java(name)));
        let stacks = stacks.unwrap();
        let sums = |pairs: &[(&str, f64)]| -> Sums {
            pairs.iter().map(|(name, share)| ((*name).to_owned(), *share)).collect()
        };
        assert_eq!(stacks.by_method(), sums(&[("a.b", 75.0), ("a.c", 25.0)]));
        assert_eq!(stacks.by_leaf(), sums(&[("a.b", 75.0), ("a.c", 25.0)]));
        let rows = compare("x", &stacks.by_method(), &sums(&[("a.b", 74.0), ("a.c", 26.0)]), (40.0, 0.5));
        assert!(!rows.iter().any(Row::fails));
        let rows = compare("x", &stacks.by_method(), &sums(&[("a.b", 60.0), ("a.d", 40.0)]), (40.0, 0.5));
        assert!(rows.iter().all(Row::fails));
    }
}
