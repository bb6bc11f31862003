//! CPU time and memory of processes, as the kernel accounts them.

use anyhow::{Context as _, Result};

/// Clock ticks a second of /proc/PID/stat: USER_HZ, 100 on every architecture that Spark runs on.
const USER_HZ: f64 = 100.0;

/// utime + stime of all threads of a process, the ended ones too, in seconds (fields 14 and 15 of
/// /proc/PID/stat, proc(5); 10 ms ticks).
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let field = |n: usize| -> Option<f64> {
        // The name in parentheses may hold anything; fields count from behind its last one.
        stat.rsplit_once(')')?.1.split_whitespace().nth(n - 3)?.parse().ok()
    };
    let ticks = field(14).zip(field(15)).with_context(|| format!("{path} has no CPU times"))?;
    Ok((ticks.0 + ticks.1) / USER_HZ)
}

/// Largest resident set so far, in bytes (VmHWM of /proc/PID/status).
pub fn peak_rss_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    Ok(kib.with_context(|| format!("{path} has no VmHWM"))? * 1024)
}
