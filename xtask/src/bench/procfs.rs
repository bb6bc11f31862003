//! CPU time and memory of processes and threads, as the kernel accounts them.

use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// A thread's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Time on a CPU, nanoseconds.
    pub cpu_ns: u64,
    /// Time runnable without one, nanoseconds.
    pub delay_ns: u64,
}

/// The threads of a process whose name (comm, 15 bytes) begins so, from /proc/PID/task/TID/schedstat
/// (Documentation/scheduler/sched-stats.rst). Threads that end meanwhile are left out.
pub fn threads(pid: u32, name: &str) -> Result<Vec<Thread>> {
    let dir = format!("/proc/{pid}/task");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&dir).with_context(|| format!("reading {dir}"))? {
        let path = entry.with_context(|| format!("reading {dir}"))?.path();
        let comm = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        let Ok(text) = std::fs::read_to_string(path.join("schedstat")) else { continue };
        let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
        if let (true, Some(cpu_ns), Some(delay_ns)) = (comm.starts_with(name), numbers.next(), numbers.next())
        {
            found.push(Thread { cpu_ns, delay_ns });
        }
    }
    Ok(found)
}

/// Clock ticks a second of /proc/PID/stat: USER_HZ, 100 on every architecture that Spark runs on.
const USER_HZ: f64 = 100.0;

/// What all CPUs did since the machine started, in ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// All but idle.
    pub busy: u64,
    /// In interrupts, hard and soft.
    pub interrupts: u64,
    /// Not had, because the hypervisor ran something else.
    pub stolen: u64,
}

impl Machine {
    /// What was added since.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
            stolen: self.stolen.saturating_sub(earlier.stolen),
        }
    }
}

/// The first line of /proc/stat (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal.
pub fn machine() -> Result<Machine> {
    let text = std::fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
    let line = text.lines().next().and_then(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().map_while(|tick| tick.parse().ok()).collect();
    let [user, nice, system, _, _, irq, softirq, stolen, ..] = ticks[..] else {
        anyhow::bail!("/proc/stat does not begin with eight times of all CPUs")
    };
    Ok(Machine { busy: user + nice + system + irq + softirq + stolen, interrupts: irq + softirq, stolen })
}

/// All processes that there are now.
pub fn pids() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The words of a process's command line, the last one empty; none where it is gone.
pub fn command_line(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Processes that run an application's executors on this host, by their command lines.
pub fn executors(app: &str) -> Vec<u32> {
    let is_one = |pid: &u32| {
        let words = command_line(*pid);
        let has = |word: &str| words.iter().any(|own| own == word);
        words.first().is_some_and(|program| program.ends_with("/java")) && has("--executor-id") && has(app)
    };
    pids().into_iter().filter(is_one).collect()
}

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

/// Bytes of a process's BPF maps and programs, each once (bpf_map_show_fdinfo, kernel/bpf/syscall.c).
pub fn bpf_bytes(pid: u32) -> Result<u64> {
    let dir = format!("/proc/{pid}/fdinfo");
    let mut found: BTreeMap<(String, u64), u64> = BTreeMap::new();
    for entry in std::fs::read_dir(&dir).with_context(|| format!("reading {dir}"))?.flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        if let Some((id, bytes)) = bpf_object(&text) {
            found.insert(id, bytes);
        }
    }
    Ok(found.values().sum())
}

/// What is told of a BPF object: which it is, and its bytes.
fn bpf_object(text: &str) -> Option<((String, u64), u64)> {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let id = ["map_id:", "prog_id:"].iter().find_map(|key| Some(((*key).to_owned(), field(key)?)))?;
    Some((id, field("memlock:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bpf_objects_tell_their_memory() {
        let text = "pos:\t0\nflags:\t02000002\nmap_type:\t1\nmax_entries:\t10\nmemlock:\t4096\nmap_id:\t7\nfrozen:\t0\n";
        assert_eq!(bpf_object(text), Some((("map_id:".to_owned(), 7), 4096)));
        assert_eq!(bpf_object("pos:\t0\nmemlock:\t1\n"), None);
    }
}
