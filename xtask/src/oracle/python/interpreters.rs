//! The CPythons of this machine.

use crate::setup::new_python::PYTHON_3_14;
use crate::{root, step};
use anyhow::{Context as _, Result, ensure};
use std::path::PathBuf;
use std::process::Command;

/// A CPython of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Python {
    /// The words that run it.
    pub command: Vec<String>,
    /// Where it runs in a chroot, its root.
    pub root: Option<PathBuf>,
    /// Its minor version.
    pub minor: u32,
    /// As it tells it: `3.11.2`.
    pub version: String,
    /// Packages that it imports from a directory (PYTHONPATH, as it sees it).
    pub packages: Option<PathBuf>,
}

impl Python {
    /// Imports a module, in a process of its own.
    ///
    /// # Errors
    /// It says why it cannot.
    pub fn imports(&self, module: &str) -> Result<()> {
        let (first, rest) = self.command.split_first().context("a Python without a program")?;
        let mut command = Command::new(first);
        command.args(rest).args(["-c", &format!("import {module}")]);
        command.envs(self.packages.iter().map(|packages| ("PYTHONPATH", packages)));
        let output = command.output().with_context(|| format!("starting {}", step::shown(&command)))?;
        let text = String::from_utf8_lossy(&output.stderr);
        // numpy's own is followed by advice.
        let why = text.lines().rev().find(|line| line.contains("rror")).unwrap_or_default();
        ensure!(output.status.success(), "it cannot import {module}: {}", why.trim());
        Ok(())
    }
}

/// Those of pyenv, the system's, and what setup brought, from 3.8 on; oldest first.
pub fn pythons() -> Vec<Python> {
    let home = std::env::var_os("HOME").map_or_else(PathBuf::new, PathBuf::from);
    let root = std::env::var_os("PYENV_ROOT").map_or_else(|| home.join(".pyenv"), PathBuf::from);
    let versions = std::fs::read_dir(root.join("versions")).into_iter().flatten().flatten();
    let programs = versions.map(|version| version.path().join("bin/python3"));
    let mut found: Vec<Python> =
        programs.chain([PathBuf::from("/usr/bin/python3")]).filter_map(of_program).collect();
    if root::is_root() {
        found.extend(PYTHON_3_14.installed().and_then(|at| known(PYTHON_3_14.command(&at).ok()?, Some(at))));
    }
    found.sort_by(|a, b| (a.minor, &a.version, &a.command).cmp(&(b.minor, &b.version, &b.command)));
    found
}

fn of_program(program: PathBuf) -> Option<Python> {
    known(vec![program.into_os_string().into_string().ok()?], None)
}

fn known(command: Vec<String>, root: Option<PathBuf>) -> Option<Python> {
    let script = "import platform; print(platform.python_implementation(), platform.python_version())";
    let (first, rest) = command.split_first()?;
    let output = Command::new(first).args(rest).args(["-c", script]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.trim().strip_prefix("CPython 3.")?;
    let minor = version.split('.').next()?.parse().ok().filter(|minor| *minor >= 8)?;
    Some(Python { command, root, minor, version: format!("3.{version}"), packages: None })
}
