//! `fuzz`: compiles the fuzz targets with the compiler that is there, and runs each in turn.
//!
//! In: profiler/fuzz. Out: a line a target (runs, coverage, memory, findings), the corpus in the cache directory, what
//! crashes in target/fuzz/artifacts. No nightly compiler and no cargo-fuzz: the marks that libFuzzer follows are flags
//! of every rustc (`MARKS`, as cargo-fuzz passes them), and a C++ compiler makes libFuzzer. AddressSanitizer wants a
//! nightly; what it would find lies in our few `unsafe` blocks and in C, and CONTRIBUTING.md says how to run with it.
//! The tests run the same targets without libFuzzer (profiler/tests/fuzz_targets.rs).
//!
//! Limits: `MEMORY_MB` a target, `TIMEOUT_S` an input, `CORPUS_FILES` and `CORPUS_BYTES` of each corpus.

mod figures;

use crate::{places, step};
use anyhow::{Context as _, Result, bail};
use figures::Figures;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Coverage counters at every edge, where they are, and what is compared with what.
const MARKS: [&str; 7] = [
    "--cfg",
    "fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// More is a finding: the daemon has 256 MB for all it does.
const MEMORY_MB: u32 = 1024;
/// An input that takes longer is a finding.
const TIMEOUT_S: u32 = 10;
/// Over either a corpus is made smaller: inputs that add no coverage go, then the largest.
const CORPUS_FILES: usize = 4000;
const CORPUS_BYTES: u64 = 16 << 20;
/// What to run, and for how long.
#[derive(clap::Args)]
pub struct Options {
    /// Time for all targets together, in hours: each gets an equal part
    hours: f64,
    /// Only these targets
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// Runs them.
pub fn run(options: &Options) -> Result<()> {
    if let Some(why) = missing() {
        bail!("the fuzz targets cannot be compiled: {why}");
    }
    let mut targets = targets()?;
    if let Some(unknown) = options.only.iter().find(|only| !targets.contains(only)) {
        bail!("there is no fuzz target {unknown}: {}", targets.join(", "));
    }
    targets.retain(|target| options.only.is_empty() || options.only.contains(target));
    let each = Duration::try_from_secs_f64(options.hours * 3600.0 / targets.len() as f64)
        .context("hours must be a number above 0")?;
    let corpora = places::cache()?.join("fuzz");
    fuzz(&targets, &Plan { corpora, each: each.max(Duration::from_secs(1)) })
}

/// How each target is run.
struct Plan {
    /// Directory of the corpora.
    corpora: PathBuf,
    /// How long each runs.
    each: Duration,
}

/// What this machine lacks.
fn missing() -> Option<String> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let there = Command::new(&compiler).arg("--version").output().is_ok_and(|done| done.status.success());
    (!there)
        .then(|| format!("libFuzzer wants a C++ compiler, and there is no {compiler}: apt-get install g++"))
}

/// The names of the files in profiler/fuzz/fuzz_targets, which are the programs' names.
pub fn targets() -> Result<Vec<String>> {
    let dir = places::workspace().join("profiler/fuzz/fuzz_targets");
    let files = std::fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()))?;
    let name = |path: PathBuf| Some(path.file_name()?.to_str()?.strip_suffix(".rs")?.to_owned());
    let mut names: Vec<String> = files.flatten().filter_map(|entry| name(entry.path())).collect();
    names.sort();
    Ok(names)
}

fn fuzz(targets: &[String], plan: &Plan) -> Result<()> {
    let programs = build()?;
    let (count, seconds) = (targets.len(), plan.each.as_secs());
    println!("each of {count} targets for {seconds} s, the corpus in {}", plan.corpora.display());
    println!("{}", Figures::HEAD);
    let mut findings = Vec::new();
    for target in targets {
        let found = one(&programs.join(target), target, plan)?;
        println!("{}", found.row(target));
        findings.extend(found.findings);
    }
    if !findings.is_empty() {
        bail!("{} findings: {}", findings.len(), findings.join(", "));
    }
    Ok(())
}

/// Compiles all of them: the directory of the programs.
fn build() -> Result<PathBuf> {
    let machine = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    // What the machine asks for besides (a linker, say): cargo takes its flags from one place alone.
    let own = format!("CARGO_TARGET_{}_RUSTFLAGS", machine.replace('-', "_").to_uppercase());
    let own = std::env::var(own).unwrap_or_default();
    let flags: Vec<&str> = MARKS.into_iter().chain(own.split_whitespace()).collect();
    let dir = places::target().join("fuzz");
    let mut cargo = places::cargo();
    cargo
        .current_dir(places::workspace().join("profiler/fuzz"))
        .args(["build", "--locked", "--release", "--bins", "--target", &machine])
        // With a target named these are not for build scripts and macros.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("CARGO_TARGET_DIR", &dir)
        .env_remove("RUSTFLAGS");
    // They have a lock file of their own.
    let mend = "the compiler's message is above; where the lock file needs an update: \
                `cargo metadata --manifest-path profiler/fuzz/Cargo.toml`, and commit profiler/fuzz/Cargo.lock";
    step::run("building the fuzz targets (the first time: ten minutes)", &mut cargo, mend)?;
    Ok(dir.join(machine).join("release"))
}

fn one(program: &Path, target: &str, plan: &Plan) -> Result<Figures> {
    let (corpus, artifacts) =
        (plan.corpora.join(target), places::target().join("fuzz/artifacts").join(target));
    for dir in [&corpus, &artifacts] {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    }
    let mut command = Command::new(program);
    command
        .arg(&corpus)
        .arg(format!("-max_total_time={}", plan.each.as_secs()))
        .arg(format!("-rss_limit_mb={MEMORY_MB}"))
        .arg(format!("-timeout={TIMEOUT_S}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-print_final_stats=1", "-verbosity=1"])
        // libFuzzer says where the artifacts lie; it works in no directory of ours.
        .current_dir(places::target());
    let begun = Instant::now();
    let output = command.output().with_context(|| format!("starting {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let log = artifacts.with_extension("log");
    std::fs::write(&log, said.as_bytes()).with_context(|| format!("writing {}", log.display()))?;
    let mut figures = Figures::read(&said, begun.elapsed());
    if !output.status.success() && figures.findings.is_empty() {
        figures.findings.push(format!("{target} ended with {}: {}", output.status, log.display()));
    }
    shrink(program, &corpus)?;
    Ok(figures)
}

/// Files of a corpus with their sizes.
fn held(corpus: &Path) -> Vec<(u64, PathBuf)> {
    let files = std::fs::read_dir(corpus).into_iter().flatten().flatten();
    files.filter_map(|file| Some((file.metadata().ok()?.len(), file.path()))).collect()
}

fn too_much(files: &[(u64, PathBuf)]) -> bool {
    files.len() > CORPUS_FILES || files.iter().map(|(bytes, _)| bytes).sum::<u64>() > CORPUS_BYTES
}

/// Keeps a corpus within its limits.
fn shrink(program: &Path, corpus: &Path) -> Result<()> {
    if !too_much(&held(corpus)) {
        return Ok(());
    }
    let fewer = corpus.with_extension("fewer");
    let _ = std::fs::remove_dir_all(&fewer);
    std::fs::create_dir_all(&fewer).with_context(|| format!("creating {}", fewer.display()))?;
    let merged = Command::new(program).arg("-merge=1").arg(&fewer).arg(corpus).output();
    if merged.is_ok_and(|done| done.status.success()) && !held(&fewer).is_empty() {
        std::fs::remove_dir_all(corpus).with_context(|| format!("removing {}", corpus.display()))?;
        std::fs::rename(&fewer, corpus).with_context(|| format!("renaming {}", fewer.display()))?;
    }
    let mut files = held(corpus);
    files.sort();
    while too_much(&files) {
        if let Some((_, largest)) = files.pop() {
            std::fs::remove_file(&largest).with_context(|| format!("removing {}", largest.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file without its program would not be compiled, nor run.
    #[test]
    fn every_target_is_a_program() {
        let manifest = std::fs::read_to_string(places::workspace().join("profiler/fuzz/Cargo.toml")).unwrap();
        let targets = targets().unwrap();
        assert!(targets.len() >= 16, "{targets:?}");
        for target in &targets {
            let program = format!("[[bin]]\nname = \"{target}\"\npath = \"fuzz_targets/{target}.rs\"\n");
            assert!(manifest.contains(&program), "{target}");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
    }

    #[test]
    fn a_corpus_stays_within_its_limits() {
        let dir = std::env::temp_dir().join(format!("emberscope-corpus-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        for (name, bytes) in [("a", CORPUS_BYTES / 2), ("b", CORPUS_BYTES / 4), ("c", CORPUS_BYTES / 2 + 1)] {
            std::fs::File::create(dir.join(name)).unwrap().set_len(bytes).unwrap();
        }
        // No such program: nothing is merged, and the largest goes.
        shrink(Path::new("/no/such/program"), &dir).unwrap();
        let mut left: Vec<_> =
            held(&dir).into_iter().map(|(_, path)| path.file_name().unwrap().to_owned()).collect();
        left.sort();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(left, ["a", "b"]);
    }
}
