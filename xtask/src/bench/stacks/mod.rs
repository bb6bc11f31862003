//! `bench stacks`: whether stacks are whole, rightly named and cheap, with no flag on the JVM. A module for each
//! thing that they are held against.
//!
//! | rows | held against |
//! |---|---|
//! | [`spark`]: `rooted`, `named`, `cost` | a real Spark job: its threads' first function, 3 us at 60 frames |
//! | [`programs`]: `oracle` | programs that tell their own stacks (tests/jobs/oracle) |
//! | [`known`]: `split`, `lines`, `depth` | shares, a line and depths known by construction |
//! | [`unload`] | numbers in the names of 10,000 classes that come and go |
//! | [`resident`]: also `cost` | ten JVMs: CPU of daemon and kernel, memory with BPF maps |
//! | [`ready`] | time from a JVM's start to its first whole stack |
//! | [`native`]: `native` | Spark jobs with snappy, lz4 and zstd: all threads' first functions, the whole machine's too |
//! | [`perf`]: `perf` | perf with DWARF call graphs on the same run of a C program |
//! | [`tables`]: `tables`, `restart` | memory of unwind tables; a start on a node with 200 processes |
//! | [`agent`]: `async` | async-profiler on separate runs of the same job |
//! | [`walk`]: `walk` | the function that starts a JVM's threads, under flags that the tests leave out |

mod agent;
mod known;
mod native;
mod perf;
mod programs;
mod ready;
mod resident;
mod sets;
mod spark;
mod tables;
mod unload;
mod walk;

pub use spark::Kernel;

use super::row::{self, Row};
use crate::launch::Daemon;
use crate::oracle::{Ran, Report, Stack, Told, program, stacks};
use crate::setup::runtime::Runtime;
use crate::{build, places, setup};
use anyhow::{Context as _, Result, bail};
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

/// Length of the daemon's windows where programs tell when they ran.
const WINDOW_MS: u64 = 2_000;
/// A window is visible after its grace and the naming of what waited.
const VISIBLE_AFTER: Duration = Duration::from_secs(8);
/// Differences that are printed of what was not as told.
const SHOWN: usize = 10;

#[derive(Parser)]
#[command(name = "stacks", about = "Stacks: whole, rightly named, cheap")]
struct Options {
    /// Only these (default: all)
    #[arg(long, value_delimiter = ',')]
    rows: Vec<Rows>,
    /// Major versions of Java (default: 8, 11, 17, 21 and 25 for programs, 17 and 25 for what has a bar of its own)
    #[arg(long, value_delimiter = ',')]
    jdk: Vec<u32>,
    /// Samples a second and CPU of programs; jobs are sampled at 99
    #[arg(long, default_value_t = 499)]
    hz: u32,
    /// Seconds of each program, in whole windows
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Only these programs of the oracle
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// Only these sets of flags of the oracle
    #[arg(long, value_delimiter = ',')]
    sets: Vec<String>,
    /// Windows of ten seconds of a Spark job
    #[arg(long, default_value_t = 6)]
    windows: u64,
    /// A daemon that is built already, instead of this source's
    #[arg(long)]
    binary: Option<PathBuf>,
    /// More flags for every JVM, as one word each
    #[arg(long, value_delimiter = ' ', allow_hyphen_values = true)]
    java_flags: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Rows {
    Rooted,
    Named,
    Oracle,
    Split,
    Lines,
    Depth,
    Unload,
    Cost,
    /// The part of `cost` that takes ten JVMs
    Ten,
    Ready,
    Async,
    Native,
    Perf,
    Tables,
    Restart,
    Walk,
}

/// What every measurement needs.
struct Bench {
    options: Options,
    binary: PathBuf,
    work: PathBuf,
    /// The oracle's classes.
    classes: PathBuf,
}

impl Bench {
    fn wants(&self, rows: &[Rows]) -> bool {
        self.options.rows.is_empty() || rows.iter().any(|row| self.options.rows.contains(row))
    }

    /// The versions of Java that are asked for, else `usual`.
    fn majors(&self, usual: &[u32]) -> Vec<u32> {
        if self.options.jdk.is_empty() { usual.to_vec() } else { self.options.jdk.clone() }
    }

    /// A daemon for programs: short windows, many samples.
    fn daemon(&self, name: &str) -> Result<Daemon> {
        let (hz, window) = (self.options.hz.to_string(), format!("{}s", WINDOW_MS / 1000));
        let words = ["--hz", &hz, "--window", &window, "--store-bytes", "512MiB"];
        Daemon::start(&self.binary, &self.work.join(name), None, &words)
    }

    /// Runs programs of the oracle; returns when all that they did can be asked for.
    fn programs(&self, java: &Runtime, flags: &[&str], programs: &[&str], seconds: u64) -> Result<Ran> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut all = owned(&program::TELL_ALL);
        all.extend(owned(flags));
        all.extend(self.options.java_flags.iter().filter(|flag| !flag.is_empty()).cloned());
        let oracle = crate::oracle::Oracle {
            java: java.command.clone(),
            flags: all,
            programs: owned(programs),
            // Whole windows: one that is shared shows the program that comes next, too.
            seconds: seconds.next_multiple_of(WINDOW_MS / 1000),
            window_ms: WINDOW_MS,
        };
        let ran = oracle.run(&java.place(&self.classes)?, &self.work.join("oracle.log"))?;
        std::thread::sleep(VISIBLE_AFTER);
        Ok(ran)
    }
}

/// A part of a program's time, as the daemon tells it.
struct Seen {
    stacks: Vec<Stack>,
    quality: serde_json::Value,
}

/// What the daemon says of a process in a range of time, by class of thread.
fn seen(daemon: &Daemon, selection: &str, (from, until): (u64, u64)) -> Result<Seen> {
    let path =
        format!("/api/v1/flamegraph?{selection}&from={from}&until={until}&format=json&group=thread_class");
    let answer = daemon.json(&path)?;
    Ok(Seen { stacks: stacks(&answer), quality: answer["quality"].clone() })
}

/// What the daemon says of a program, judged.
fn judged(daemon: &Daemon, ran: &Ran, told: &Told, range: (u64, u64)) -> Result<(Report, Seen)> {
    // Inlined frames are told from compiled ones.
    let seen = seen(daemon, &format!("pid={}&annotate=1", ran.jvm.pid()), range)?;
    let mut report = Report::default();
    report.add(&told.truth, &seen.stacks);
    Ok((report, seen))
}

/// The reasons by which stacks ended, the most frequent first.
fn ends(quality: &serde_json::Value) -> String {
    let ends = quality["ends"].as_object().into_iter().flatten();
    let mut ends: Vec<(&str, u64)> = ends.map(|(why, n)| (why.as_str(), n.as_u64().unwrap_or(0))).collect();
    ends.sort_by_key(|(why, n)| (std::cmp::Reverse(*n), *why));
    ends.iter().map(|(why, n)| format!("{why} {n}")).collect::<Vec<_>>().join(", ")
}

/// A part of n in percent.
fn percent(part: usize, n: usize) -> f64 {
    part as f64 / n.max(1) as f64 * 100.0
}

/// Prints counted things, the most frequent first.
fn print_worst(what: &str, worst: &[(&str, usize)], n: usize) {
    for (how, count) in worst {
        println!("   {what}: {count} ({:.2} %) {how}", percent(*count, n));
    }
}

/// A version of Java, or a row that says why there is none.
fn java(major: u32, skipped: &mut Vec<String>, what: &str) -> Option<Runtime> {
    match Runtime::ensure(major) {
        Ok(java) => Some(java),
        Err(why) => {
            skipped.push(format!("{what}, Java {major}: {why:#}"));
            None
        }
    }
}

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let options = Options::parse_from(std::iter::once("stacks".to_owned()).chain(arguments.iter().cloned()));
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build::run()?,
    };
    let work = places::target().join("bench/stacks");
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let classes = program::compile(&setup::jdk::ensure()?.home, &work)?;
    let bench = Bench { options, binary, work, classes };
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    type Part = fn(&Bench, &mut Vec<String>) -> Result<Vec<Row>>;
    let parts: [(&str, &[Rows], Part); 14] = [
        ("Spark", &[Rows::Rooted, Rows::Named, Rows::Cost], spark::rows),
        ("oracle", &[Rows::Oracle], programs::rows),
        ("split", &[Rows::Split], known::split),
        ("lines", &[Rows::Lines], known::lines),
        ("depth", &[Rows::Depth], known::depth),
        ("unload", &[Rows::Unload], unload::rows),
        ("ten JVMs", &[Rows::Cost, Rows::Ten], resident::rows),
        ("ready", &[Rows::Ready], ready::rows),
        ("async-profiler", &[Rows::Async], agent::rows),
        ("native", &[Rows::Native], native::rows),
        ("perf", &[Rows::Perf], perf::rows),
        ("tables", &[Rows::Tables], tables::memory),
        ("restart", &[Rows::Restart], tables::restart),
        ("walk", &[Rows::Walk], walk::rows),
    ];
    for (name, wanted, part) in parts.iter().filter(|(_, wanted, _)| bench.wants(wanted)) {
        println!("== {name} ({wanted:?})");
        // One that cannot be measured does not keep the others from it.
        match part(&bench, &mut skipped) {
            Ok(more) => {
                // The table comes at the end; who ends this before has what was measured so far.
                row::print(&more);
                rows.extend(more);
            }
            Err(why) => {
                println!("   {name}: {why:#}");
                let what = format!("{name}: could not be measured");
                rows.push(Row::is(what, format!("{why:#}"), "-", false, 0));
            }
        }
    }
    row::print(&rows);
    for why in &skipped {
        println!("skipped: {why}");
    }
    match rows.iter().filter(|row| row.fails()).count() {
        0 => Ok(()),
        n => bail!("{n} figures are outside their bars"),
    }
}
