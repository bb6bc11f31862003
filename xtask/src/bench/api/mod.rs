//! `bench api`: the daemon's HTTP server under many clients.
//!
//! Clients on loopback ask one route after the other, each again as soon as it has its answer; beside them some
//! ask for a large answer and never read it, and some hang up after they have asked. Printed for each route:
//! requests, errors, and the time from asking to the last byte (median, 99th percentile, largest); the daemon's
//! memory before, at its peak, and whether it still answers. Nothing is judged: the machine and what else runs on it
//! decide the times.

use super::procfs;
use crate::launch::Daemon;
use crate::{build, places};
use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is asked, in turn: a method, a path, a body.
const ASKED: [(&str, &str, &str); 10] = [
    ("GET", "/api/v1/apps", ""),
    ("GET", "/api/v1/executors", ""),
    ("GET", "/api/v1/stages?join=no", ""),
    ("GET", "/api/v1/top?limit=100", ""),
    ("GET", "/api/v1/flamegraph?format=json&max_nodes=5000", ""),
    ("GET", "/api/v1/flamegraph?format=folded", ""),
    ("GET", "/api/v1/series?by=process", ""),
    ("GET", "/api/v1/labels/process/values", ""),
    ("GET", "/metrics", ""),
    (
        "POST",
        "/querier.v1.QuerierService/SelectMergeStacktraces",
        r#"{"profileTypeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","labelSelector":"{}","start":"1","end":"9999999999999"}"#,
    ),
];
/// What those who never read ask for, or hang up on.
const LARGE: &str = "/api/v1/flamegraph?format=json&lines=1";

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
    /// Windows of ten seconds that there must be before the clients come
    #[arg(long, default_value_t = 3)]
    windows: u64,
    /// A daemon to start instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// What a route's clients met.
#[derive(Default)]
struct Met {
    seconds: Vec<f64>,
    bytes: u64,
    errors: BTreeMap<String, u64>,
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
    println!("{} windows with {samples} samples are there", options.windows);
    let url = daemon.url().to_owned();
    let address = url.trim_start_matches("http://").to_owned();
    let before = rss(daemon.pid())?;

    let until = Instant::now() + Duration::from_secs(options.seconds);
    let met: Mutex<BTreeMap<&str, Met>> = Mutex::default();
    let (hung_up, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..options.unread {
            scope.spawn(|| never_read(&address, until, &stop));
        }
        for _ in 0..options.dropping {
            scope.spawn(|| hang_up(&address, until, &hung_up));
        }
        let clients: Vec<_> = (0..options.clients)
            .map(|client| {
                let (url, met) = (&url, &met);
                std::thread::Builder::new()
                    .stack_size(256 * 1024)
                    .spawn_scoped(scope, move || ask(url, client, until, met))
            })
            .collect();
        for client in clients {
            // A client that could not be started, or that panicked, is no figure.
            let _ = client.map(std::thread::ScopedJoinHandle::join);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let met = met.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    print(&met, options.seconds);
    println!(
        "{} clients never read, {} hung up; resident {before:.1} MiB before, {:.1} at its peak, {:.1} after",
        options.unread,
        hung_up.into_inner(),
        procfs::peak_rss_bytes(daemon.pid())? as f64 / MIB,
        rss(daemon.pid())?
    );
    let after = daemon.get("/api/v1/apps")?;
    println!("afterwards it answers with {}", after.status);
    daemon.stop()?;
    Ok(())
}

const MIB: f64 = 1024.0 * 1024.0;
/// How long the first windows may take: a daemon reads the node's files before it names anything.
const WINDOWS_TIMEOUT: Duration = Duration::from_secs(300);

/// Answers of nothing would measure nothing. How many samples there are.
fn wait_for_windows(daemon: &Daemon, windows: u64) -> Result<u64> {
    let begun = Instant::now();
    loop {
        let kept = daemon.json("/api/v1/status")?["store"]["windows"].as_u64().unwrap_or(0);
        if kept >= windows {
            let apps = daemon.json("/api/v1/apps")?;
            return apps["quality"]["samples"].as_u64().context("the daemon does not say how many samples");
        }
        ensure!(
            begun.elapsed() < WINDOWS_TIMEOUT,
            "{kept} windows after {WINDOWS_TIMEOUT:?}: the machine is too busy, or this is a debug build"
        );
        std::thread::sleep(Duration::from_secs(1));
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

fn ask(url: &str, client: usize, until: Instant, met: &Mutex<BTreeMap<&'static str, Met>>) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(60)))
        .proxy(None)
        .build()
        .into();
    let mut mine: BTreeMap<&'static str, Met> = BTreeMap::new();
    for (method, path, body) in ASKED.iter().cycle().skip(client % ASKED.len()) {
        if Instant::now() >= until {
            break;
        }
        let begun = Instant::now();
        let target = format!("{url}{path}");
        let answer = match *method {
            "POST" => agent.post(target).header("Content-Type", "application/json").send(*body),
            _ => agent.get(target).call(),
        };
        let read = answer.and_then(|mut answer| {
            let bytes = answer.body_mut().with_config().limit(1 << 30).read_to_vec()?;
            Ok((answer.status().as_u16(), bytes.len()))
        });
        let route = mine.entry(path.split('?').next().unwrap_or(path)).or_default();
        match read {
            Ok((200, bytes)) => {
                route.seconds.push(begun.elapsed().as_secs_f64());
                route.bytes += bytes as u64;
            }
            Ok((status, _)) => *route.errors.entry(status.to_string()).or_default() += 1,
            Err(error) => *route.errors.entry(error.to_string()).or_default() += 1,
        }
    }
    let mut all = met.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for (path, of) in mine {
        let route = all.entry(path).or_default();
        route.seconds.extend(of.seconds);
        route.bytes += of.bytes;
        for (error, count) in of.errors {
            *route.errors.entry(error).or_default() += count;
        }
    }
}

fn large(address: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {LARGE} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    Ok(stream)
}

/// Asks and does not read; asks anew every 30 s, when the daemon has given the connection up.
fn never_read(address: &str, until: Instant, stop: &AtomicBool) {
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        let held = large(address);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(200));
        }
        drop(held);
    }
}

fn hang_up(address: &str, until: Instant, count: &AtomicU64) {
    while Instant::now() < until {
        if large(address).is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn print(met: &BTreeMap<&str, Met>, seconds: u64) {
    let mut all = Met::default();
    println!(
        "{:<52} {:>8} {:>7} {:>9} {:>9} {:>9} {:>9}",
        "", "requests", "errors", "p50 ms", "p99 ms", "max ms", "MiB"
    );
    for (path, route) in met {
        line(path, route);
        all.seconds.extend(&route.seconds);
        all.bytes += route.bytes;
        for (error, count) in &route.errors {
            *all.errors.entry(error.clone()).or_default() += count;
        }
    }
    line("all", &all);
    println!("{:.1} requests a second", all.seconds.len() as f64 / seconds as f64);
    for (error, count) in &all.errors {
        println!("error, {count} times: {error}");
    }
}

fn line(name: &str, met: &Met) {
    let mut sorted = met.seconds.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let place = (part * sorted.len() as f64).ceil() as usize;
        sorted.get(place.saturating_sub(1)).map_or(f64::NAN, |s| s * 1e3)
    };
    let errors: u64 = met.errors.values().sum();
    println!(
        "{name:<52} {:>8} {errors:>7} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
        sorted.len(),
        at(0.5),
        at(0.99),
        at(1.0),
        met.bytes as f64 / MIB
    );
}
