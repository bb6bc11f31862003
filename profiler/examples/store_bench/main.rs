//! What the store takes and how soon it answers: `cargo xtask bench store` runs this.
//!
//! In: nothing, or a store's directory to be told of. Out: a table. The hour of `hour` is written by a process of
//! its own (its memory and CPU time are the figures of ingest), asked by another, and a writer is killed a
//! thousand times. All figures are of the store: no HTTP, no rendering.

mod asks;
mod beside;
mod figures;
mod hour;
mod ingest;
mod kills;
mod week;

use figures::Line;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What the command line asks for.
struct Options {
    dir: Option<PathBuf>,
    kills: u32,
    times: u64,
    memory_mib: usize,
    cache_mib: usize,
    only: Option<String>,
    real: Option<PathBuf>,
}

const USAGE: &str = "bench store [--only ingest|asks|kinds|kills|real|week] [--dir DIR] [--kills 1000] [--times 100]\n\
    \x20           [--memory-mib 20] [--cache-mib 12] [--real DATA-DIR]\n\
    --dir     where the hour is written and left; one that is there is asked as it is\n\
    --real    the data directory of a stopped daemon, for bytes a sample of real data";

fn options() -> Result<Options, String> {
    let mut out =
        Options { dir: None, kills: 1000, times: 100, memory_mib: 20, cache_mib: 12, only: None, real: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value\n{USAGE}"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text} is no number\n{USAGE}"));
        match word.as_str() {
            "--dir" => out.dir = Some(value()?.into()),
            "--kills" => out.kills = number(value()?)? as u32,
            "--times" => out.times = number(value()?)?.max(1),
            "--memory-mib" => out.memory_mib = number(value()?)? as usize,
            "--cache-mib" => out.cache_mib = number(value()?)? as usize,
            "--only" => out.only = Some(value()?),
            "--real" => out.real = Some(value()?.into()),
            _ => return Err(format!("unknown word {word}\n{USAGE}")),
        }
    }
    Ok(out)
}

fn run(options: &Options) -> Result<bool, String> {
    let scratch = std::env::temp_dir().join(format!("emberscope-bench-store-{}", std::process::id()));
    if options.only.as_deref() == Some("week") {
        let dir = options.dir.as_deref().ok_or("week needs --dir, where it is to be written")?;
        return week::write(dir).map(|()| true);
    }
    let dir = options.dir.clone().unwrap_or_else(|| scratch.join("hour"));
    let wants = |what: &str| options.only.as_deref().is_none_or(|only| only == what);
    let mut lines: Vec<Line> = Vec::new();
    if (wants("ingest") || wants("asks")) && !dir.join("blocks").exists() {
        lines.extend(ingest::run(&dir, options.memory_mib)?);
    }
    if wants("asks") {
        lines.extend(asks::run(&dir, options.times, options.cache_mib)?);
    }
    if wants("kinds") {
        lines.extend(ingest::kinds(&scratch.join("kinds"), options.memory_mib)?);
    }
    if wants("kills") {
        lines.extend(kills::run(&scratch.join("kills"), options.kills)?);
    }
    if let Some(real) = options.real.as_deref().filter(|_| wants("real")) {
        lines.extend(ingest::real(real)?);
    }
    let _ = std::fs::remove_dir_all(&scratch);
    Ok(figures::print(&lines))
}

fn main() -> ExitCode {
    // What the processes that are started here are for.
    if let Some(dir) = std::env::var_os(ingest::CHILD) {
        ingest::child(Path::new(&dir));
        return ExitCode::SUCCESS;
    }
    if let Some(dir) = std::env::var_os(kills::CHILD) {
        kills::child(Path::new(&dir));
    }
    match options().and_then(|options| run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("some figures are over their bars");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
