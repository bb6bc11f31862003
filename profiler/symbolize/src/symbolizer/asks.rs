//! Perf maps: when a process's map is asked for, and whether one is on its way.

use super::super::asker::Job;
use super::super::attach::Jvm;
use super::super::config::Target;
use super::super::process::ProcessState;
use super::Symbolizer;
use emberscope_model::ProcessKey;
use std::time::Instant;

/// A JVM is asked between the ends of windows while an answer takes less than the interval over this:
/// half a percent of one of its threads. Seen: 7 ms for a map of 3,000 methods (JDK 17).
const EARLY_SHARE: u32 = 200;

impl Symbolizer {
    /// JIT addresses seen that no map names yet.
    pub fn unnamed_jit(&self, key: ProcessKey) -> usize {
        self.processes.get(&key).map_or(0, |p| p.jit.unnamed())
    }

    /// Has the process's map fetched in the background, when it has JIT addresses without a name and its
    /// turn has come. True when a job was started: [`Symbolizer::poll`] brings the result.
    pub fn ask(&mut self, target: &Target) -> bool {
        let now = Instant::now();
        let process_dir = self.process_dir(target.key.pid);
        let Some(process) = self.processes.get_mut(&target.key) else { return false };
        if process.in_flight
            || process.exited.is_some()
            || process.jit.unnamed() == 0
            || now < process.next_job
        {
            return false;
        }
        let jvm = process.jvm();
        let job = Job {
            key: target.key,
            epoch: process.epoch,
            jvm: Jvm {
                process_dir,
                pid: target.key.pid,
                nspid: target.nspid,
                start_ticks: target.key.start_ticks,
                uid: target.uid,
                gid: target.gid,
            },
            libjvm: jvm.map(|j| j.library.clone()),
            may_ask: self.config.ask_jvms && process.needs_map() && jvm.is_some_and(|j| !j.never),
            first: !process.looked,
            ours: process.map_is_ours,
            version: jvm.and_then(|j| j.version.clone()),
            wanted: process.jit.wanted(),
            max_bytes: self.config.perf_map_max_bytes,
            timeout: self.config.ask_timeout,
        };
        process.in_flight = self.asker.submit(job);
        self.counters.asks_dropped += u64::from(!process.in_flight);
        process.in_flight
    }

    /// As [`Symbolizer::ask`], between the ends of windows: only where the JVM answers so fast that it
    /// costs it little. Code that the JIT made and dropped within a window has a name only by this.
    pub fn ask_early(&mut self, target: &Target) -> bool {
        let cheap = |p: &ProcessState| p.last_took.saturating_mul(EARLY_SHARE) <= self.config.ask_interval;
        self.processes.get(&target.key).is_some_and(cheap) && self.ask(target)
    }

    /// Whether a job is under way.
    pub fn asking(&self) -> bool {
        self.processes.values().any(|p| p.in_flight)
    }
}
