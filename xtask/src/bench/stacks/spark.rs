//! A real Spark job without any flag (tests/jobs/fixed_work.py): whether stacks of its executors reach their
//! thread's first function, whether their Java frames have names, and what the kernel pays for a sample.

use super::{Bench, SHOWN, ends, percent, print_worst, seen};
use crate::bench::bpf_stats::{self, BpfStats};
use crate::bench::row::Row;
use crate::clock::over_windows;
use crate::launch::{Daemon, Job, SparkJob};
use crate::oracle::Stack;
use crate::setup::{self, SparkKit, python};
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Longest wait for a fact of the job.
pub const TIMEOUT: Duration = Duration::from_secs(300);
/// Of samples with a Java leaf whose stack is whole, and of all samples that have one, in percent.
const ROOTED: f64 = 99.0;
const JAVA_LEAF: f64 = 30.0;
/// Of Java frames with a name, in percent.
const NAMED: f64 = 99.5;
/// Nanoseconds of a sample in the kernel, at so many frames.
const KERNEL_NS: f64 = 3_000.0;
const KERNEL_FRAMES: f64 = 60.0;
/// Rows that the job reads in a run.
pub const ROWS: &str = "20000000";

/// Spark and a JDK for it: the newest Spark where the older one does not run.
pub fn kit(major: u32) -> Result<(&'static str, SparkKit)> {
    let version = if major > 21 { python::NEWEST_PYSPARK } else { python::PYSPARK };
    Ok((version, setup::spark_version(version, Some(major))?))
}

/// A job of the fixed work on executors without flags, its JVMs' flags as given; runs are asked for ahead.
pub fn job(
    kit: &SparkKit,
    work: &Path,
    master: &str,
    flags: &[String],
    executor: &str,
    amount: (&str, u32),
) -> Result<Job> {
    let plain: Vec<&str> = flags.iter().map(String::as_str).filter(|flag| !flag.is_empty()).collect();
    let all = format!("{} {executor}", plain.join(" "));
    let conf = [("spark.executor.extraJavaOptions", all.trim())];
    job_with(kit, work, master, flags, if executor.is_empty() { &[] } else { &conf }, amount)
}

/// The same with more of Spark's configuration.
pub fn job_with(
    kit: &SparkKit,
    work: &Path,
    master: &str,
    flags: &[String],
    conf: &[(&str, &str)],
    (rows, runs): (&str, u32),
) -> Result<Job> {
    let flags: Vec<&str> = flags.iter().map(String::as_str).filter(|flag| !flag.is_empty()).collect();
    let flags = flags.join(" ");
    let mut job = SparkJob::new("fixed_work.py", &kit.venv, &kit.jdk.home, work)
        .master(master)
        .java_options(flags)
        // The work overflows on purpose, which newer Sparks refuse otherwise.
        .conf("spark.sql.ansi.enabled", "false")
        .arg(rows);
    for (key, value) in conf {
        job = job.conf(*key, *value);
    }
    std::fs::create_dir_all(work).with_context(|| format!("creating {}", work.display()))?;
    for run in 1..=runs {
        std::fs::write(work.join(format!("go.{run}")), "").context("asking for a run")?;
    }
    job.start()
}

/// The sum of all series of a metric.
pub fn metric(daemon: &Daemon, name: &str) -> Result<f64> {
    let text = daemon.get("/metrics")?.body;
    let series =
        text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
    Ok(series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum())
}

/// What the kernel side has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel {
    /// Nanoseconds in the sampling programs, tail calls counted in.
    pub sampling_ns: f64,
    /// Nanoseconds in all programs.
    pub all_ns: f64,
    /// Samples and their frames.
    pub samples: f64,
    /// See `samples`.
    pub frames: f64,
}

impl Kernel {
    /// As the daemon's metrics have it; `bpf_stats` must be on.
    pub fn read(daemon: &Daemon) -> Result<Self> {
        let programs = bpf_stats::programs(daemon)?;
        let sampling = programs.iter().filter(|(name, _)| name.contains("sample"));
        Ok(Self {
            sampling_ns: sampling.map(|(_, (_, ns))| ns).sum(),
            all_ns: programs.values().map(|(_, ns)| ns).sum(),
            samples: metric(daemon, "emberscope_samples_total")?,
            frames: metric(daemon, "emberscope_frames_walked_total")?,
        })
    }

    /// What was added since.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            sampling_ns: self.sampling_ns - before.sampling_ns,
            all_ns: self.all_ns - before.all_ns,
            samples: self.samples - before.samples,
            frames: self.frames - before.frames,
        }
    }
}

/// Measures.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for major in bench.majors(&[17, 25]) {
        match kit(major) {
            Ok((version, kit)) => {
                rows.extend(of_kit(bench, &format!("Spark {version}, Java {major}"), &kit)?)
            }
            Err(why) => skipped.push(format!("rooted, named, cost with Java {major}: {why:#}")),
        }
    }
    Ok(rows)
}

fn of_kit(bench: &Bench, on: &str, kit: &SparkKit) -> Result<Vec<Row>> {
    let work = bench.work.join(format!("spark-{}", kit.jdk.major));
    let _stats = BpfStats::enable()?;
    let words = ["--hz", "99", "--store-bytes", "512MiB"];
    let daemon = Daemon::start(&bench.binary, &work.join("daemon"), None, &words)?;
    let mut job = job(kit, &work, "local-cluster[2,1,1024]", &bench.options.java_flags, "", (ROWS, 1000))?;
    let app = job.wait_fact("app", TIMEOUT)?;
    let (from, until, before, after) = over_windows(bench.options.windows, || Kernel::read(&daemon))?;
    let seen = seen(&daemon, &format!("app={app}&role=executor"), (from, until))?;
    daemon.stop()?;
    let mut rows = Vec::new();
    println!("   {on}: all stacks of executors end by: {}", ends(&seen.quality));
    rows.extend(rooted(on, &seen.stacks));
    rows.push(named(on, &seen.stacks));
    let kernel = after.since(&before);
    let (ns, frames) =
        (kernel.sampling_ns / kernel.samples.max(1.0), kernel.frames / kernel.samples.max(1.0));
    let bar = KERNEL_NS * (frames / KERNEL_FRAMES).max(1.0);
    let figure = format!("{ns:.0} ns, {frames:.1} frames walked a sample");
    let what = format!("cost: {on}, kernel ns a sample");
    let holds = kernel.samples > 0.0 && ns > 0.0 && ns <= bar;
    rows.push(Row::is(what, figure, &format!("<= {bar:.0}"), holds, kernel.samples as usize));
    Ok(rows)
}

fn rooted(on: &str, stacks: &[Stack]) -> Vec<Row> {
    let sum = |chosen: &dyn Fn(&Stack) -> bool| -> usize {
        stacks.iter().filter(|stack| chosen(stack)).map(|stack| stack.count).sum()
    };
    let all = sum(&|_| true);
    let java = sum(&|stack| stack.has_java_leaf());
    let whole = sum(&|stack| stack.has_java_leaf() && stack.is_rooted());
    let others = sum(&|stack| !stack.has_java_leaf() && stack.is_rooted());
    let mut cut: BTreeMap<String, usize> = BTreeMap::new();
    for stack in stacks.iter().filter(|stack| stack.has_java_leaf() && !stack.is_rooted()) {
        let name = |frame: Option<&crate::oracle::Frame>| {
            frame.map_or_else(String::new, |frame| format!("{} ({})", frame.name, frame.kind))
        };
        let (first, leaf) = (name(stack.user().next()), name(stack.user().next_back()));
        *cut.entry(format!("outermost {first}, leaf {leaf}")).or_default() += stack.count;
    }
    let mut worst: Vec<(&str, usize)> = cut.iter().map(|(how, n)| (how.as_str(), *n)).collect();
    worst.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    worst.truncate(SHOWN);
    print_worst("cut", &worst, java);
    let mut classes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for stack in stacks.iter().filter(|stack| stack.has_java_leaf()) {
        let class = classes.entry(stack.label("thread_class").unwrap_or("?")).or_default();
        class.0 += if stack.is_rooted() { stack.count } else { 0 };
        class.1 += stack.count;
    }
    for (class, (whole, n)) in classes {
        println!("   Java leaf, class {class}: {whole} of {n} whole ({:.2} %)", percent(whole, n));
    }
    vec![
        Row::share(format!("rooted: {on}, stacks with a Java leaf that are whole"), whole, ROOTED, java),
        Row::share(format!("rooted: {on}, samples that have a Java leaf"), java, JAVA_LEAF, all),
        Row::told(
            format!("rooted: {on}, the others that are whole"),
            format!("{:.2} %", percent(others, all - java)),
            all - java,
        ),
    ]
}

fn named(on: &str, stacks: &[Stack]) -> Row {
    let (mut named, mut nameless) = (0, BTreeMap::<&str, usize>::new());
    for stack in stacks {
        for frame in stack.user() {
            if frame.is_java() {
                named += stack.count;
            } else if frame.is_nameless_java() {
                *nameless.entry(&frame.name).or_default() += stack.count;
            }
        }
    }
    let all = named + nameless.values().sum::<usize>();
    let mut worst: Vec<(&str, usize)> = nameless.into_iter().collect();
    worst.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    print_worst("Java frame without a name", &worst, all);
    Row::share(format!("named: {on}, Java frames with a name"), named, NAMED, all)
}
