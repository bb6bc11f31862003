//! `bench api`: the daemon's HTTP server under many clients.
//!
//! Clients on loopback ask one route after the other, each again as soon as it has its answer; beside them some
//! ask for a large answer and never read it, and some hang up after they have asked. Printed for each route:
//! requests, errors, and the time from asking to the last byte (median, 99th percentile, largest); the daemon's
//! memory before, at its peak and after, whether it still answers, and where its own CPU time went meanwhile, by its
//! own samples. Times are not judged: the machine and what else runs on it decide them. Errors are: it fails then. It
//! ends by itself, the windows' wait and the last answers' counted in at most five minutes after the clients.

mod clients;
mod report;

use super::procfs;
use crate::clock::now;
use crate::launch::Daemon;
use crate::{build, places};
use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use report::{MIB, Routes};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

#[derive(Parser)]
#[command(name = "api", about = "The HTTP server under many clients")]
struct Options {
    /// Clients that ask and read
    #[arg(long, default_value_t = 200)]
    clients: usize,
    /// Seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Clients that ask for a large answer and never read it
    #[arg(long, default_value_t = 20)]
    unread: usize,
    /// Clients that ask and hang up, five times a second
    #[arg(long, default_value_t = 10)]
    dropping: usize,
    /// Every client asks questions that no other asks
    #[arg(long)]
    own: bool,
    /// Windows of ten seconds that there must be before the clients come
    #[arg(long, default_value_t = 3)]
    windows: u64,
    /// A daemon to start instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let options = Options::parse_from(std::iter::once("api".to_owned()).chain(arguments.iter().cloned()));
    ensure!(options.clients > 0 && options.clients <= 1000, "--clients: 1 to 1000");
    ensure!(options.seconds > 0 && options.seconds <= 600, "--seconds: 1 to 600");
    ensure!(options.unread <= 100 && options.dropping <= 100, "--unread and --dropping: at most 100");
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build::run()?,
    };
    let work = places::target().join("bench").join("api");
    let daemon = Daemon::start(&binary, &work, None, &[])?;
    let samples = wait_for_windows(&daemon, options.windows)?;
    println!("{} windows with {samples} samples are there; {} s begin", options.windows, options.seconds);
    let address: SocketAddr = daemon.url().trim_start_matches("http://").parse().context("its address")?;
    let (before, from) = (rss(daemon.pid())?, now());
    let hung_up = AtomicU64::new(0);
    let met = load(&options, daemon.url(), address, &hung_up);
    let errors = report::print(met, options.seconds);
    println!(
        "{} clients never read, {} hung up; resident {before:.1} MiB before, {:.1} at its peak, {:.1} after",
        options.unread,
        hung_up.into_inner(),
        procfs::peak_rss_bytes(daemon.pid())? as f64 / MIB,
        rss(daemon.pid())?
    );
    let after = daemon.get("/api/v1/apps")?;
    println!("afterwards it answers with {}", after.status);
    own_time(&daemon, from, now())?;
    daemon.stop()?;
    ensure!(errors == 0 && after.status == 200, "{errors} errors");
    Ok(())
}

/// All clients at once, until the time is up.
fn load(options: &Options, url: &str, address: SocketAddr, hung_up: &AtomicU64) -> Routes {
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let met: Mutex<Routes> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..options.unread {
            scope.spawn(|| clients::never_read(address, until));
        }
        for _ in 0..options.dropping {
            scope.spawn(|| clients::hang_up(address, until, hung_up));
        }
        for client in 0..options.clients {
            let met = &met;
            let ask = move || clients::ask(url, client, options.own, until, met);
            // A client that could not be started is no figure.
            let _ = std::thread::Builder::new().stack_size(256 * 1024).spawn_scoped(scope, ask);
        }
    });
    met.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// How long the first windows may take beside their own length: a daemon reads the node's files before it names
/// anything.
const WINDOWS_TIMEOUT: Duration = Duration::from_secs(180);
/// How long its samples of the last window may take to be there.
const LAST_TIMEOUT: Duration = Duration::from_secs(60);

/// Answers of nothing would measure nothing. How many samples there are.
fn wait_for_windows(daemon: &Daemon, windows: u64) -> Result<u64> {
    let begun = Instant::now();
    let most = WINDOWS_TIMEOUT + Duration::from_secs(10 * windows);
    loop {
        let kept = daemon.json("/api/v1/status")?["store"]["windows"].as_u64().unwrap_or(0);
        if kept >= windows {
            let apps = daemon.json("/api/v1/apps")?;
            return apps["quality"]["samples"].as_u64().context("the daemon does not say how many samples");
        }
        ensure!(
            begun.elapsed() < most,
            "{kept} windows after {most:?}: the machine is too busy, or this is a debug build"
        );
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// What the daemon says of itself: its methods with most time in and below them.
fn own_time(daemon: &Daemon, from: u64, until: u64) -> Result<()> {
    let begun = Instant::now();
    let path = format!("/api/v1/top?pid={}&from={from}&until={until}&sort=total&limit=400", daemon.pid());
    loop {
        let top = daemon.json(&path)?;
        let whole = top["quality"]["samples"].as_f64().unwrap_or(0.0);
        let last = daemon.json("/api/v1/apps")?["span"]["until"].as_str().unwrap_or_default().to_owned();
        let wanted = top["range"]["until"].as_str().unwrap_or_default().to_owned();
        if last < wanted && begun.elapsed() < LAST_TIMEOUT {
            std::thread::sleep(Duration::from_secs(1));
            continue;
        }
        println!("its own {whole:.0} samples, in and below:");
        let rows = top["top"].as_array().into_iter().flatten();
        let ours = rows.filter(|row| row["name"].as_str().is_some_and(|name| name.contains("emberscope::")));
        for row in ours.take(16) {
            let samples = row["total"]["samples"].as_f64().unwrap_or(0.0);
            println!(
                "{:7.1} %  {}",
                100.0 * samples / whole.max(1.0),
                row["name"].as_str().unwrap_or_default()
            );
        }
        return Ok(());
    }
}

/// Resident memory now, in MiB.
fn rss(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).context(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().context("VmRSS")?;
    Ok(kib / 1024.0)
}
