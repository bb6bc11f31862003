//! Programs of musl, the C library of Alpine's images, which has no unwind information: native ones, linked to it and with it,
//! CPython, and a JVM where one is named. What works in the C library is walked by its code, to where the thread starts.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, Running, required, skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::setup::packages;

/// Works in the C library, on the main thread and on another: sorting, copying, printing, memory, system calls.
const SOURCE: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
static volatile unsigned long sink;
static char a[1 << 20], b[1 << 20];
NOINLINE void leaf(void) { for (int i = 0; i < 100000; i++) sink += i; }
NOINLINE void recurse(int n) { if (n) recurse(n - 1); else leaf(); sink++; }
NOINLINE int cmp(const void *x, const void *y) { for (int i = 0; i < 100; i++) sink += i; return *(int *)x - *(int *)y; }
NOINLINE void sorts(void) { int v[3000]; for (int i = 0; i < 3000; i++) v[i] = rand(); qsort(v, 3000, sizeof *v, cmp); sink++; }
NOINLINE void copies(void) { for (int i = 0; i < 20; i++) memcpy(a, b, sizeof a); sink += a[5]; }
NOINLINE void prints(void) { char t[200]; for (int i = 0; i < 3000; i++) snprintf(t, sizeof t, "%d %f %s", i, i / 3.0, "abc"); sink += t[0]; }
NOINLINE void allocs(void) { void *p[100]; for (int k = 0; k < 300; k++) { for (int i = 0; i < 100; i++) p[i] = malloc(100 + i * 7); for (int i = 0; i < 100; i++) free(p[i]); } sink++; }
NOINLINE void reads(void) { char t[10]; for (int i = 0; i < 2000; i++) sink += read(0, t, 0) + getppid(); }
NOINLINE void all(void) { recurse(20); sorts(); copies(); prints(); allocs(); reads(); sink++; }
static void *thread(void *none) { for (;;) all(); return none; }
int main(void) { pthread_t t; pthread_create(&t, 0, thread, 0); for (;;) all(); }
"#;
/// What `all` calls.
const CALLED: [&str; 6] = ["recurse", "sorts", "copies", "prints", "allocs", "reads"];

/// Python's own functions, and those of the standard library in C, on the main thread and on another.
const PYTHON: &str = "import json, threading\n\
def calls(x):\n    for i in range(30000): x = x * 3 % 1000003\n    return x\n\
def both():\n    calls(5); sorted(range(2000), key=lambda v: -v * 7 % 13); json.dumps(list(range(500)))\n\
def run():\n    while True: both()\n\
threading.Thread(target=run, daemon=True).start()\nrun()\n";
/// What Python 3.13 of a newer musl wants of it, and Debian's lacks.
const SHIM: &str = "#define _GNU_SOURCE\n#include <sys/uio.h>\n\
ssize_t preadv2(int f, const struct iovec *v, int n, off_t o, int x) { return preadv(f, v, n, o); }\n\
ssize_t pwritev2(int f, const struct iovec *v, int n, off_t o, int x) { return pwritev(f, v, n, o); }\n";

const JAVA: &str = "public class Musl {
    static long sink;
    static long third(long x) { for (int i = 0; i < 3000; i++) x = x * 31 + i; return x; }
    static void both() { for (int i = 0; i < 100; i++) sink += third(i); }
    static void run() { StringBuilder s = new StringBuilder(); for (;;) { both(); s.append(Math.sin(sink)); s.setLength(0); } }
    public static void main(String[] none) { new Thread(Musl::run).start(); run(); }
}";

/// The least part of all samples whose stacks are whole, of a thousand.
const WHOLE: u64 = 995;

fn compile(source: &str, more: &[&str], dir: &Path, name: &str) -> Result<PathBuf> {
    let (file, made) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&file, source)?;
    let mut cc = Command::new("musl-gcc");
    cc.args(["-O2", "-fno-optimize-sibling-calls", "-o"]).arg(&made).arg(&file).args(more);
    let output = cc.output().context("musl-gcc")?;
    ensure!(output.status.success(), "musl-gcc: {}", String::from_utf8_lossy(&output.stderr));
    Ok(made)
}

/// None after saying that a test is skipped.
fn here(test: &str) -> Option<Here> {
    let here = Here::or_skip(test)?;
    if !cfg!(target_arch = "x86_64") {
        skip(test, "code without unwind information is read on x86-64 alone: arm64's has frame records");
        return None;
    }
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        skip(test, "there is no musl-gcc (Debian's musl-tools): ./x setup installs it");
        return None;
    }
    Some(here)
}

/// Waits until the stacks of a program are whole.
fn are_whole(daemon: &Daemon, program: &Running, is_whole: impl Fn(&str) -> bool) -> Result<()> {
    let begun = Instant::now();
    loop {
        let asked = format!("/api/v1/flamegraph?pid={}&format=folded&from=-10s", program.pid());
        let reply = daemon.get(&asked)?;
        let (mut all, mut whole, mut others) = (0, 0, BTreeMap::<&str, u64>::new());
        for line in reply.body.lines() {
            let (stack, count) = line.rsplit_once(' ').context("no count")?;
            let count: u64 = count.parse()?;
            all += count;
            if is_whole(stack) {
                whole += count;
            } else {
                *others.entry(stack).or_default() += count;
            }
        }
        if all > 800 && whole * 1000 >= all * WHOLE {
            println!("{whole} of {all} stacks are whole");
            return Ok(());
        }
        let most = others.iter().max_by_key(|(_, count)| **count);
        ensure!(begun.elapsed() < Duration::from_secs(120), "{whole} of {all} stacks are whole: {most:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn native_programs_of_musl() -> Result<()> {
    let Some(here) = here("native_programs_of_musl") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &["--window", "2s"])?;
    for (name, flags) in [("linked", &[][..]), ("static", &["-static"])] {
        let program = compile(SOURCE, flags, dir.path(), name)?;
        let program = Running::start(name, &mut Command::new(program), &dir.path().join("program.log"))?;
        let recursion = format!("{}leaf", "recurse;".repeat(21));
        are_whole(&daemon, &program, |stack| {
            let below = stack.split_once("main;all;").or_else(|| stack.split_once("thread;all;"));
            let Some((above, below)) = below else {
                // Between two calls.
                return stack.ends_with("main;all") || stack.ends_with("thread;all");
            };
            // Nothing is in between, and nothing is above the functions that threads start with.
            let starts = above.split(';').filter(|frame| !frame.is_empty()).count() <= 2;
            let called = below.split(';').next().unwrap_or_default();
            starts && CALLED.contains(&called) && (!below.contains("leaf") || below.starts_with(&recursion))
        })
        .context(name)?;
    }
    ensure!(daemon.stop()?.success());
    Ok(())
}

#[test]
fn python_of_musl() -> Result<()> {
    const TEST: &str = "python_of_musl";
    let Some(here) = here(TEST) else { return Ok(()) };
    let Some(root) = packages::musl_python_installed() else {
        skip(TEST, "no CPython of musl has been fetched: ./x setup does");
        return Ok(());
    };
    let dir = tempfile::tempdir()?;
    let script = dir.path().join("p.py");
    std::fs::write(&script, PYTHON)?;
    let shim = compile(SHIM, &["-shared", "-fPIC"], dir.path(), "shim.so")?;
    let daemon = here.daemon(dir.path(), &["--window", "2s"])?;
    let mut python = Command::new(root.join("bin/python3.13"));
    python.arg(script).env("LD_LIBRARY_PATH", root.join("lib")).env("LD_PRELOAD", shim);
    let program = Running::start("python3.13", &mut python, &dir.path().join("program.log"))?;
    are_whole(&daemon, &program, |stack| {
        let main = stack.contains("[process start];") && stack.contains("<module> (p.py);run (p.py)");
        let other =
            stack.contains("[thread start];") && stack.contains("Thread.run (threading.py);run (p.py)");
        main || other
    })?;
    ensure!(daemon.stop()?.success());
    Ok(())
}

/// No registry that the set-up asks has a JVM of musl with a free licence.
#[test]
fn java_of_musl() -> Result<()> {
    const TEST: &str = "java_of_musl";
    let Some(here) = here(TEST) else { return Ok(()) };
    let Some(java) = required(TEST, "EMBERSCOPE_JAVA_MUSL") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("Musl.java"), JAVA)?;
    let mut javac = Command::new(here.java.join("bin/javac"));
    let output = javac.args(["-d", ".", "Musl.java"]).current_dir(dir.path()).output()?;
    ensure!(output.status.success(), "javac: {}", String::from_utf8_lossy(&output.stderr));
    let daemon = here.daemon(dir.path(), &["--window", "2s"])?;
    let mut command = Command::new(java.join("bin/java"));
    command.arg("-cp").arg(dir.path()).arg("Musl");
    let program = Running::start("a JVM of musl", &mut command, &dir.path().join("program.log"))?;
    are_whole(&daemon, &program, |stack| {
        let started = stack.split(';').take(2).any(|frame| frame == "[thread start]");
        // Its own threads beside those of the program.
        started && (stack.contains(";Musl.run") || !stack.contains("Musl."))
    })?;
    ensure!(daemon.stop()?.success());
    Ok(())
}
