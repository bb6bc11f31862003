//! `test`: every check and every test, and the count of all.
//!
//! A part that fails does not keep the others from running. The last line is `N passed, N failed, N
//! skipped`; before it stand the tests that could not run here, each with its reason, and what the failed ones
//! said. A check that fails (formatting, clippy, rustdoc, licences, the build) counts as one failed. Tests that
//! fail run once more, by themselves, as long as they are few: one that passes then is passed, and is printed as
//! unsteady with what it said.

use crate::said::Said;
use crate::setup::{self, SparkKit, jdk, lint, python};
use crate::tally::{self, Tally};
use crate::{build, places, root, step};
use anyhow::{Context as _, Result, anyhow, bail};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// So many failed tests run once more; where more fail, it is not chance.
const AGAIN: usize = 5;

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
    /// Formatting, clippy, rustdoc, licences and sources of dependencies
    Checks,
    /// Tests that need no privilege
    Unit,
    /// Tests on the real kernel, JVMs and Spark, with the optimised daemon
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
    if wanted(Part::Unit) {
        run.tests("unit tests", |again| unit_tests(filter, &skip_log, &kit, again));
        if filter.is_none() {
            run.tests("the registry on real Spark", |again| live_tests(&skip_log, &kit, again));
        }
    }
    if let Some(binary) = binary {
        run.tests("end-to-end tests", |again| e2e_tests(filter, &skip_log, &binary, &kit, again));
    }
    let skips = tally::parse_skips(&std::fs::read_to_string(&skip_log).unwrap_or_default());
    run.tally.apply_skips(&skips);
    run.report(&skips, begun)
}

/// What has happened so far.
#[derive(Default)]
struct Run {
    tally: Tally,
    failures: Vec<String>,
    /// What failed tests said.
    said: Said,
    /// Tests that failed and then passed.
    unsteady: Vec<String>,
    times: Vec<(String, f64)>,
}

impl Run {
    fn part(&mut self, what: &str, work: impl FnOnce() -> Result<()>) {
        let begun = Instant::now();
        if let Err(error) = work() {
            eprintln!("error: {error:#}");
            self.tally.failed += 1;
            self.failures.push(what.to_owned());
        }
        self.times.push((what.to_owned(), begun.elapsed().as_secs_f64()));
    }

    /// Runs what `command` gives for the names of the tests that are to run again; for none, all of them.
    fn tests(&mut self, what: &str, command: impl Fn(&[String]) -> Command) {
        let begun = Instant::now();
        println!("== {what} ...");
        let mut said = Said::default();
        let (mut seen, mut result) = stream(&mut command(&[]), &mut said);
        let failed: Vec<String> = said.names().map(str::to_owned).collect();
        let few = 1..=AGAIN;
        if result.is_err() && few.contains(&failed.len()) && seen.failed == failed.len() as u64 {
            println!("== {what}: once more what failed ...");
            let (second, outcome) = stream(&mut command(&failed), &mut said);
            if outcome.is_ok() && second.passed == seen.failed {
                seen = Tally { passed: seen.passed + second.passed, failed: 0, ..seen };
                result = outcome;
                self.unsteady.extend(failed);
            }
        }
        self.said.append(said);
        self.tally.passed += seen.passed;
        self.tally.failed += seen.failed;
        self.tally.skipped += seen.skipped;
        if let Err(error) = result {
            eprintln!("error: {what}: {error:#}");
            // cargo's own failure (it does not compile, a test crashed) has no line that counts it.
            self.tally.failed += u64::from(seen.failed == 0);
            self.failures.push(what.to_owned());
        }
        self.times.push((what.to_owned(), begun.elapsed().as_secs_f64()));
    }

    fn report(&self, skips: &std::collections::BTreeMap<String, String>, begun: Instant) -> Result<()> {
        println!();
        for (what, seconds) in &self.times {
            println!("{seconds:8.1} s  {what}");
        }
        println!("{:8.1} s  in all", begun.elapsed().as_secs_f64());
        for (test, reason) in skips {
            println!("skipped: {test}: {reason}");
        }
        for line in self.said.lines() {
            println!("{line}");
        }
        for test in &self.unsteady {
            println!("unsteady: {test} failed, and passed when it ran once more");
        }
        for what in &self.failures {
            println!("failed: {what}");
        }
        println!("{}", self.tally);
        if self.tally.failed > 0 || !self.failures.is_empty() {
            bail!("not all passed: {}", self.failures.join(", "));
        }
        Ok(())
    }
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
    for jdk in jdk::all() {
        command.env(format!("EMBERSCOPE_JAVA{}", jdk.major), &jdk.home);
    }
    // Not worth 450 MB of everybody's download: `bench truth --spark` brings it, and then it is tested too.
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
    // A failed test says what it found; fifty lines of the test harness's own calls only hide it.
    command.env("RUST_BACKTRACE", "0");
    command.args(filter);
}

/// Runs tests with their output shown as it comes, counts its result lines, and keeps what failed ones said.
fn stream(command: &mut Command, said: &mut Said) -> (Tally, Result<()>) {
    let mut tally = Tally::default();
    let result = follow(command, &mut tally, said);
    (tally, result)
}

fn follow(command: &mut Command, tally: &mut Tally, said: &mut Said) -> Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", step::shown(command)))?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("reading the tests' output")?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            tally.add_line(&line);
            said.add_line(&line);
        }
    }
    let status = child.wait().context("waiting for the tests")?;
    if !status.success() {
        bail!("{status}\ncommand: {}", step::shown(command));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    #[test]
    fn a_run_that_dies_uncounted_is_a_failure() {
        let mut run = Run::default();
        run.tests("a test", |_| {
            shell("echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured'; exit 101")
        });
        assert_eq!(run.tally, Tally { passed: 2, failed: 1, skipped: 0 });
        assert!(run.report(&Default::default(), Instant::now()).is_err());
    }

    const FAILS: &str = "echo '---- a stdout ----'; echo 'test result: FAILED. 2 passed; 1 failed'; exit 101";

    #[test]
    fn a_test_that_fails_twice_has_failed() {
        let mut run = Run::default();
        run.tests("a test", |_| shell(FAILS));
        assert_eq!(run.tally, Tally { passed: 2, failed: 1, skipped: 0 });
        assert!(run.unsteady.is_empty() && run.report(&Default::default(), Instant::now()).is_err());
        // Nor is it enough that nothing failed: it must have run.
        let mut run = Run::default();
        run.tests("a test", |again| shell(if again.is_empty() { FAILS } else { "true" }));
        assert_eq!(run.tally, Tally { passed: 2, failed: 1, skipped: 0 });
    }

    #[test]
    fn a_test_that_passes_when_it_runs_again_is_unsteady() {
        let mut run = Run::default();
        run.tests("a test", |again| {
            shell(if again == ["a"] { "echo 'test result: ok. 1 passed; 0 failed'" } else { FAILS })
        });
        assert_eq!(run.tally, Tally { passed: 3, failed: 0, skipped: 0 });
        assert_eq!(run.unsteady, ["a"]);
        assert!(run.report(&Default::default(), Instant::now()).is_ok());
    }

    #[test]
    fn many_that_fail_are_no_chance() {
        let mut run = Run::default();
        let many: String = (0..6).map(|n| format!("echo '---- t{n} stdout ----'; ")).collect();
        let script = format!("{many} echo 'test result: FAILED. 2 passed; 6 failed'; exit 101");
        run.tests("a test", |again| {
            assert!(again.is_empty());
            shell(&script)
        });
        assert_eq!(run.tally.failed, 6);
    }
}
