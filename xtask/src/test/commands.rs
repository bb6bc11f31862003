//! Commands of cargo that run tests.

use super::{Bench, Part, STURDY, TOGETHER, Which, tell_machine};
use crate::places;
use crate::setup::{go, python};
use anyhow::{Context as _, Result};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// What `cargo test --doc` runs in the place of rustdoc.
const RUSTDOC: &str = include_str!("rustdoc.sh");

/// The registry's tests that look at a real driver and its executors: each starts several JVMs, so one at
/// a time.
const LIVE: &str = "live_spark::";

impl Bench<'_> {
    pub(super) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = places::cargo();
        command.current_dir(places::workspace()).args(["test", "--locked"]).args(arguments);
        self.surroundings(&mut command);
        command
    }

    /// What all tests find.
    fn surroundings(&self, command: &mut Command) {
        command.env("EMBERSCOPE_SKIP_LOG", &self.skip_log);
        if let Some(path) = go::installed().and_then(|bin| places::path_with(&bin).ok()) {
            command.env("PATH", path);
        }
        // A failed test says what it found; fifty lines of the test harness's own calls only hide it.
        command.env("RUST_BACKTRACE", "0");
    }

    /// For tests that need no optimised workspace ([`mod@super::quick`]). With clippy in the place of the compiler for the
    /// crates of this workspace, as `cargo clippy` has it (RUSTC_WORKSPACE_WRAPPER), but so that it compiles them too: alone it would
    /// want all dependencies once more, checked instead of compiled.
    pub(super) fn unoptimised(&self, arguments: &[&str]) -> Command {
        let mut command = self.cargo(arguments);
        self.quick.set(&mut command);
        if self.options.wants(Part::Checks) {
            command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
        }
        command
    }

    /// The pages of all public items, with warnings as errors. Of what is compiled already.
    pub(super) fn rustdoc(&self) -> Result<Command> {
        let script = places::target().join("xtask").join("rustdoc.sh");
        std::fs::write(&script, RUSTDOC).with_context(|| format!("writing {}", script.display()))?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))
            .with_context(|| format!("making {} executable", script.display()))?;
        let mut command = self.unoptimised(&["--workspace", "--doc"]);
        command.env("RUSTDOC", script).env("EMBERSCOPE_RUSTDOC_OUT", places::target().join("doc"));
        command.env("RUSTDOCFLAGS", "-D warnings");
        Ok(command)
    }

    /// The tests that need no privilege, and all fuzz targets on inputs that are made for them.
    pub(super) fn unit(&self, arguments: &[&str]) -> Command {
        let all = ["--workspace", "--lib", "--bins", "--test", "plain", "--test", "fuzz_targets"];
        let mut command = self.unoptimised(&all);
        self.here(&mut command);
        // The registry's tests start Spark by these.
        command.env("JAVA_HOME", &self.kit.jdk.home);
        if let Some(home) = python::spark_home(&self.kit.venv) {
            command.env("SPARK_HOME", home);
        }
        command.args(arguments);
        command
    }

    pub(super) fn unit_tests(&self, again: &[String]) -> Command {
        let mut command = self.unit(&["--no-fail-fast"]);
        command.args(&self.options.filter).arg("--");
        if self.options.filter.is_none() {
            command.args(["--skip", LIVE]);
        }
        only(&mut command, again);
        command
    }

    pub(super) fn live_tests(&self, again: &[String]) -> Command {
        // The same selection, so that nothing is compiled anew.
        let mut command = self.unit(&[]);
        if again.is_empty() {
            command.arg(LIVE);
        }
        command.args(["--", "--test-threads", "1"]);
        only(&mut command, again);
        command
    }

    pub(super) fn e2e_tests(&self, program: &str, which: Which, again: &[String]) -> Command {
        let mut command = self.programs.command(program);
        command.args(&self.options.filter);
        self.surroundings(&mut command);
        self.here(&mut command);
        // They share the machine's cores and, each in its turn, profile all of it.
        let mut threads = "1";
        match which {
            _ if !again.is_empty() || self.options.filter.is_some() => {}
            Which::All => {}
            Which::Alone => {
                command.args(STURDY.iter().chain([&TOGETHER]).flat_map(|module| ["--skip", module]));
            }
            Which::Sturdy => drop(command.args(["--skip", TOGETHER]).args(STURDY)),
            Which::Together => {
                threads = "4";
                command.arg(TOGETHER);
            }
        }
        command.args(["--test-threads", threads]);
        only(&mut command, again);
        command
    }

    /// Says where the daemon is, and what this machine has.
    pub(super) fn here(&self, command: &mut Command) {
        if let Some(binary) = &self.binary {
            command.env("EMBERSCOPE_BIN", binary);
        }
        tell_machine(command, &self.kit);
    }
}

/// Only the tests of these names, as arguments of a program of tests (behind cargo's `--`); of none, all.
fn only(command: &mut Command, names: &[String]) {
    if !names.is_empty() {
        command.arg("--exact").args(names);
    }
}
