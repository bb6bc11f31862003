//! What has run, and what came of it: counts, times, what failed tests said.
//!
//! In: commands that run tests, and their output. Out: a report whose last line is `N passed, N failed, N skipped`. What
//! failed runs once more, by itself, when all else is done ([`Run::settle`]).

use crate::said::Said;
use crate::step;
use crate::tally::Tally;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::slowest::Slowest;

/// So many failed tests run once more; where more fail, it is not chance.
const AGAIN: usize = 5;

/// Gives what runs the tests of these names; of none, all.
type Tests<'a> = Box<dyn Fn(&[String]) -> Command + Send + 'a>;

/// Tests that failed and may run once more.
struct Again<'a> {
    what: String,
    command: Tests<'a>,
    failed: Vec<String>,
    error: anyhow::Error,
}

/// Where the output of tests goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Printed as it comes; one test runs at a time, so it tells how long each took.
    Shown,
    /// Into a log file: other tests are printed meanwhile, and several of these run at a time.
    Logged,
}

/// What has happened so far.
#[derive(Default)]
pub struct Run<'a> {
    pub tally: Tally,
    failures: Vec<String>,
    /// What failed tests said.
    said: Said,
    /// Tests that failed and then passed.
    unsteady: Vec<String>,
    again: Vec<Again<'a>>,
    slowest: Slowest,
    times: Vec<(String, f64)>,
    beside: bool,
}

impl<'a> Run<'a> {
    /// Of what runs beside something else, as the table of times says.
    pub fn beside() -> Self {
        Self { beside: true, ..Self::default() }
    }

    /// A check, which counts when it fails.
    pub fn part(&mut self, what: &str, work: impl FnOnce() -> Result<()>) {
        let begun = Instant::now();
        if let Err(error) = work() {
            self.fail(what, 1, &error);
        }
        self.took(what, begun);
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
            Err(error) => self.fail(what, 1, &error),
        }
        self.took(what, begun);
    }

    /// Runs what `command` gives for no names: all tests. The few that fail run once more in [`Run::settle`].
    pub fn tests(&mut self, what: &str, output: Output, command: impl Fn(&[String]) -> Command + Send + 'a) {
        let begun = Instant::now();
        println!("== {what} ...");
        let mut said = Said::default();
        let (seen, result) = stream(what, &mut command(&[]), output, &mut said, &mut self.slowest);
        let failed: Vec<String> = said.names().map(str::to_owned).collect();
        self.said.append(said);
        self.tally.passed += seen.passed;
        self.tally.skipped += seen.skipped;
        let few = (1..=AGAIN).contains(&failed.len()) && seen.failed == failed.len() as u64;
        match result {
            Ok(()) => {}
            Err(error) if few => {
                self.again.push(Again { what: what.to_owned(), command: Box::new(command), failed, error });
            }
            // cargo's own failure (it does not compile, a test crashed) has no line that counts it.
            Err(error) => self.fail(what, seen.failed.max(1), &error),
        }
        self.took(what, begun);
    }

    /// Takes in another's results. How long its tests took stays with it.
    pub fn append(&mut self, other: Self) {
        self.tally += other.tally;
        self.failures.extend(other.failures);
        self.said.append(other.said);
        self.unsteady.extend(other.unsteady);
        self.again.extend(other.again);
        self.times.extend(other.times);
    }

    /// Runs once more what failed, with nothing beside it.
    pub fn settle(&mut self) {
        for Again { what, command, failed, error } in std::mem::take(&mut self.again) {
            let begun = Instant::now();
            let title = format!("{what}: once more what failed");
            println!("== {title} ...");
            let mut said = Said::default();
            let (second, outcome) =
                stream(&title, &mut command(&failed), Output::Shown, &mut said, &mut Slowest::default());
            self.said.append(said);
            let passed = second.passed.min((failed.len() as u64).saturating_sub(second.failed));
            self.tally.passed += passed;
            if outcome.is_ok() && second.passed == failed.len() as u64 {
                self.unsteady.extend(failed);
            } else {
                self.fail(&what, (failed.len() as u64 - passed).max(1), &error);
            }
            self.took(&title, begun);
        }
    }

    fn fail(&mut self, what: &str, tests: u64, error: &anyhow::Error) {
        eprintln!("error: {what}: {error:#}");
        self.tally.failed += tests;
        self.failures.push(what.to_owned());
    }

    fn took(&mut self, what: &str, begun: Instant) {
        let what = if self.beside { format!("    beside it: {what}") } else { what.to_owned() };
        self.times.push((what, begun.elapsed().as_secs_f64()));
    }

    /// Prints what was, and says whether all is well. `begun` is the start of all, `built` the end of the build.
    pub fn report(&self, skips: &BTreeMap<String, String>, begun: Instant, built: Instant) -> Result<()> {
        println!("\nthe slowest tests:");
        for (seconds, test) in self.slowest.all() {
            println!("{seconds:8.1} s  {test}");
        }
        println!();
        for (what, seconds) in &self.times {
            println!("{seconds:8.1} s  {what}");
        }
        println!(
            "{:8.1} s  in all, {:.1} s after the build",
            begun.elapsed().as_secs_f64(),
            built.elapsed().as_secs_f64()
        );
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

/// Runs tests, counts their result lines, and keeps what failed ones said and how long each took.
fn stream(
    what: &str,
    command: &mut Command,
    output: Output,
    said: &mut Said,
    slowest: &mut Slowest,
) -> (Tally, Result<()>) {
    let mut tally = Tally::default();
    let result = (|| {
        let log = step::log_file(what)?;
        let file = match output {
            Output::Shown => None,
            Output::Logged => {
                Some(File::create(&log).with_context(|| format!("creating {}", log.display()))?)
            }
        };
        follow(command, file.as_ref(), |line| {
            tally.add_line(line);
            said.add_line(line);
            if output == Output::Shown {
                slowest.add_line(line);
            }
        })
        .map_err(|error| match output {
            Output::Shown => error,
            Output::Logged => {
                error.context(format!("the end of {}\n{}\n---", log.display(), step::tail(&log, 40)))
            }
        })
    })();
    (tally, result)
}

/// Runs a command to its end; its lines are printed, or written to a file with what it says on standard error.
fn follow(command: &mut Command, file: Option<&File>, mut take: impl FnMut(&str)) -> Result<()> {
    if let Some(file) = file {
        command.stderr(file.try_clone().context("duplicating the log's handle")?);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", step::shown(command)))?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("reading the tests' output")?;
            let line = String::from_utf8_lossy(&line);
            match file {
                None => println!("{line}"),
                Some(mut file) => writeln!(file, "{line}").context("writing the tests' log")?,
            }
            take(&line);
        }
    }
    let status = child.wait().context("waiting for the tests")?;
    if !status.success() {
        bail!("{status}\ncommand: {}", step::shown(command));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
