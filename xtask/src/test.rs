//! `test`: every check and every test, and the count of all.
//!
//! After the build the tests on this machine's kernel and on Spark run one at a time: first those that hold shares and times
//! against each other, with nothing beside them. Beside the others all else is compiled and checked, in the CPU time that they
//! leave. Beside those on Spark run the tests that mind no neighbours: unit tests, those of the daemon that wait most of the time, the
//! oldest kernel in qemu. A part that fails does not keep the others from running.
//! The last line is `N passed, N failed, N skipped`; before it stand the slowest tests, the parts with their times, the
//! tests that could not run here, each with its reason, and what the failed ones said. A check that fails (formatting,
//! clippy, rustdoc, licences, the build) counts as one failed. Tests that fail run once more at the end, with nothing
//! beside them, as long as they are few: one that passes then is passed, and is printed as unsteady with what it said.

mod checks;
mod commands;
mod programs;
mod quick;
mod run;
mod slowest;

use crate::arch::Arch;
use crate::launch::{azure, gs, hdfs, s3, yarn};
use crate::setup::runtime::{MAJORS, Runtime};
use crate::setup::{self, SparkKit, helm, jdk, lint, packages, python, seccomp};
use crate::turn::idle;
use crate::{build, kernels, places, step, tally};
use anyhow::{Context as _, Result};
use checks::{COMPILED, FUZZ_LOCK, bpf_is_silent, fuzz_lock, is_silent};
pub use programs::Programs;
use quick::Quick;
use run::{Output, Run};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
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

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// A part of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Formatting, clippy, rustdoc, licences and sources of dependencies
    Checks,
    /// Tests that need no privilege
    Unit,
    /// Tests on the real kernel, JVMs and Spark, and on the oldest kernel in qemu, with the optimised daemon
    E2e,
}

/// Which tests of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    /// Those that must have the machine for themselves, one at a time.
    Alone,
    /// One at a time, whatever compiles beside them.
    Sturdy,
    /// Those that wait most of the time, several at a time.
    Together,
}

/// The module of the latter.
const TOGETHER: &str = "together::";
/// Modules of sturdy ones: they ask whether samples are right, and at most what share of them a part of one program has. None of them
/// counts frames that have no name: what is read of a user's files is bounded, and compilers of the same user take their part of it.
const STURDY: [&str; 9] = [
    "walk::",
    "layouts::",
    "native::",
    "threads::",
    "hostile::",
    "killed::",
    "launchers::",
    "stacks::",
    "stripped::",
];

/// End-to-end tests that run one at a time: what they are called, the program, which of its tests.
const ONE_BY_ONE: [(&str, &str, Which); 3] = [
    ("end-to-end tests on this kernel, with nothing beside them", "kernel", Which::Alone),
    ("end-to-end tests on this kernel", "kernel", Which::Sturdy),
    ("end-to-end tests on Spark", "spark", Which::All),
];

/// What all tests are run with.
struct Bench<'a> {
    options: &'a Options,
    kit: SparkKit,
    skip_log: PathBuf,
    quick: Quick,
    /// The optimised daemon, where the tests that want it run.
    binary: Option<PathBuf>,
    programs: Programs,
}

/// Runs them.
pub fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    let wanted = |part| options.wants(part);
    let mut build = Run::default();
    let mut binary = None;
    // It comes first: what is compiled later, for the checks too, then has the BPF object inside.
    let builds = || {
        if wanted(Part::E2e) {
            build.part("build", || build::run().map(|built| binary = Some(built)));
        }
        Instant::now()
    };
    let (kit, built) = setup::beside(&setup::Options { no_lint: !wanted(Part::Checks) }, builds)?;
    let skip_log = places::target().join("xtask").join("skips.tsv");
    std::fs::create_dir_all(places::target().join("xtask"))
        .context("creating the directory of the skip log")?;
    std::fs::write(&skip_log, "").with_context(|| format!("emptying {}", skip_log.display()))?;
    let mut bench =
        Bench { options, kit, skip_log, quick: Quick::new()?, binary, programs: Programs::default() };
    let mut run = Run::default();
    run.append(build);
    if bench.binary.is_some() {
        run.part(programs::COMPILING, || Programs::compile().map(|made| bench.programs = made));
    }
    // Dropped when tests that have the machine for themselves are over, and all of the kernel's.
    let (first, alone) = mpsc::channel::<()>();
    let (kernel, quiet) = mpsc::channel::<()>();
    let (mut first, mut kernel) = (Some(first), Some(kernel));
    let beside = std::thread::scope(|scope| {
        let beside = scope.spawn(|| bench.beside(&wanted, alone, quiet));
        // With a name to filter by, all that it fits are among the first.
        let wanted = |which| bench.binary.is_some() && (which != Which::Sturdy || options.filter.is_none());
        for (title, program, which) in ONE_BY_ONE.iter().filter(|(.., which)| wanted(*which)) {
            let bench = &bench;
            run.tests(title, Output::Shown, move |again| bench.e2e_tests(program, *which, again));
            drop(first.take());
            if *which != Which::Alone || options.filter.is_some() {
                drop(kernel.take());
            }
        }
        drop((first, kernel));
        beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    run.append(beside);
    run.settle();
    let skips = tally::parse_skips(&std::fs::read_to_string(&bench.skip_log).unwrap_or_default());
    run.tally.apply_skips(&skips);
    run.report(&skips, begun, built)
}

impl Bench<'_> {
    /// What needs neither root nor quiet: what is made and checked, by the processor time that the tests leave, and
    /// beside it the tests that mind no neighbours. `alone` ends when compilers may begin, `quiet` when those tests may.
    fn beside(
        &self,
        wanted: &(impl Fn(Part) -> bool + Sync),
        alone: Receiver<()>,
        quiet: Receiver<()>,
    ) -> Run<'_> {
        let (served, servers) = mpsc::channel();
        let (compiled, tests) = mpsc::channel();
        std::thread::scope(|scope| {
            let lane = scope.spawn(move || {
                // Beside what they want of the processors, a JVM's names come too late for the kernel's tests.
                let _ = quiet.recv();
                self.tests_beside(wanted, servers, tests)
            });
            let mut run = self.made_beside(wanted, alone, served, compiled);
            run.append(lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            run
        })
    }

    /// What compilers do. Each sender is dropped when that is done which the tests wait for; `alone` ends with the tests
    /// beside which nothing runs.
    fn made_beside(
        &self,
        wanted: &impl Fn(Part) -> bool,
        alone: Receiver<()>,
        served: Sender<()>,
        compiled: Sender<()>,
    ) -> Run<'_> {
        let mut run = Run::beside();
        let _ = alone.recv();
        if wanted(Part::Unit) || wanted(Part::Checks) {
            run.part(COMPILED, || idle(|| self.compile()));
            if wanted(Part::Checks) {
                run.part("clippy", || is_silent(COMPILED));
            }
        }
        drop(compiled);
        if wanted(Part::E2e) {
            // Some minutes of CPU the first time. What cannot be made is said by the tests that want it.
            run.part("what the tests talk to", || idle(|| self.servers()));
        }
        drop(served);
        if wanted(Part::Checks) {
            // What needs no compiler comes first: cargo, which looks for what it would have to compile for the unit
            // tests, waits for one that compiles.
            match self.checks() {
                Err(error) => run.part("checks", || Err(error)),
                Ok(all) => all.into_iter().for_each(|(what, mut command, mend)| {
                    run.part(what, || idle(|| step::run(what, &mut command, mend).map(drop)));
                }),
            }
            run.may_skip(FUZZ_LOCK, || idle(fuzz_lock));
            if self.options.filter.is_none() {
                for arch in Arch::ALL {
                    let what = format!("BPF programs for {}", arch.debian());
                    run.part(&what, || idle(|| bpf_is_silent(arch)));
                }
                run.may_skip("advisories of dependencies", || idle(lint::advisories));
            }
        }
        run
    }

    /// The tests, each when what it wants is made: a receiver that says nothing more says so.
    fn tests_beside(
        &self,
        wanted: &impl Fn(Part) -> bool,
        servers: Receiver<()>,
        compiled: Receiver<()>,
    ) -> Run<'_> {
        let mut run = Run::beside();
        let all = self.options.filter.is_none();
        let _ = compiled.recv();
        if wanted(Part::Unit) {
            run.tests("unit tests", Output::Logged, |again| self.unit_tests(again));
        }
        let _ = servers.recv();
        // With a name to filter by, they are among the others: libtest takes either name, never both.
        if self.binary.is_some() && all {
            let title = "end-to-end tests of the daemon, several at a time";
            run.tests(title, Output::Logged, |again| self.e2e_tests("kernel", Which::Together, again));
            run.may_skip("Linux 5.10 in qemu", kernels::oldest);
        }
        if wanted(Part::Unit) && all {
            run.tests("the registry on real Spark", Output::Logged, |again| self.live_tests(again));
        }
        run
    }

    /// Servers of archives, fetched and built; what renders and checks the chart, and what the image is run under.
    fn servers(&self) -> Result<()> {
        println!("== what the tests talk to ...");
        let made = [
            s3::build().map(|made| made.map(drop)),
            gs::build().map(|made| made.map(drop)),
            azure::install().map(|made| made.map(drop)),
            hdfs::fetch(&self.kit.venv).map(|made| made.map(drop)),
            yarn::fetch(&self.kit.venv).map(|made| made.map(drop)),
        ];
        for why in
            made.into_iter().filter_map(|made| made.unwrap_or_else(|error| Err(format!("{error:#}"))).err())
        {
            eprintln!("   {}", why.lines().next().unwrap_or_default());
        }
        // The tests that want them say why they are not there.
        let _ = (helm::ensure(), packages::kubernetes(&self.kit.venv), seccomp::ensure());
        Ok(())
    }
}

/// Says to tests which Spark and which JDKs this machine has.
pub fn tell_machine(command: &mut Command, kit: &SparkKit) {
    command.env("EMBERSCOPE_VENV", &kit.venv).env("EMBERSCOPE_JAVA", &kit.jdk.home);
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
}
