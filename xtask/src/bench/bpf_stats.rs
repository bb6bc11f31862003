//! The kernel's count of runs and nanoseconds of each BPF program, as the daemon's metrics tell them.
//!
//! The kernel counts while somebody holds a descriptor that asks for it (bpf(2), BPF_ENABLE_STATS, Linux 5.8): it ends
//! with us, whatever ends us.

// For bpf(2).
#![allow(unsafe_code)]

use crate::launch::Daemon;
use crate::root;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::os::fd::{FromRawFd as _, OwnedFd};

/// Runs and nanoseconds of each BPF program of the daemon so far, by its name.
pub fn programs(daemon: &Daemon) -> Result<BTreeMap<String, (f64, f64)>> {
    let text = daemon.get("/metrics")?.body;
    let mut found: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for line in text.lines() {
        let parsed = line.split_once("{program=\"").and_then(|(name, rest)| {
            let (program, value) = rest.split_once("\"} ")?;
            Some((name, program, value.parse::<f64>().ok()?))
        });
        match parsed {
            Some(("emberscope_bpf_runs_total", program, value)) => {
                found.entry(program.to_owned()).or_default().0 = value
            }
            Some(("emberscope_bpf_run_nanoseconds_total", program, value)) => {
                found.entry(program.to_owned()).or_default().1 = value;
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Numbers of bpf(2), include/uapi/linux/bpf.h.
const BPF_ENABLE_STATS: libc::c_int = 32;
const BPF_STATS_RUN_TIME: u32 = 0;

/// The kernel counts as long as this lives.
pub struct BpfStats(#[expect(dead_code, reason = "held, not used")] OwnedFd);

impl BpfStats {
    /// Switches counting on.
    pub fn enable() -> Result<Self> {
        if !root::is_root() {
            bail!("having the kernel count what BPF programs cost needs root: run the benchmark as root");
        }
        let attributes = BPF_STATS_RUN_TIME;
        // SAFETY: the kernel reads so many bytes of the attributes, and nothing else of ours.
        let fd = unsafe {
            libc::syscall(libc::SYS_bpf, BPF_ENABLE_STATS, &raw const attributes, size_of_val(&attributes))
        };
        if fd < 0 {
            let error = std::io::Error::last_os_error();
            return Err(error).context("bpf(BPF_ENABLE_STATS), which needs Linux 5.8");
        }
        // SAFETY: a descriptor that was just made, and is nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_ends_with_who_asked_for_it() {
        if !root::is_root() {
            return eprintln!("skipped: counting needs root");
        }
        let switch = || std::fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled").unwrap();
        let before = switch();
        // Where the kernel has no BPF, or a container may not use it, that is what is said.
        match BpfStats::enable() {
            Ok(stats) => drop(stats),
            Err(error) => eprintln!("skipped: {error:#}"),
        }
        assert_eq!(switch(), before, "the system's own switch is left alone");
    }
}
