//! What needs root: installing packages, loading BPF. As root commands run as they are, else through
//! sudo.

use crate::{places, step};
use anyhow::{Result, bail};
use rustix::process::{Pid, Signal};
use std::ffi::OsStr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether `apt-get update` has run: once is enough for one run of ours.
static LISTS_READ: AtomicBool = AtomicBool::new(false);

/// Whether we are root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a command can be run as root, by being root or by sudo.
pub fn available() -> bool {
    is_root() || places::on_path("sudo").is_some()
}

/// A command that will run as root. `why` completes "... needs root".
pub fn command(program: impl AsRef<OsStr>, why: &str) -> Result<Command> {
    if is_root() {
        return Ok(Command::new(program));
    }
    if places::on_path("sudo").is_none() {
        bail!("{why} needs root, and there is no sudo: run the same command as root");
    }
    let mut command = Command::new("sudo");
    command.arg("--").arg(program);
    Ok(command)
}

/// What starts a program of tests as root, where that can be had, with the variables that are set.
pub fn tests(program: impl AsRef<OsStr>) -> Command {
    if is_root() || !available() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["-E", "--"]).arg(program);
    command
}

/// Sends a signal to a process that [`command`] started; sudo passes SIGTERM and SIGINT on. A process
/// that is gone is no error.
pub fn signal(pid: u32, signal: Signal) {
    if is_root() {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    } else {
        let _ = Command::new("sudo")
            .args(["--", "kill", &format!("-{}", signal.as_raw()), &pid.to_string()])
            .status();
    }
}

/// Lets apt install packages of another architecture, by Debian's name for it, beside this machine's.
pub fn add_architecture(name: &str) -> Result<()> {
    let mut add = command("dpkg", &format!("installing packages of {name}"))?;
    step::run(
        &format!("adding {name} to the architectures of packages"),
        add.args(["--add-architecture", name]),
        "the package manager's message is above",
    )?;
    // The lists have none of it yet.
    LISTS_READ.store(false, Ordering::Relaxed);
    Ok(())
}

/// Installs Debian packages, or says what to install by hand. Never removes a package.
pub fn apt_install(packages: &[&str], purpose: &str) -> Result<()> {
    let list = packages.join(" ");
    if places::on_path("apt-get").is_none() {
        bail!("{purpose} is missing, and this system has no apt-get: install what Debian calls {list}");
    }
    let mend = format!(
        "check the network and that /etc/apt lists bookworm, bookworm-updates and bookworm-security; \
         then try `apt-get update && apt-get install {list}`"
    );
    let apt = || -> Result<Command> {
        let mut command = command("env", &format!("installing {list}"))?;
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"]);
        Ok(command)
    };
    if !LISTS_READ.load(Ordering::Relaxed) {
        step::run("reading Debian's package lists", apt()?.arg("update"), &mend)?;
        LISTS_READ.store(true, Ordering::Relaxed);
    }
    let mut install = apt()?;
    install.args(["install", "--no-install-recommends", "--no-remove"]).args(packages);
    step::run(&format!("installing {purpose} ({list})"), &mut install, &mend)?;
    Ok(())
}
