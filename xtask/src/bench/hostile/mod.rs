//! `bench hostile`: what one unprivileged user can do to a daemon with default settings, beside another user's Spark
//! job. One attack after the other; after each, what became of the job's samples, the windows, the memory, the answers.
//!
//! | module | job |
//! |---|---|
//! | `host` | users, and what they can read and run |
//! | `attacks`, `fuse`, `identity`, `names`, `elf` | the attacks; their programs are in `programs/` |
//! | `slice` | the attackers' control group |
//! | `ours` | panics of its own threads, spoiled blocks |
//! | `watch`, `verdict` | what is measured meanwhile, and held to its bar |
//!
//! A daemon that dies is started again for the next attack, on the same data. Its memory has a limit far above its bar,
//! so that a machine lives through a daemon that grows.

mod attacks;
mod elf;
mod fuse;
mod host;
mod identity;
pub mod names;
mod ours;
mod slice;
mod verdict;
mod watch;

use super::{kit, row};
use crate::clock::WINDOW_MS;
use crate::launch::Daemon;
use crate::{build, places, root, step};
use anyhow::{Context as _, Result, bail};
use attacks::ATTACKS;
use clap::Parser;
use host::Host;
use row::Row;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Private writable memory of the daemon (RLIMIT_DATA): eight times its bar.
const MEMORY_LIMIT: u64 = 1 << 30;
/// What needs no neighbour.
const OURS: [&str; 2] = ["panics", "archive"];
/// Between an attack's end and the next.
const REST: Duration = Duration::from_secs(5);

#[derive(Parser)]
#[command(
    name = "hostile",
    about = "Attacks by an unprivileged neighbour, beside a real Spark job (needs root)"
)]
// The kit's options have the same name.
#[group(skip)]
struct Options {
    /// Only these (default: all)
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Seconds of each attack, in whole windows of ten
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The daemon (default: build it)
    #[arg(long)]
    bin: Option<PathBuf>,
    #[command(flatten)]
    kit: kit::Options,
}

impl Options {
    fn wants(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|asked| asked == row)
    }
}

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let options = Options::parse_from(std::iter::once("hostile").chain(arguments.iter().map(String::as_str)));
    let names: Vec<_> = ATTACKS.iter().map(|(name, ..)| *name).chain(OURS).collect();
    if let Some(unknown) = options.rows.iter().find(|row| !names.contains(&row.as_str())) {
        bail!("there is no attack `{unknown}`: {}", names.join(", "));
    }
    if !root::is_root() {
        bail!("two other users' programs are to be started: run it as root");
    }
    let kit = options.kit.kit()?;
    let binary = match &options.bin {
        Some(binary) => binary.clone(),
        None => build::run()?,
    };
    let work = places::target().join("bench/hostile");
    let _ = std::fs::remove_dir_all(&work);
    let windows = options.seconds.div_ceil(10).max(1);
    let mut host = Host::new(&kit, windows * 10)?;
    let mut daemon = start(&binary, &work)?;
    let (mut job, mut executors) = host.victim("victim", "local-cluster[2,1,1024]", &[])?;
    host.app = job.fact("app").context("the job has no application")?;
    println!("the victim: {}, executors {executors:?}, uid {:?}", host.app, "nobody");
    let mut rows = Vec::new();
    for (name, about, attack) in ATTACKS {
        if !options.wants(name) {
            continue;
        }
        println!("== {name}: {about}");
        if job.ended()?.is_some() {
            println!("   the victim's job has ended: another one");
            (job, executors) = host.victim("victim", "local-cluster[2,1,1024]", &[])?;
            host.app = job.fact("app").context("the job has no application")?;
        }
        rows.extend(of_attack(name, attack, &host, &daemon, windows, &executors));
        std::thread::sleep(REST);
        if !watch::alive(daemon.pid()) || daemon.get("/healthz").is_err() {
            println!("   the end of its log:\n{}", step::tail(daemon.log(), 5));
            drop(daemon);
            daemon = start(&binary, &work)?;
        }
    }
    daemon.stop()?;
    if options.wants("panics") {
        rows.extend(ours::panics(&binary, &work, windows, &executors, &host.app)?);
    }
    drop(job);
    if options.wants("archive") {
        rows.extend(ours::archive()?);
    }
    row::print(&rows);
    match rows.iter().filter(|row| row.fails()).count() {
        0 => Ok(()),
        n => bail!("{n} figures are outside their bars"),
    }
}

/// With default settings, and a limit to its memory.
fn start(binary: &Path, work: &Path) -> Result<Daemon> {
    let daemon = Daemon::start_guarded(binary, &work.join("daemon"), &[])?;
    let limit = Rlimit { current: Some(MEMORY_LIMIT), maximum: Some(MEMORY_LIMIT) };
    let pid = i32::try_from(daemon.pid()).ok().and_then(Pid::from_raw);
    prlimit(pid, Resource::Data, limit).context("limiting the daemon's memory")?;
    Ok(daemon)
}

fn of_attack(
    name: &str,
    attack: attacks::Start,
    host: &Host,
    daemon: &Daemon,
    windows: u64,
    executors: &[u32],
) -> Vec<Row> {
    let mut attack = match attack(host, daemon) {
        Ok(attack) => attack,
        Err(why) => {
            println!("   skipped: {why:#}");
            return vec![Row::told(format!("{name}: skipped"), "see above", 0)];
        }
    };
    for said in &attack.told {
        println!("   {said}");
    }
    let executors: Vec<u32> = executors.iter().chain(&attack.executors).copied().collect();
    let from = watch::next();
    let clock = host.clock((from, from + windows * WINDOW_MS), &executors);
    let mut seen = match watch::over(daemon, (from, windows..=windows), &executors, || true) {
        Ok(seen) => seen,
        Err(why) => return vec![Row::is(name, format!("{why:#}"), "measured", false, 0)],
    };
    match clock.and_then(|clock| host::sampled(clock, &executors)) {
        Ok(sampled) => seen.sampled = sampled,
        Err(why) => println!("   the kernel's clock was not sampled: {why:#}"),
    }
    for running in &attack.running {
        let said = step::tail(running.log(), 2);
        println!("   {}", said.replace('\n', ", "));
    }
    let check = attack.check.take();
    attack.end();
    let alive = watch::alive(daemon.pid());
    if alive {
        // The last window is visible a moment after its end.
        std::thread::sleep(Duration::from_secs(8));
    }
    let mut rows = verdict::rows(name, &seen, alive.then_some(daemon));
    if let Some(check) = check {
        match check(daemon, seen.range) {
            Ok(more) => rows.extend(more),
            Err(why) => {
                rows.push(Row::is(format!("{name}: what became of it"), format!("{why:#}"), "-", false, 0))
            }
        }
    }
    // What is known now is not lost if a later attack takes the machine down.
    row::print(&rows);
    rows
}
