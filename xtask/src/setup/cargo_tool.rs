//! A subcommand of cargo's that is a crate of its own, built once into the cache.

use crate::{places, step};
use anyhow::Result;
use std::process::Command;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct CargoTool {
    /// The crate; its program has the same name, `cargo-NAME`.
    pub name: &'static str,
    /// What stands behind `cargo`.
    pub subcommand: &'static str,
    /// The version that is installed.
    pub version: &'static str,
    /// Whether another version will not do.
    pub exact: bool,
    /// What `cargo install` is told besides.
    pub arguments: &'static [&'static str],
}

impl CargoTool {
    /// A command of it, if it is there.
    pub fn command(&self) -> Result<Option<Command>> {
        let output = self.cargo()?.arg("--version").output();
        let found = output.is_ok_and(|output| {
            let said = String::from_utf8_lossy(&output.stdout);
            let same = said.split_whitespace().any(|word| word == self.version);
            output.status.success() && (same || !self.exact)
        });
        Ok(if found { Some(self.cargo()?) } else { None })
    }

    fn cargo(&self) -> Result<Command> {
        let mut cargo = places::cargo();
        cargo.arg(self.subcommand).env("PATH", places::path_with(&places::tools()?.join("bin"))?);
        Ok(cargo)
    }

    /// Finds or installs it.
    pub fn ensure(&self) -> Result<()> {
        if self.command()?.is_some() {
            return Ok(());
        }
        let _lock = places::lock_cache()?;
        if self.command()?.is_some() {
            return Ok(());
        }
        // Unoptimised and without debug info: it compiles in half the time and runs once a test.
        let mut install = places::cargo();
        install
            .args(["install", self.name, "--version", self.version, "--locked", "--debug", "--root"])
            .arg(places::tools()?)
            .args(self.arguments)
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        let what = format!("building {} (once; about a minute)", self.name);
        step::run(&what, &mut install, "check the network").map(drop)
    }
}
