//! A bare Debian bookworm in a directory, made by debootstrap, and commands that run in it.

use super::apt;
use crate::{places, root, step};
use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Variables that say how the network is reached.
const PROXIES: [&str; 8] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
];

/// Makes it (minbase); apt in it asks this machine's mirrors.
pub fn bootstrap(dir: &Path) -> Result<Duration> {
    if places::on_path("debootstrap").is_none() {
        root::apt_install(&["debootstrap"], "debootstrap")?;
    }
    let sources = apt::sources()?;
    let mut command = Command::new("debootstrap");
    command.args(["--variant=minbase", "bookworm"]).arg(dir).arg(sources.main());
    let mend = "its own log is debootstrap/debootstrap.log in that directory";
    let took = step::run("making a bare bookworm with debootstrap", &mut command, mend)?;
    write(dir, "etc/apt/sources.list", sources.list().as_bytes())?;
    Ok(took)
}

/// One in `dir`, for a test to change: a copy of one that is made once in the cache.
pub fn copy(dir: &Path) -> Result<()> {
    let kept = places::cache()?.join("bookworm");
    let stamp = kept.join("stamp");
    if !stamp.is_file() {
        let _lock = places::lock_cache()?;
        // Another test may have made it while this one waited, and be copying it now.
        if !stamp.is_file() {
            let _ = std::fs::remove_dir_all(&kept);
            std::fs::create_dir_all(&kept).with_context(|| format!("creating {}", kept.display()))?;
            bootstrap(&kept.join("root"))?;
            std::fs::write(&stamp, "whole").with_context(|| format!("writing {}", stamp.display()))?;
        }
    }
    let mut cp = Command::new("cp");
    cp.args(["--archive", "--no-target-directory"]).arg(kept.join("root")).arg(dir);
    step::run("copying a bare bookworm", &mut cp, "there must be 300 MB of room").map(drop)
}

/// A command that runs in the system what the caller adds to it: with this machine's /dev, /proc and /sys, with no variables
/// but HOME, PATH and those that say how the network is reached.
pub fn command(dir: &Path, network: bool) -> Command {
    // The mounts are in a mount namespace that ends with the command, so nothing is left mounted.
    let script = format!(
        "set -e\n\
         mount --bind \"$0\" \"$0\"\n\
         mount --rbind /dev \"$0/dev\"\n\
         mount -t proc proc \"$0/proc\"\n\
         mount --rbind /sys \"$0/sys\"\n\
         mountpoint -q \"$0/sys/kernel/tracing\" || mount -t tracefs tracefs \"$0/sys/kernel/tracing\"\n\
         {}\
         exec chroot \"$0\" /usr/bin/env -i \"$@\"\n",
        if network { "" } else { "ip link set lo up\n" }
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private"]);
    if !network {
        unshare.arg("--net");
    }
    unshare.args(["sh", "-c", &script]).arg(dir);
    unshare.args(["HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
    for variable in PROXIES {
        if let Ok(value) = std::env::var(variable) {
            unshare.arg(format!("{variable}={value}"));
        }
    }
    unshare
}

/// Writes a file of the system.
pub fn write(dir: &Path, file: &str, bytes: &[u8]) -> Result<()> {
    let path = dir.join(file);
    std::fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
}
