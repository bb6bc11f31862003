//! An application's hour of many nodes in an archive: `cargo xtask bench archive` runs this.
//!
//! In: an archive's URL, how many nodes. Out: what was copied and how large it is, how long `compact` took, and the
//! hour as one flame graph from a reader that has seen nothing, in a process of its own: its time and its peak memory
//! beside the bars.

mod nodes;

use emberscope_archive::{Archiver, ArchiverConfig, CompactConfig, Reader, ReaderConfig, Remote, compact};
use emberscope_model::{
    Detail, LabelKey, MatchOp, Matcher, Query, SampleKind, Selection, TimeRange, WallTime,
};
use emberscope_store::{AnswerLimits, DiskStore, DiskStoreConfig, Fsync, ShelfStore, Store};
use nodes::{APP, BASE, Node, WINDOWS};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const BAR_SECONDS: f64 = 2.0;
const BAR_MIB: u64 = 512;
const USAGE: &str = "archive_bench --url URL [--nodes 1000] | --ask URL CACHE-DIR";

fn hour() -> TimeRange {
    TimeRange { from: WallTime(BASE), until: WallTime(BASE + WINDOWS * 10_000_000_000) }
}

/// Peak resident memory of this process, MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<u64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kib.unwrap_or_default() / 1024
}

/// Writes a node's hour, copies it, removes it. Out: samples.
fn copy(number: u64, url: &str, scratch: &Path) -> Result<u64, String> {
    let mut node = Node::new(number);
    let dir = scratch.join(node.name());
    let mut samples = 0;
    let config = DiskStoreConfig {
        fsync: Fsync::Never,
        memory_bytes: usize::MAX,
        retention_age: Duration::MAX,
        ..DiskStoreConfig::new(&dir)
    };
    let store = DiskStore::open(config).map_err(|error| error.to_string())?;
    for window in 0..WINDOWS {
        let (window, count) = node.window(window);
        samples += count;
        store.append(window);
    }
    store.settle();
    let archiver =
        Archiver::start(ArchiverConfig::new(&dir, node.name(), url)).map_err(|error| error.to_string())?;
    let begun = Instant::now();
    while archiver.usage().blocks == 0 {
        if let Some(says) = archiver.usage().failing.filter(|_| begun.elapsed() > Duration::from_secs(60)) {
            return Err(says);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    drop((archiver, store));
    std::fs::remove_dir_all(&dir).map_err(|error| error.to_string())?;
    Ok(samples)
}

/// Asks for the hour, having seen nothing.
fn ask(url: &str, cache: &str) -> Result<(), String> {
    let begun = Instant::now();
    let reader = Reader::open(ReaderConfig::new(url, cache)).map_err(|error| error.to_string())?;
    let store = ShelfStore::new(reader, Duration::from_secs(10), AnswerLimits::default());
    let query = Query {
        range: hour(),
        selection: Selection {
            matchers: vec![Matcher { key: LabelKey::App, op: MatchOp::In(vec![APP.to_owned()]) }],
        },
        kind: SampleKind::Cpu,
        group: Vec::new(),
        detail: Detail::default(),
    };
    let answer = store.merge(&query).map_err(|error| error.to_string())?;
    let seconds = begun.elapsed().as_secs_f64();
    let usage = store.shelf().reading();
    println!(
        "{seconds:.3} {} {} {} {} {}",
        peak_mib(),
        answer.quality.samples,
        answer.tree.nodes.len(),
        usage.fetched,
        usage.fetched_bytes
    );
    Ok(())
}

fn run(url: &str, count: u64) -> Result<bool, String> {
    let scratch = std::env::temp_dir().join(format!("emberscope-bench-archive-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let mut samples = 0;
    for number in 0..count {
        samples += copy(number, url, &scratch)?;
        if number % 100 == 99 {
            println!("{} nodes, {:.0} s", number + 1, begun.elapsed().as_secs_f64());
        }
    }
    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let remote = Remote::open(url, false).map_err(|error| error.to_string())?;
    let objects = runtime.block_on(remote.list("v1/nodes", usize::MAX)).map_err(|error| error.to_string())?;
    let listed = begun.elapsed().as_secs_f64();
    let bytes: u64 = objects.iter().map(|object| object.bytes).sum();
    let begun = Instant::now();
    for _ in 0..20 {
        runtime.block_on(remote.get("v1/none", 10)).map_err(|error| error.to_string())?;
    }
    let latency = begun.elapsed().as_secs_f64() * 50.0;
    println!(
        "{count} nodes, {samples} samples, {} objects of {bytes} bytes; listed in {listed:.2} s",
        objects.len()
    );
    println!("a request takes {latency:.1} ms");
    let begun = Instant::now();
    let config = CompactConfig {
        url: url.to_owned(),
        dir: scratch.join("compact"),
        dir_bytes: 8 << 30,
        memory_bytes: 8 << 30,
        app: Some(APP.to_owned()),
        range: hour(),
    };
    let mut made = None;
    compact(&config, |compacted| made = Some(compacted)).map_err(|error| error.to_string())?;
    let made = made.ok_or("nothing was brought together")?;
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "compact: {seconds:.1} s, {} bytes of {} blocks, peak memory {} MiB",
        made.bytes,
        made.blocks,
        peak_mib()
    );
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut good = true;
    for round in 0..3 {
        let cache = scratch.join(format!("cache-{round}"));
        let out = Command::new(&program).args(["--ask", url]).arg(&cache).output();
        let out = out.map_err(|error| error.to_string())?;
        let line = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        let words: Vec<&str> = line.split(' ').collect();
        let [seconds, peak, seen, nodes, files, fetched] = words.as_slice() else {
            return Err(format!("the reader said {line:?} {}", String::from_utf8_lossy(&out.stderr)));
        };
        let (seconds, peak): (f64, u64) =
            (seconds.parse().unwrap_or(f64::MAX), peak.parse().unwrap_or(u64::MAX));
        if *seen != samples.to_string() {
            return Err(format!("the answer has {seen} samples of {samples}"));
        }
        let holds = seconds <= BAR_SECONDS && peak <= BAR_MIB;
        good &= holds;
        println!(
            "the hour, cold: {seconds:.3} s (bar {BAR_SECONDS}), peak {peak} MiB (bar {BAR_MIB}), {nodes} nodes of the tree, \
             {files} files of {fetched} bytes{}",
            if holds { "" } else { "  OVER" }
        );
    }
    let _ = std::fs::remove_dir_all(&scratch);
    Ok(good)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--ask", url, cache] => ask(url, cache).map(|()| true),
        ["--url", url] => run(url, 1000),
        ["--url", url, "--nodes", nodes] => match nodes.parse() {
            Ok(nodes) => run(url, nodes),
            Err(_) => Err(USAGE.to_owned()),
        },
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(says) => {
            eprintln!("{says}");
            ExitCode::FAILURE
        }
    }
}
