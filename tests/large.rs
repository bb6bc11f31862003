//! A library as large as those that Python and Spark's native engines load: unwind information and symbols that are over what is
//! read at once. Of its code what runs is walked and named.

use anyhow::{Context as _, Result, ensure};
use emberscope_target::elf::Headers;
use emberscope_tests::{Here, Running, skip};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::launch::large::{library, name};

/// Calls of the chain, each to a function that is 0.7 MB further: no two are in one part.
const CALLS: usize = 20;
const STEP: usize = 1_400;

const MAIN: &str = "void large(void);\nint main(void) { for (;;) large(); }\n";

/// What a function of the library does: those of the chain call the next, and the last one works.
fn body(function: usize) -> String {
    let in_chain = function.is_multiple_of(STEP) && function / STEP < CALLS;
    match in_chain.then(|| name_of_next(function)) {
        Some(Some(next)) => format!("call {next}"),
        Some(None) => "movl $10000000, %eax\n1: decl %eax\njnz 1b".to_owned(),
        None => "nop".to_owned(),
    }
}

fn name_of_next(function: usize) -> Option<String> {
    (function / STEP + 1 < CALLS).then(|| name(function + STEP))
}

fn run(program: &str, arguments: &[&str], dir: &Path) -> Result<()> {
    let output =
        Command::new(program).args(arguments).current_dir(dir).output().context(program.to_owned())?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[test]
fn a_large_library_is_walked_and_named_where_it_runs() -> Result<()> {
    const TEST: &str = "a_large_library_is_walked_and_named_where_it_runs";
    let Some(here) = Here::or_skip(TEST) else { return Ok(()) };
    if !cfg!(target_arch = "x86_64") {
        skip(TEST, "the library is written in x86-64's assembler");
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let library = library(dir.path(), 0, body)?;
    std::fs::write(dir.path().join("p.c"), MAIN)?;
    run("cc", &["-O1", "-o", "p", "p.c", "-L.", "-llarge", "-Wl,-rpath,$ORIGIN"], dir.path())?;
    let file = File::open(library)?;
    let headers = Headers::read(&file, file.metadata()?.len())?;
    let symbols = headers.symbol_tables().iter().map(|table| table.symbols.1 + table.strings.1).sum::<u64>();
    ensure!(symbols > 20 << 20, "{symbols} bytes of symbols are no large library's");
    let frames = headers.section(&file, ".eh_frame", u64::MAX).context("no .eh_frame")?.len();
    ensure!(frames > 4 << 20, "{frames} bytes of unwind information are no large library's");

    let daemon = here.daemon(dir.path(), &["--window", "2s"])?;
    let mut command = Command::new(dir.path().join("p"));
    let program = Running::start("p", &mut command, &dir.path().join("p.log"))?;
    let chain: Vec<String> = (0..CALLS).map(|call| name(call * STEP)).collect();
    let whole = format!("main;{}", chain.join(";"));
    let begun = Instant::now();
    loop {
        // Each call's part is made when it was met, the innermost first.
        let asked = format!("/api/v1/flamegraph?pid={}&format=folded&from=-6s", program.pid());
        let reply = daemon.get(&asked)?;
        let count = |line: &str| line.rsplit_once(' ').and_then(|(_, n)| n.parse::<u64>().ok()).unwrap_or(0);
        let all: u64 = reply.body.lines().map(count).sum();
        let right: u64 = reply.body.lines().filter(|line| line.contains(&whole)).map(count).sum();
        if all > 300 && right * 100 >= all * 99 {
            break;
        }
        let wrong = reply.body.lines().filter(|line| !line.contains(&whole)).max_by_key(|line| count(line));
        let wrong = wrong.map(|line| line.replace('n', ""));
        ensure!(begun.elapsed() < Duration::from_secs(120), "{right} of {all}: {wrong:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
    // What is held for it is of what ran.
    let status: serde_json::Value = serde_json::from_str(&daemon.get("/api/v1/status")?.body)?;
    let held = status["unwind_tables"]["largest"].as_array().cloned().unwrap_or_default();
    let large =
        held.iter().find(|held| held["file"].as_str().is_some_and(|file| file.ends_with("liblarge.so")));
    let bytes = large.and_then(|held| held["bytes"].as_u64()).with_context(|| format!("{held:?}"))?;
    ensure!(bytes < 2 << 20, "{bytes} bytes of tables for {CALLS} functions");
    Ok(())
}
