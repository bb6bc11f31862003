//! Kills at random moments while a store is written: every window that was said to be kept must be there.
//!
//! A writer appends windows (parts of 300 s, so that blocks are written all the time) and says the number of each
//! after it; it is killed with SIGKILL. Then the store is opened: not a window less, not a sample more or less,
//! nothing set aside.

use super::figures::Line;
use super::hour::{BASE, Random};
use super::ingest::config;
use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSetBuilder, LostCounts, Row, SampleKind, Stack, StackEnd, TimeRange,
    WallTime, Window,
};
use emberscope_store::{DiskStore, DiskStoreConfig, Store};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Says to a process of this program that it is the one that is killed, and where it writes.
pub const CHILD: &str = "EMBERSCOPE_BENCH_KILLED";
/// Kills of one store, which is read as a whole after each; then a new one.
const ROUNDS: u32 = 50;
const SECOND: u64 = 1_000_000_000;

/// The n-th window, and its samples.
fn nth(n: u64) -> (Window, u64) {
    let row = |i: u64| {
        let set = LabelSetBuilder::new().set(LabelKey::App, "app-1").set(LabelKey::Pid, (i % 4).to_string());
        let set = set.set(LabelKey::Task, (n + i % 6).to_string());
        let frame = |depth: u64| {
            Arc::new(Frame::new(FrameKind::JavaCompiled, format!("a.B.m{}", (n + i) % (depth + 7)), ""))
        };
        let count = 1 + (n + i) % 9;
        Row {
            labels: Arc::new(set.build()),
            stack: Arc::new(Stack { frames: (0..20).map(frame).collect(), end: StackEnd::Root }),
            kind: SampleKind::Cpu,
            count,
            weight: count * 10_101_010 + i % 3,
        }
    };
    let rows: Vec<Row> = (0..20).map(row).collect();
    let samples = rows.iter().map(|row| row.count).sum();
    let from = BASE + n * 10 * SECOND;
    let range = TimeRange { from: WallTime(from), until: WallTime(from + 10 * SECOND) };
    let (ledger, processes, lost) = (Vec::new(), Vec::new(), LostCounts::default());
    (Window { range, rows, ledger, pauses: Vec::new(), processes, lost, partial: false }, samples)
}

fn busy(dir: &Path) -> DiskStoreConfig {
    DiskStoreConfig { block_length: Duration::from_secs(300), ..config(dir) }
}

/// Appends and says so, until it is killed.
pub fn child(dir: &Path) -> ! {
    let store = match DiskStore::open(busy(dir)) {
        Ok(store) => store,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    };
    let mut out = std::io::stdout();
    let mut n = store.usage().windows as u64;
    loop {
        store.append(nth(n).0);
        if writeln!(out, "{n}").and_then(|()| out.flush()).is_err() {
            std::process::exit(1);
        }
        n += 1;
        // A kill meets an append, a block being written, or neither.
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Kills so many writers, one after the other.
pub fn run(dir: &Path, times: u32) -> Result<Vec<Line>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let (mut random, mut said, mut before, mut kept, mut blocks) = (Random(1), 0, 0, 0, 0);
    let (mut lost, mut changed, mut unclean) = (0_u64, 0_u32, 0_u32);
    let mut samples: Vec<u64> = Vec::new();
    for round in 0..times {
        let dir = &dir.join((round / ROUNDS).to_string());
        if round % ROUNDS == 0 {
            (said, before, samples) = (0, 0, Vec::new());
            std::fs::create_dir_all(dir)
                .map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
        }
        let mut child = Command::new(&program)
            .env(CHILD, dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start the writer: {error}"))?;
        let output = child.stdout.take().map(BufReader::new);
        let reader = std::thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| output.lines().map_while(Result::ok));
            lines.filter_map(|line| line.parse::<u64>().ok()).last()
        });
        std::thread::sleep(Duration::from_micros(5_000 + random.below(40_000)));
        let killed = child.kill().and_then(|()| child.wait());
        killed.map_err(|error| format!("cannot kill the writer: {error}"))?;
        if let Ok(Some(last)) = reader.join() {
            said = last + 1;
        }
        let store = match DiskStore::open(busy(dir)) {
            Ok(store) => store,
            Err(error) => return Err(format!("the store does not open after a kill: {error}")),
        };
        let windows = store.usage().windows as u64;
        lost += said.saturating_sub(windows);
        while (samples.len() as u64) < windows {
            samples.push(nth(samples.len() as u64).1);
        }
        let range = TimeRange { from: WallTime(BASE), until: WallTime(BASE + windows * 10 * SECOND) };
        let seen = store.merge(&super::asks::query(range, Vec::new())).map_err(|error| error.to_string())?;
        let sum: u64 = samples.iter().take(windows as usize).sum();
        let right = seen.quality.samples == sum
            && seen.tree.nodes.first().is_some_and(|root| root.total_count == sum)
            && windows <= said + 1;
        changed += u32::from(!right);
        kept += windows.saturating_sub(before);
        // One may have been appended and not been said any more.
        (said, before) = (windows, windows);
        let disk = store.disk().unwrap_or_default();
        unclean += u32::from(disk.set_aside > 0);
        if round % ROUNDS == ROUNDS - 1 || round + 1 == times {
            blocks += disk.blocks;
        }
    }
    println!("{times} kills: {kept} windows kept, {blocks} blocks");
    let line = |what: &str, count: f64| Line { n: times as usize, ..Line::once(what, count, "", Some(0.0)) };
    Ok(vec![
        line("kill -9: closed windows lost", lost as f64),
        line("kill -9: opens with another sum", f64::from(changed)),
        line("kill -9: opens that set something aside", f64::from(unclean)),
    ])
}
