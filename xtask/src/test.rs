//! `test`: every check and every test, and the count of all.
//!
//! A part that fails does not keep the others from running. The last line is `N passed, N failed, N
//! skipped`; before it stand the tests that could not run here, each with its reason, and what the failed ones
//! said. A check that fails (formatting, clippy, rustdoc, licences, the build) counts as one failed. Tests that
//! fail run once more, by themselves, as long as they are few: one that passes then is passed, and is printed as
//! unsteady with what it said.

mod run;

use crate::arch::Arch;
use crate::setup::runtime::{MAJORS, Runtime};
use crate::setup::{self, SparkKit, go, jdk, lint, python};
use crate::{build, check, fuzz, kernels, places, root, step, tally};
use anyhow::{Context as _, Result, anyhow};
use run::Run;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// What to test.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Only the parts named (default: all): checks, unit, e2e
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
    /// Only tests whose name contains this
    filter: Option<String>,
}

/// A part of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Formatting, clippy, rustdoc, licences and sources of dependencies, each fuzz target for some seconds
    Checks,
    /// Tests that need no privilege
    Unit,
    /// Tests on the real kernel, JVMs and Spark, and on the oldest kernel in qemu, with the optimised daemon
    E2e,
}

/// Runs them.
pub fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    let wanted = |part| options.only.is_empty() || options.only.contains(&part);
    let kit = setup::run(&setup::Options { no_lint: !wanted(Part::Checks) })?;
    let skip_log = places::target().join("xtask").join("skips.tsv");
    std::fs::create_dir_all(places::target().join("xtask"))
        .context("creating the directory of the skip log")?;
    std::fs::write(&skip_log, "").with_context(|| format!("emptying {}", skip_log.display()))?;

    let mut run = Run::default();
    // The build comes first: what is compiled later, for the checks too, then has the BPF object inside.
    let mut binary = None;
    if wanted(Part::E2e) {
        run.part("build", || build::run().map(|built| binary = Some(built)));
    }
    if wanted(Part::Checks) {
        for (what, command, mend) in &mut checks()? {
            run.part(what, || step::run(what, command, mend).map(drop));
        }
    }
    let filter = options.filter.as_deref();
    if wanted(Part::Checks) && options.filter.is_none() {
        for arch in Arch::ALL.into_iter().filter(|arch| Arch::own() != Some(*arch)) {
            run.part(&format!("BPF programs for {}", arch.debian()), || check::programs(arch));
        }
        run.may_skip("advisories of dependencies", lint::advisories);
        run.may_skip("fuzz targets, briefly", fuzz::briefly);
    }
    if wanted(Part::Unit) {
        run.tests("unit tests", |again| unit_tests(filter, &skip_log, &kit, again));
        if filter.is_none() {
            run.tests("the registry on real Spark", |again| live_tests(&skip_log, &kit, again));
        }
    }
    if let Some(binary) = binary {
        run.tests("end-to-end tests", |again| e2e_tests(filter, &skip_log, &binary, &kit, again));
        if filter.is_none() {
            run.may_skip("Linux 5.10 in qemu", kernels::oldest);
        }
    }
    let skips = tally::parse_skips(&std::fs::read_to_string(&skip_log).unwrap_or_default());
    run.tally.apply_skips(&skips);
    run.report(&skips, begun)
}

type Check = (&'static str, Command, &'static str);

fn checks() -> Result<Vec<Check>> {
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(places::cargo());
        command.current_dir(places::workspace()).args(arguments);
        command
    };
    let clippy = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let mut rustdoc = cargo(&["doc", "--locked", "--workspace", "--no-deps"]);
    rustdoc.env("RUSTDOCFLAGS", "-D warnings");
    let mut deny = lint::deny()?.ok_or_else(|| anyhow!("cargo-deny is not there: run `./x setup`"))?;
    deny.current_dir(places::workspace()).args(["--locked", "check", "licenses", "bans", "sources"]);
    Ok(vec![
        ("formatting", cargo(&["fmt", "--all", "--check"]), "cargo fmt --all"),
        ("clippy", cargo(&clippy), "mend what clippy says above"),
        ("rustdoc", rustdoc, "mend what rustdoc says above"),
        ("licences, bans and sources of dependencies", deny, "deny.toml says what is allowed and why"),
    ])
}

fn unit_tests(filter: Option<&str>, skip_log: &Path, kit: &SparkKit, again: &[String]) -> Command {
    let mut command = Command::new(places::cargo());
    command.args(["test", "--locked", "--workspace", "--exclude", "emberscope-tests", "--no-fail-fast"]);
    common(&mut command, filter, skip_log);
    with_spark(&mut command, kit);
    command.arg("--");
    if filter.is_none() {
        command.args(["--skip", LIVE]);
    }
    only(&mut command, again);
    command
}

/// The registry's tests that look at a real driver and its executors: each starts several JVMs, so one at
/// a time.
const LIVE: &str = "process::live";

fn live_tests(skip_log: &Path, kit: &SparkKit, again: &[String]) -> Command {
    let mut command = Command::new(places::cargo());
    command.args(["test", "--locked", "--package", "emberscope", "--lib"]);
    common(&mut command, again.is_empty().then_some(LIVE), skip_log);
    with_spark(&mut command, kit);
    command.args(["--", "--test-threads", "1"]);
    only(&mut command, again);
    command
}

fn with_spark(command: &mut Command, kit: &SparkKit) {
    command.env("JAVA_HOME", &kit.jdk.home);
    if let Some(home) = python::spark_home(&kit.venv) {
        command.env("SPARK_HOME", home);
    }
}

fn e2e_tests(
    filter: Option<&str>,
    skip_log: &Path,
    binary: &Path,
    kit: &SparkKit,
    again: &[String],
) -> Command {
    let mut command = Command::new(places::cargo());
    command.args(["test", "--locked", "--package", "emberscope-tests", "--no-fail-fast"]);
    common(&mut command, filter, skip_log);
    command
        .env("EMBERSCOPE_BIN", binary)
        .env("EMBERSCOPE_VENV", &kit.venv)
        .env("EMBERSCOPE_JAVA", &kit.jdk.home)
        // They share the machine's cores and, each in its turn, profile all of it.
        .env("RUST_TEST_THREADS", "1");
    for major in MAJORS {
        if let Some(home) = Runtime::installed(major) {
            command.env(format!("EMBERSCOPE_JAVA{major}"), home);
        }
    }
    for jdk in jdk::all() {
        command.env(format!("EMBERSCOPE_JAVA{}", jdk.major), &jdk.home);
    }
    if let Some(venv) = python::installed(python::NEWEST_PYSPARK) {
        command.env("EMBERSCOPE_VENV_NEWEST", venv);
    }
    if !root::is_root() && root::available() {
        let architecture = std::env::consts::ARCH.to_uppercase();
        command.env(format!("CARGO_TARGET_{architecture}_UNKNOWN_LINUX_GNU_RUNNER"), "sudo -E --");
    }
    command.arg("--");
    only(&mut command, again);
    command
}

/// Only the tests of these names, behind cargo's `--`; of none, all.
fn only(command: &mut Command, names: &[String]) {
    if !names.is_empty() {
        command.arg("--exact").args(names);
    }
}

fn common(command: &mut Command, filter: Option<&str>, skip_log: &Path) {
    command.current_dir(places::workspace()).env("EMBERSCOPE_SKIP_LOG", skip_log);
    if let Some(path) = go::installed().and_then(|bin| places::path_with(&bin).ok()) {
        command.env("PATH", path);
    }
    // A failed test says what it found; fifty lines of the test harness's own calls only hide it.
    command.env("RUST_BACKTRACE", "0");
    command.args(filter);
}
