//! The kernel's count of runs and nanoseconds of each BPF program, as the daemon's metrics tell them.

use crate::launch::Daemon;
use crate::root;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::path::Path;

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

/// kernel.bpf_stats_enabled, put back when dropped.
pub struct BpfStats {
    before: String,
}

impl BpfStats {
    const PATH: &'static str = "/proc/sys/kernel/bpf_stats_enabled";

    /// Switches it on.
    pub fn enable() -> Result<Self> {
        if !root::is_root() {
            bail!("switching on bpf_stats needs root: run the benchmark as root");
        }
        let path = Path::new(Self::PATH);
        let before = std::fs::read_to_string(path).with_context(|| format!("reading {}", Self::PATH))?;
        std::fs::write(path, "1").with_context(|| format!("writing {}", Self::PATH))?;
        Ok(Self { before })
    }
}

impl Drop for BpfStats {
    fn drop(&mut self) {
        let _ = std::fs::write(Self::PATH, &self.before);
    }
}
