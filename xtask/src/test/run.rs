//! What has run, and what came of it: counts, times, what failed tests said.
//!
//! In: commands that run tests, and their output. Out: a report whose last line is `N passed, N failed, N skipped`. What
//! failed runs once more, by itself.

use crate::said::Said;
use crate::step;
use crate::tally::Tally;
use anyhow::{Context as _, Result, bail};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

/// So many failed tests run once more; where more fail, it is not chance.
const AGAIN: usize = 5;

/// What has happened so far.
#[derive(Default)]
pub struct Run {
    pub tally: Tally,
    failures: Vec<String>,
    /// What failed tests said.
    said: Said,
    /// Tests that failed and then passed.
    unsteady: Vec<String>,
    times: Vec<(String, f64)>,
}

impl Run {
    /// A check, which counts when it fails.
    pub fn part(&mut self, what: &str, work: impl FnOnce() -> Result<()>) {
        let begun = Instant::now();
        if let Err(error) = work() {
            eprintln!("error: {error:#}");
            self.tally.failed += 1;
            self.failures.push(what.to_owned());
        }
        self.times.push((what.to_owned(), begun.elapsed().as_secs_f64()));
    }

    /// A test of its own, which gives why it could not run here, if so. One that fails runs once more.
    pub fn may_skip(&mut self, what: &str, test: impl Fn() -> Result<Option<String>>) {
        let begun = Instant::now();
        println!("== {what} ...");
        let mut result = test();
        if let Err(error) = &result {
            println!("== {what}: once more, because {error:#}");
            result = test();
            if result.is_ok() {
                self.unsteady.push(what.to_owned());
            }
        }
        match result {
            Ok(None) => self.tally.passed += 1,
            Ok(Some(why)) => {
                println!("skipped: {what}: {why}");
                self.tally.skipped += 1;
            }
            Err(error) => {
                eprintln!("error: {what}: {error:#}");
                self.tally.failed += 1;
                self.failures.push(what.to_owned());
            }
        }
        self.times.push((what.to_owned(), begun.elapsed().as_secs_f64()));
    }

    /// Runs what `command` gives for the names of the tests that are to run again; for none, all of them.
    pub fn tests(&mut self, what: &str, command: impl Fn(&[String]) -> Command) {
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

    /// Prints what was, and says whether all is well.
    pub fn report(&self, skips: &std::collections::BTreeMap<String, String>, begun: Instant) -> Result<()> {
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
    fn a_test_of_its_own_passes_skips_or_fails() {
        let mut run = Run::default();
        run.may_skip("right", || Ok(None));
        run.may_skip("lacking", || Ok(Some("there is no qemu".to_owned())));
        let tries = std::cell::Cell::new(0);
        let third = || {
            tries.set(tries.get() + 1);
            if tries.get() % 3 == 0 { Ok(None) } else { bail!("no stack") }
        };
        run.may_skip("wrong twice", third);
        assert_eq!(run.tally, Tally { passed: 1, failed: 1, skipped: 1 });
        run.may_skip("right at once", third);
        run.may_skip("wrong", || bail!("no stack"));
        assert_eq!((run.tally, run.unsteady.len()), (Tally { passed: 2, failed: 2, skipped: 1 }, 0));
        assert!(run.report(&Default::default(), Instant::now()).is_err());
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
