//! `fresh`: proves the README's commands on a machine with nothing on it.
//!
//! Makes a bare Debian bookworm with debootstrap (minbase), gives it /proc, /sys (tracefs below) and /dev, clones
//! HEAD into it and runs `./x demo` and `./x test` there, then both again without a network, with no variables but
//! PATH and HOME. Of this machine it carries over only how the network is reached: apt's mirrors and proxies,
//! resolv.conf, the CA certificates that its administrator added and, where they are set, the proxy variables. Prints
//! how long each took.

use crate::{places, root, step};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub mod apt;
pub mod system;

use system::write;

/// Where the clone is, inside.
const CLONE: &str = "/root/emberscope";
/// Where an administrator puts CA certificates of his own: the package ca-certificates takes them in when it is
/// installed, so that no variable needs to name them (update-ca-certificates(8)).
const CERTIFICATES: &str = "usr/local/share/ca-certificates";

/// What to prove and where.
#[derive(clap::Args)]
pub struct Options {
    /// The commands to run, in order
    #[arg(long, value_delimiter = ',', default_value = "demo,test")]
    commands: Vec<String>,
    /// Do not run them a second time without a network
    #[arg(long)]
    once: bool,
    /// Where the system is made; about 6 GB
    #[arg(long, default_value = "/var/tmp/emberscope-fresh")]
    dir: PathBuf,
    /// Go on with the system that an earlier run left
    #[arg(long)]
    reuse: bool,
    /// Leave the system there
    #[arg(long)]
    keep: bool,
}

/// Runs the proof.
pub fn run(options: &Options) -> Result<()> {
    if !root::is_root() {
        bail!("making and entering a system needs root: run this as root");
    }
    let begun = Instant::now();
    let mut times: Vec<(String, Duration)> = Vec::new();
    if !options.reuse {
        remove(&options.dir)?;
        times.push(("debootstrap".to_owned(), system::bootstrap(&options.dir)?));
    }
    carry_over(&options.dir)?;
    // HEAD may move while this runs.
    let head = head()?;
    clone(&options.dir)?;
    for network in [true, false] {
        if !network && options.once {
            continue;
        }
        for command in &options.commands {
            let what = format!("./x {command}{}", if network { "" } else { ", again, without a network" });
            println!("== {what}");
            times.push((what, inside(&options.dir, command, network)?));
        }
    }
    if !options.keep {
        remove(&options.dir)?;
    }
    println!("\nfrom HEAD {head}, in a bare bookworm:");
    for (what, took) in &times {
        println!("{:8.1} s  {what}", took.as_secs_f64());
    }
    println!("{:8.1} s  in all", begun.elapsed().as_secs_f64());
    Ok(())
}

fn carry_over(dir: &Path) -> Result<()> {
    write(dir, "etc/apt/apt.conf.d/90network", apt::network_settings()?.as_bytes())?;
    for file in ["etc/resolv.conf", "etc/hosts"] {
        let bytes = std::fs::read(Path::new("/").join(file)).with_context(|| format!("reading /{file}"))?;
        write(dir, file, &bytes)?;
    }
    let own = Path::new("/").join(CERTIFICATES);
    for entry in std::fs::read_dir(&own).into_iter().flatten().flatten() {
        let name = Path::new(CERTIFICATES).join(entry.file_name());
        if let (Ok(bytes), Some(name)) = (std::fs::read(entry.path()), name.to_str()) {
            std::fs::create_dir_all(dir.join(CERTIFICATES))
                .context("creating the place of CA certificates")?;
            write(dir, name, &bytes)?;
        }
    }
    Ok(())
}

fn clone(dir: &Path) -> Result<()> {
    let clone = dir.join(CLONE.trim_start_matches('/'));
    if clone.exists() {
        // A reused system: its build products stay, its sources become HEAD.
        let mut fetch = Command::new("git");
        fetch.arg("-C").arg(&clone).args(["fetch", "--quiet"]).arg(places::workspace()).arg("HEAD");
        step::run("fetching HEAD into the system", &mut fetch, "git must be installed")?;
        let mut checkout = Command::new("git");
        checkout.arg("-C").arg(&clone).args(["checkout", "--quiet", "--force", "FETCH_HEAD"]);
        step::run("checking HEAD out", &mut checkout, "git must be installed")?;
        return Ok(());
    }
    let mut command = Command::new("git");
    command.args(["clone", "--quiet", "--no-hardlinks"]).arg(places::workspace()).arg(&clone);
    step::run("cloning HEAD into the system", &mut command, "git must be installed")?;
    Ok(())
}

/// Runs `./x COMMAND` in the system, with its output shown.
fn inside(dir: &Path, command: &str, network: bool) -> Result<Duration> {
    let mut system = system::command(dir, network);
    system.args(["sh", "-c", &format!("cd {CLONE} && exec ./x {command}")]);
    let begun = Instant::now();
    let status = system.stdin(Stdio::null()).status().context("cannot start unshare")?;
    if !status.success() {
        bail!("`./x {command}` failed in {} ({status}); `--reuse` goes on from there", dir.display());
    }
    Ok(begun.elapsed())
}

fn remove(dir: &Path) -> Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    // One file system only: whatever is still mounted below stays untouched.
    let mut command = Command::new("rm");
    command.args(["-rf", "--one-file-system"]).arg(dir);
    step::run("removing the system", &mut command, "look what is mounted below: `findmnt`")?;
    Ok(())
}

fn head() -> Result<String> {
    Ok(step::git(&["rev-parse", "--short", "HEAD"])?.trim().to_owned())
}
