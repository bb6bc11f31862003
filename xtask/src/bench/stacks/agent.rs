//! Methods with at least one percent of the samples, against async-profiler on separate runs of the same job: its
//! agent turns DebugNonSafepoints on in the JVM, so both cannot look at one run.
//!
//! Compared are the shares of Java methods among samples whose leaf is one, over the executors' whole lives. Both
//! are sampled, so both have an error.

use super::spark::{TIMEOUT, job, kit};
use super::{Bench, seen};
use crate::bench::clock::{now, sleep_until_visible};
use crate::bench::row::Row;
use crate::launch::Daemon;
use crate::oracle::fold::fold;
use crate::setup::{SparkKit, async_profiler};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Runs of the job that both see.
const RUNS: u32 = 6;
/// Methods with so many percent count; points that their shares may be apart, and the error of both.
const LEAST: f64 = 1.0;
const POINTS: f64 = 2.0;
/// How long executors may take to end.
const END: Duration = Duration::from_secs(60);

type Shares = BTreeMap<String, usize>;

/// Measures.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let agent = match async_profiler::ensure() {
        Ok(agent) => agent,
        Err(why) => {
            skipped.push(format!("async: {why:#}"));
            return Ok(Vec::new());
        }
    };
    let mut rows = Vec::new();
    for major in bench.majors(&[17, 25]) {
        match kit(major) {
            Ok((version, kit)) => {
                let ours = ours(bench, &kit)?;
                let theirs = theirs(bench, &kit, &agent)?;
                rows.extend(compare(&format!("async: Spark {version}, Java {major}"), &ours, &theirs));
            }
            Err(why) => skipped.push(format!("async with Java {major}: {why:#}")),
        }
    }
    Ok(rows)
}

/// Methods as this daemon sees them.
fn ours(bench: &Bench, kit: &SparkKit) -> Result<Shares> {
    let work = bench.work.join(format!("async-ours-{}", kit.jdk.major));
    let words = ["--hz", "99", "--store-bytes", "512MiB"];
    let daemon = Daemon::start(&bench.binary, &work.join("daemon"), None, &words)?;
    let from = now();
    let app = run(bench, kit, &work, "")?;
    let until = sleep_until_visible(now());
    let seen = seen(&daemon, &format!("app={app}&role=executor"), (from, until))?;
    daemon.stop()?;
    let mut shares = Shares::new();
    for stack in &seen.stacks {
        if let Some(leaf) = stack.user().next_back().filter(|frame| frame.is_java()) {
            *shares.entry(leaf.name.clone()).or_default() += stack.count;
        }
    }
    Ok(shares)
}

/// Methods as async-profiler sees them.
fn theirs(bench: &Bench, kit: &SparkKit, agent: &Path) -> Result<Shares> {
    let work = bench.work.join(format!("async-theirs-{}", kit.jdk.major));
    let options = "start,event=ctimer,interval=10100us,jstackdepth=2048,collapsed,ann";
    let flag = format!("-agentpath:{}={options},file={}/%p.collapsed", agent.display(), work.display());
    run(bench, kit, &work, &flag)?;
    let mut shares = Shares::new();
    let begun = std::time::Instant::now();
    loop {
        let files = std::fs::read_dir(&work).context("reading async-profiler's output")?.flatten();
        let files: Vec<_> =
            files.map(|f| f.path()).filter(|f| f.extension().is_some_and(|end| end == "collapsed")).collect();
        if files.len() >= 2 || begun.elapsed() > END {
            for file in &files {
                let text =
                    std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
                text.lines().filter_map(leaf).for_each(|(name, n)| *shares.entry(name).or_default() += n);
            }
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    if shares.is_empty() {
        bail!("async-profiler left no samples in {}", work.display());
    }
    Ok(shares)
}

/// The job, to its end; its application.
fn run(bench: &Bench, kit: &SparkKit, work: &Path, executor: &str) -> Result<String> {
    let mut job = job(kit, work, "local-cluster[2,1,1024]", &bench.options.java_flags, executor, RUNS)?;
    let app = job.wait_fact("app", TIMEOUT)?;
    job.wait_fact(&format!("run.{RUNS}"), TIMEOUT * 2)?;
    // What ran last is named while it lives.
    std::thread::sleep(Duration::from_secs(12));
    std::fs::write(work.join("stop"), "").context("stopping the job")?;
    job.wait(TIMEOUT)?;
    Ok(app)
}

/// The leaf of a collapsed stack, if it is a Java method: `_[j]` compiled, `_[i]` inlined, `_[0]` interpreted,
/// `_[1]` compiled by C1.
fn leaf(line: &str) -> Option<(String, usize)> {
    let (stack, count) = line.rsplit_once(' ')?;
    let leaf = stack.rsplit(';').next()?;
    let name = ["_[j]", "_[i]", "_[0]", "_[1]"].iter().find_map(|suffix| leaf.strip_suffix(suffix))?;
    Some((fold(&plain(name)), count.parse().ok()?))
}

/// `java/util/A$$Lambda.0x000071e4.apply` as `java.util.A$$Lambda.apply`.
fn plain(name: &str) -> String {
    let dotted = name.replace('/', ".");
    let parts = dotted.split('.').filter(|part| {
        let digits = part.strip_prefix("0x").unwrap_or(part);
        let hidden = part.starts_with("0x") || part.len() > 4;
        !(hidden
            && !digits.is_empty()
            && digits.chars().all(|c| c.is_ascii_hexdigit())
            && digits.contains(|c: char| c.is_ascii_digit()))
    });
    parts.collect::<Vec<_>>().join(".")
}

fn compare(on: &str, ours: &Shares, theirs: &Shares) -> Vec<Row> {
    let (n, m) = (ours.values().sum::<usize>(), theirs.values().sum::<usize>());
    let share = |shares: &Shares, name: &str, all: usize| {
        shares.get(name).copied().unwrap_or(0) as f64 * 100.0 / all.max(1) as f64
    };
    let error = 70.0 / (n.max(1) as f64).sqrt() + 70.0 / (m.max(1) as f64).sqrt();
    let mut methods: Vec<(&String, f64, f64)> = ours
        .keys()
        .chain(theirs.keys())
        .map(|name| (name, share(ours, name, n), share(theirs, name, m)))
        .filter(|(_, a, b)| a.max(*b) >= LEAST)
        .collect();
    methods.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(b.0)));
    methods.dedup_by(|a, b| a.0 == b.0);
    for (name, a, b) in &methods {
        println!("   {name}: {a:.2} % here, {b:.2} % async-profiler, {:+.2}", a - b);
    }
    let shared = methods.iter().filter(|(_, a, b)| *a > 0.0 && *b > 0.0).count();
    let worst = methods.iter().map(|(_, a, b)| (a - b).abs()).fold(0.0, f64::max);
    vec![
        Row::share(format!("{on}, methods with {LEAST} % that both have"), shared, 100.0, methods.len()),
        Row::is(
            format!("{on}, points apart at most"),
            format!("{worst:.2} of {} methods; theirs rests on {m} samples", methods.len()),
            &format!("{POINTS} + {error:.2}"),
            !methods.is_empty() && worst <= POINTS + error,
            n,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_async_profiler_writes_them() {
        assert_eq!(leaf("a;java/lang/Thread.run_[j] 12"), Some(("java.lang.Thread.run".to_owned(), 12)));
        assert_eq!(leaf("a;[unknown] 12"), None);
        assert_eq!(plain("org/A$$Lambda.0x000071e4c0.apply"), "org.A$$Lambda.apply");
        assert_eq!(plain("a/feed.add"), "a.feed.add");
    }

    #[test]
    fn shares_of_both() {
        let of = |parts: &[(&str, usize)]| {
            parts.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Shares>()
        };
        let rows = compare("x", &of(&[("a", 9000), ("b", 1000)]), &of(&[("a", 9100), ("b", 900)]));
        assert!(!rows.iter().any(Row::fails));
        let rows = compare("x", &of(&[("a", 9000), ("b", 1000)]), &of(&[("a", 10000)]));
        assert!(rows.iter().all(Row::fails));
    }
}
