//! Writing the hour, in a process of its own: CPU seconds, peak memory, bytes a sample.
//!
//! The hour is that of a node of 64 cores at 99 Hz: how its memory goes is told by the quarter.
//!
//! The generator's own CPU time is measured window by window and taken off; its memory (some 10 MB) is in the
//! figure. The part at the end is made a block too, so that all of the hour is counted as it stays.

use super::figures::Line;
use super::hour::{Hour, WINDOWS};
use emberscope_model::SampleKind;
use emberscope_store::{DiskStore, DiskStoreConfig, Store};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Cores of the hour's node, and its seconds.
const CORES: f64 = 64.0;
const SECONDS: f64 = 3600.0;

/// Says to a process of this program that it is to write, and where.
pub const CHILD: &str = "EMBERSCOPE_BENCH_INGEST";
const MEMORY: &str = "EMBERSCOPE_BENCH_MEMORY_MIB";
/// And which kinds of samples: their slugs, with commas between.
const KINDS: &str = "EMBERSCOPE_BENCH_KINDS";

/// The daemon's settings, but for the ages at which windows become coarser and go.
pub fn config(dir: &Path) -> DiskStoreConfig {
    let age = std::time::Duration::from_secs(100 * 365 * 86_400);
    DiskStoreConfig { retention_age: age, roll_ups: Vec::new(), ..DiskStoreConfig::new(dir) }
}

/// A clock's seconds.
pub fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A line of /proc/self/status, MB.
fn resident(what: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb = status.lines().find_map(|line| line.strip_prefix(what)?.trim().strip_suffix(" kB"));
    kb.and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

/// Writes the hour and prints what that took, a word and a number a line.
pub fn child(dir: &Path) {
    let memory = std::env::var(MEMORY).ok().and_then(|mib| mib.parse::<usize>().ok()).unwrap_or(20);
    let store = DiskStore::open(DiskStoreConfig { memory_bytes: memory << 20, ..config(dir) });
    let store = match store {
        Ok(store) => store,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    };
    let (mut rows, mut samples, mut generator) = (0, 0, 0.0);
    let begun = seconds(ClockId::ProcessCPUTime);
    let kinds = std::env::var(KINDS).unwrap_or_default();
    let kinds: Vec<SampleKind> = kinds.split(',').filter_map(SampleKind::from_slug).collect();
    let mut hour = Hour::new(&kinds);
    let (mut quarters, mut windows) = ([0_f64; 4], 0);
    loop {
        let before = seconds(ClockId::ThreadCPUTime);
        let Some(window) = hour.next() else { break };
        rows += window.rows.len();
        samples += window.rows.iter().map(|row| row.count).sum::<u64>();
        generator += seconds(ClockId::ThreadCPUTime) - before;
        store.append(window);
        if let Some(most) = quarters.get_mut(windows * 4 / WINDOWS as usize) {
            *most = most.max(resident("VmRSS:"));
        }
        windows += 1;
    }
    let journal = store.disk().map_or(0, |disk| disk.journal_bytes);
    store.settle();
    let cpu = seconds(ClockId::ProcessCPUTime) - begun - generator;
    let disk = store.disk().unwrap_or_default();
    println!("rows {rows}\nsamples {samples}\ntasks {}\ndepth {:.2}", hour.tasks(), hour.depth());
    println!(
        "cpu {cpu:.3}\npeak {:.1}\nfirst {:.1}\nlast {:.1}",
        resident("VmHWM:"),
        quarters[0],
        quarters[3]
    );
    println!("bytes {}\nblocks {}", disk.bytes, disk.blocks);
    println!("journal {journal}\nfailing {}", disk.failing.len());
}

/// What the writer said: a number for each word.
struct Facts(BTreeMap<String, f64>);

impl Facts {
    fn of(&self, word: &str) -> f64 {
        self.0.get(word).copied().unwrap_or(f64::NAN)
    }
}

/// Has the hour written into a directory, with samples of these kinds.
fn write(dir: &Path, memory_mib: usize, kinds: &[SampleKind]) -> Result<Facts, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.slug()).collect();
    let output = Command::new(program)
        .env(CHILD, dir)
        .env(MEMORY, memory_mib.to_string())
        .env(KINDS, kinds.join(","))
        .output()
        .map_err(|error| format!("cannot start the writer: {error}"))?;
    if !output.status.success() {
        return Err(format!("the writer failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let facts = said.lines().filter_map(|line| line.split_once(' '));
    let facts = facts.filter_map(|(word, number)| Some((word.to_owned(), number.parse().ok()?)));
    let facts = Facts(facts.collect());
    println!(
        "the hour of {}: {} samples, {} rows, {} tasks, mean depth {}; {} blocks, memory for windows {memory_mib} MiB",
        kinds.join(", "),
        facts.of("samples"),
        facts.of("rows"),
        facts.of("tasks"),
        facts.of("depth"),
        facts.of("blocks")
    );
    tables(dir, facts.of("samples"));
    Ok(facts)
}

/// Has the hour written: what it takes.
pub fn run(dir: &Path, memory_mib: usize) -> Result<Vec<Line>, String> {
    let facts = write(dir, memory_mib, &[SampleKind::Cpu])?;
    let (cpu, bytes) = (facts.of("cpu"), facts.of("bytes") / facts.of("samples"));
    Ok(vec![
        Line::once("bytes a stored sample, generated hour", bytes, "bytes", Some(0.5)).beside(3.21),
        Line::once("ingest, CPU seconds", cpu, "s", Some(30.0)).beside(282.0),
        Line::once("ingest, peak resident memory", facts.of("peak"), "MB", Some(128.0)).beside(1900.0),
        Line::once("ingest, share of the hour's 64 cores", cpu / SECONDS / CORES * 100.0, "%", None),
        Line::once("ingest, memory: most in the first quarter", facts.of("first"), "MB", None),
        Line::once("ingest, memory: most in the last quarter", facts.of("last"), "MB", None),
    ])
}

/// The same hour with waits and allocations beside: bytes a sample of all. The figures are printed as facts, too.
pub fn kinds(dir: &Path, memory_mib: usize) -> Result<Vec<Line>, String> {
    let facts = write(dir, memory_mib, &[SampleKind::Cpu, SampleKind::OffCpu, SampleKind::Alloc])?;
    let (bytes, samples) = (facts.of("bytes"), facts.of("samples"));
    println!("fact samples={samples}\nfact bytes={bytes}");
    let what = "bytes a stored sample, generated hour of three kinds";
    Ok(vec![Line::once(what, bytes / samples, "bytes", Some(0.6))])
}

/// Prints what the tables of all blocks take.
fn tables(dir: &Path, samples: f64) {
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    for block in std::fs::read_dir(dir.join("blocks")).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(block.path()).into_iter().flatten().flatten() {
            let bytes = file.metadata().map_or(0, |metadata| metadata.len());
            *sizes.entry(file.file_name().to_string_lossy().into_owned()).or_default() += bytes;
        }
    }
    for (name, bytes) in sizes {
        println!("  {name:<26} {bytes:>10} bytes {:>7.4} a sample", bytes as f64 / samples);
    }
}

/// Bytes a sample of what a daemon has kept.
pub fn real(data_dir: &Path) -> Result<Vec<Line>, String> {
    let store = DiskStore::open(config(&data_dir.join("store"))).map_err(|error| error.to_string())?;
    store.settle();
    let disk = store.disk().unwrap_or_default();
    let Some(range) = store.span() else { return Err("there is no window in it".to_owned()) };
    let query = super::asks::query(range, Vec::new());
    let quality = store.summary(&query).map_err(|error| error.to_string())?.quality;
    println!(
        "real data: {} samples, {} windows, {} blocks, {} bytes",
        quality.samples,
        store.usage().windows,
        disk.blocks,
        disk.bytes
    );
    tables(&data_dir.join("store"), quality.samples as f64);
    let figure = disk.bytes as f64 / quality.samples as f64;
    Ok(vec![Line::once("bytes a stored sample, real data", figure, "bytes", Some(0.5))])
}
