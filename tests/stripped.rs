//! A machine as production has them: a C library and a program without symbols, and no debug files. What is left names
//! where threads start, `main`, and the functions that the loader chose; the rest is one frame a function.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Here, Running, skip};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Half of the time each: moving memory and measuring a text, on the main thread and on another one.
const SOURCE: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static char text[1 << 16], other[1 << 16];
static volatile size_t sum;
__attribute__((noinline)) static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) static void moves(void) {
    for (int i = 0; i < 200; i++) memmove(other + i % 7, text, sizeof text - 8);
}
__attribute__((noinline)) static void measures(void) {
    for (int i = 0; i < 200; i++) sum += strlen(text);
}
static void *work(void *none) {
    double end = now() + 300;
    while (now() < end) {
        double from = now();
        while (now() - from < 0.01) moves();
        from = now();
        while (now() - from < 0.01) measures();
    }
    return none;
}
int main(void) {
    memset(text, 'x', sizeof text - 1);
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    work(0);
    return 0;
}
"#;

fn run(program: &str, arguments: &[&str], dir: &Path) -> Result<()> {
    let output =
        Command::new(program).args(arguments).current_dir(dir).output().context(program.to_owned())?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// This machine's C library without what leads to its symbols, in `dir`.
fn bare_library(dir: &Path) -> Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let path =
        maps.lines().find_map(|line| line.split_whitespace().nth(5).filter(|p| p.ends_with("/libc.so.6")));
    std::fs::copy(path.context("no libc.so.6 is mapped")?, dir.join("libc.so.6"))?;
    let gone = ["--strip-all", "-R", ".note.gnu.build-id", "-R", ".gnu_debuglink", "libc.so.6"];
    run("objcopy", &gone, dir)
}

#[test]
fn functions_of_a_machine_without_symbols() -> Result<()> {
    const TEST: &str = "functions_of_a_machine_without_symbols";
    let Some(here) = Here::or_skip(TEST) else { return Ok(()) };
    if !cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
        skip(TEST, "what code tells is known of x86-64 and glibc");
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    bare_library(dir.path())?;
    std::fs::write(dir.path().join("p.c"), SOURCE)?;
    run("cc", &["-O2", "-fomit-frame-pointer", "-s", "-pthread", "-o", "p", "p.c"], dir.path())?;
    let daemon = here.daemon(dir.path(), &["--window", "2s"])?;
    let mut command = Command::new(dir.path().join("p"));
    let program = Running::start("p", command.env("LD_LIBRARY_PATH", dir.path()), &dir.path().join("p.log"))?;
    let begun = Instant::now();
    let folded = loop {
        // Unwind tables of a library that was never met take a moment to make, more on a busy machine.
        let asked = format!("/api/v1/flamegraph?pid={}&format=folded&from=-10s", program.pid());
        let reply = daemon.get(&asked)?;
        let all: u64 = reply.body.lines().filter_map(count).sum();
        let cut: u64 = reply.body.lines().filter(|line| !is_rooted(line)).filter_map(count).sum();
        if all > 400 && cut * 100 <= all {
            break reply.body;
        }
        ensure!(begun.elapsed() < Duration::from_secs(120), "{all} samples, {cut} cut: {}", reply.body);
        std::thread::sleep(Duration::from_millis(500));
    };
    let mut leaves: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut all, mut rooted, mut nameless) = (0, 0, BTreeMap::<&str, u64>::new());
    for line in folded.lines() {
        let (stack, n) =
            line.rsplit_once(' ').zip(count(line)).map(|((stack, _), n)| (stack, n)).context("a line")?;
        let frames: Vec<&str> = stack.split(';').collect();
        all += n;
        rooted += if is_rooted(line) { n } else { 0 };
        // The kernel's half is above it.
        let leaf = frames.iter().copied().find(|frame| ["memmove", "strlen"].contains(frame));
        let leaf = leaf.or(frames.last().copied()).unwrap_or_default();
        *leaves.entry(leaf).or_default() += n;
        for frame in frames.iter().filter(|frame| frame.starts_with("libc.so.6+") || frame.starts_with("p+"))
        {
            *nameless.entry(frame).or_default() += n;
        }
    }
    let share = |name: &str| leaves.get(name).copied().unwrap_or(0) as f64 / all as f64;
    let (moves, measures) = (share("memmove"), share("strlen"));
    println!(
        "{all} samples: memmove {moves:.3}, strlen {measures:.3}, rooted {rooted}; by bounds {nameless:?}"
    );
    ensure!(moves > 0.3 && measures > 0.3 && moves + measures > 0.9, "{leaves:?}");
    ensure!(rooted * 100 >= all * 99, "{rooted} of {all} begin with main or where a thread starts");
    // `moves`, `measures`, `work`: each one frame wherever in it a sample was (`now` may be in line, or not sampled).
    let own = nameless.keys().filter(|frame| frame.starts_with("p+")).count();
    ensure!((3..=5).contains(&own), "{nameless:?}");
    ensure!(nameless.keys().all(|frame| frame.starts_with("p+")), "of the C library: {nameless:?}");
    let status = daemon.json("/api/v1/status")?;
    let named = |by: &str| status["functions_named"][by].as_u64().unwrap_or(0);
    println!("functions named: {}", status["functions_named"]);
    ensure!(
        named("choice") >= 2 && named("part") >= 3 && named("bounds") >= 3,
        "{}",
        status["functions_named"]
    );
    daemon.stop()?;
    Ok(())
}

/// Whether a stack begins where its thread does.
fn is_rooted(line: &str) -> bool {
    ["_start;", "[thread start];"].iter().any(|start| line.starts_with(start))
}

/// How often a line of folded stacks was seen.
fn count(line: &str) -> Option<u64> {
    line.rsplit_once(' ')?.1.parse().ok()
}
