//! Methods with at least one percent of the samples, against async-profiler: on separate runs of the same job, since
//! its agent turns DebugNonSafepoints on in the JVM, and on the run that it looks at. The first comparison shows what
//! a JVM without any flag leaves open (which of the methods inlined around an instruction it belongs to), the second
//! what is left when both have the same debug info.
//!
//! Compared are the shares of Java methods among samples whose leaf is one, over the executors' whole lives: of the
//! leaf, and of the method whose code it is in (what C2 inlined counted to the method that it compiled), which needs
//! no debug info. Both are sampled, so both have an error.

use super::spark::{ROWS, TIMEOUT, job, kit};
use super::{Bench, seen};
use crate::bench::row::Row;
use crate::clock::{now, sleep_until_visible};
use crate::launch::Daemon;
use crate::oracle::fold::of_collapsed;
use crate::setup::{SparkKit, async_profiler};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Runs of the job that both see.
const RUNS: u32 = 4;
/// Methods with so many percent count; points that their shares may be apart, and the error of both.
const LEAST: f64 = 1.0;
const POINTS: f64 = 2.0;
/// How long executors may take to end.
const END: Duration = Duration::from_secs(60);

type Shares = BTreeMap<String, usize>;

/// Samples by leaf, and by the method whose code the leaf is in.
#[derive(Default)]
struct Methods {
    leaf: Shares,
    code: Shares,
}

impl Methods {
    fn add(&mut self, leaf: &str, code: Option<&str>, count: usize) {
        *self.leaf.entry(leaf.to_owned()).or_default() += count;
        *self.code.entry(code.unwrap_or(leaf).to_owned()).or_default() += count;
    }
}

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
                let ours = plain(bench, &kit)?;
                let (same, theirs) = together(bench, &kit, &agent)?;
                let on = format!("async: Spark {version}, Java {major}");
                println!("   no flag, separate runs:");
                rows.extend(compare(&format!("{on}, no flag"), &ours.leaf, &theirs.leaf));
                println!("   no flag, separate runs, by compiled method:");
                rows.extend(compare(&format!("{on}, no flag, compiled methods"), &ours.code, &theirs.code));
                println!("   the run with the agent:");
                rows.extend(compare(&format!("{on}, one run"), &same.leaf, &theirs.leaf));
                println!("   the run with the agent, by compiled method:");
                rows.extend(compare(&format!("{on}, one run, compiled methods"), &same.code, &theirs.code));
            }
            Err(why) => skipped.push(format!("async with Java {major}: {why:#}")),
        }
    }
    Ok(rows)
}

/// Methods as this daemon sees them in a run without any flag.
fn plain(bench: &Bench, kit: &SparkKit) -> Result<Methods> {
    let work = bench.work.join(format!("async-plain-{}", kit.jdk.major));
    watched(bench, kit, &work, "")
}

/// Methods as this daemon sees them.
fn watched(bench: &Bench, kit: &SparkKit, work: &Path, flag: &str) -> Result<Methods> {
    let words = ["--hz", "99", "--store-bytes", "512MiB"];
    let daemon = Daemon::start(&bench.binary, &work.join("daemon"), None, &words)?;
    let from = now();
    let app = run(bench, kit, work, flag)?;
    let until = sleep_until_visible(now());
    // A method that was compiled by itself first and inlined later is two frames.
    let seen = seen(&daemon, &format!("app={app}&role=executor&annotate=1"), (from, until))?;
    daemon.stop()?;
    let mut methods = Methods::default();
    for stack in &seen.stacks {
        if let Some(leaf) = stack.user().next_back().filter(|frame| frame.is_java()) {
            let code = stack.user().rfind(|frame| frame.is_java() && frame.kind != "java-inlined");
            methods.add(&leaf.name, code.map(|frame| frame.name.as_str()), stack.count);
        }
    }
    Ok(methods)
}

/// Methods as this daemon and async-profiler see them in one run.
fn together(bench: &Bench, kit: &SparkKit, agent: &Path) -> Result<(Methods, Methods)> {
    let work = bench.work.join(format!("async-together-{}", kit.jdk.major));
    let options = "start,event=ctimer,interval=10100us,jstackdepth=2048,collapsed,ann";
    let flag = format!("-agentpath:{}={options},file={}/%p.collapsed", agent.display(), work.display());
    let ours = watched(bench, kit, &work, &flag)?;
    let mut methods = Methods::default();
    let begun = std::time::Instant::now();
    loop {
        let files = std::fs::read_dir(&work).context("reading async-profiler's output")?.flatten();
        let files: Vec<_> =
            files.map(|f| f.path()).filter(|f| f.extension().is_some_and(|end| end == "collapsed")).collect();
        if files.len() >= 2 || begun.elapsed() > END {
            for file in &files {
                let text =
                    std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
                for (leaf, code, n) in text.lines().filter_map(methods_of) {
                    methods.add(&leaf, code.as_deref(), n);
                }
            }
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    if methods.leaf.is_empty() {
        bail!("async-profiler left no samples in {}", work.display());
    }
    Ok((ours, methods))
}

/// The job, to its end; its application.
fn run(bench: &Bench, kit: &SparkKit, work: &Path, executor: &str) -> Result<String> {
    let mut job =
        job(kit, work, "local-cluster[2,1,1024]", &bench.options.java_flags, executor, (ROWS, RUNS))?;
    let app = job.wait_fact("app", TIMEOUT)?;
    job.wait_fact(&format!("run.{RUNS}"), TIMEOUT * 2)?;
    // What ran last is named while it lives.
    std::thread::sleep(Duration::from_secs(12));
    std::fs::write(work.join("stop"), "").context("stopping the job")?;
    job.wait(TIMEOUT)?;
    Ok(app)
}

/// The leaf of a collapsed stack, if it is a Java method, and the method whose code it is in: `_[j]` compiled, `_[i]`
/// inlined, `_[0]` interpreted, `_[1]` compiled by C1.
fn methods_of(line: &str) -> Option<(String, Option<String>, usize)> {
    let (stack, count) = line.rsplit_once(' ')?;
    let of = |frame: &str, suffixes: &[&str]| {
        let name = suffixes.iter().find_map(|suffix| frame.strip_suffix(suffix))?;
        Some(of_collapsed(name))
    };
    let leaf = of(stack.rsplit(';').next()?, &["_[j]", "_[i]", "_[0]", "_[1]"])?;
    let code = stack.rsplit(';').find_map(|frame| of(frame, &["_[j]", "_[0]", "_[1]"]));
    Some((leaf, code, count.parse().ok()?))
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
        let run = "java.lang.Thread.run".to_owned();
        assert_eq!(
            methods_of("a;java/lang/Thread.run_[j];b/C.d_[i] 12"),
            Some(("b.C.d".to_owned(), Some(run.clone()), 12))
        );
        assert_eq!(methods_of("a;java/lang/Thread.run_[0] 1"), Some((run.clone(), Some(run), 1)));
        assert_eq!(methods_of("a;[unknown] 12"), None);
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
