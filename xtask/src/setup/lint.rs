//! The tools of the checks: rustfmt, clippy and cargo-deny. Needed by `test` only.

use crate::{places, root, step};
use anyhow::{Result, bail};
use std::process::Command;

/// The cargo-deny that is installed where there is none.
const CARGO_DENY: &str = "0.20.2";

/// Finds or installs them.
pub fn ensure() -> Result<()> {
    let missing = |tool: &str| !succeeds(Command::new(places::cargo()).args([tool, "--version"]));
    if missing("fmt") || missing("clippy") {
        install_components()?;
    }
    if deny()?.is_none() {
        install_deny()?;
    }
    Ok(())
}

/// A `cargo deny` command, if there is one.
pub fn deny() -> Result<Option<Command>> {
    let tools = places::tools()?.join("bin");
    let mut command = Command::new(places::cargo());
    command.arg("deny").env("PATH", places::path_with(&tools)?);
    let mut version = Command::new(places::cargo());
    version.args(["deny", "--version"]).env("PATH", places::path_with(&tools)?);
    Ok(succeeds(&mut version).then_some(command))
}

fn install_components() -> Result<()> {
    let debian = places::on_path("rustc").is_some_and(|rustc| rustc.starts_with("/usr/bin"));
    if debian {
        return root::apt_install(&["rustfmt-web", "rust-web-clippy"], "rustfmt and clippy");
    }
    if places::on_path("rustup").is_none() {
        bail!("`cargo fmt` or `cargo clippy` is missing: install rustfmt and clippy for your Rust toolchain");
    }
    let mut add = Command::new("rustup");
    add.args(["component", "add", "rustfmt", "clippy"]);
    step::run("adding rustfmt and clippy", &mut add, "check the network")?;
    Ok(())
}

fn install_deny() -> Result<()> {
    let _lock = places::lock_cache()?;
    if deny()?.is_some() {
        return Ok(());
    }
    // Unoptimised and without debug info: it compiles in half the time and runs once a test.
    let mut install = Command::new(places::cargo());
    install
        .args(["install", "cargo-deny", "--version", CARGO_DENY, "--locked", "--debug", "--root"])
        .arg(places::tools()?)
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    step::run("building cargo-deny (once; about a minute)", &mut install, "check the network")?;
    Ok(())
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
