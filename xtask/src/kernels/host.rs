//! The same check on this machine's own kernel, without qemu.

use super::Mode;
use super::outcome::Outcome;
use super::system::System;
use crate::launch::{Running, port};
use crate::root;
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);

/// Runs it; its files are in `dir`. Needs root.
pub fn run(system: &System, jdk: Option<&Path>, dir: &Path, mode: Mode) -> Result<Outcome> {
    if !root::is_root() {
        bail!("this machine's own kernel is checked as root only");
    }
    let _ = std::fs::remove_dir_all(dir);
    let (out, work) = (dir.join("out"), dir.join("work"));
    std::fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    let mut check = Command::new("sh");
    check.arg(&system.check).env("MODE", mode.word());
    check.env("OUT", &out).env("WORK", &work).env("TOOLS", &system.tools);
    check.env("PORT", port::free_port()?.to_string());
    if let Some(home) = jdk {
        check.env("JAVA", home.join("bin/java"));
    }
    let mut running = Running::start("the check", &mut check, &dir.join("console.log"))?;
    running.wait(LIMIT)?;
    Ok(Outcome::read(dir))
}
