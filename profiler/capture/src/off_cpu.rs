//! Waits of threads that run a task: a [`Source`] on the scheduler's tracepoints, and those waits that are not over yet.
//!
//! The programs tell a wait when it ends (profiler-ebpf, `off_cpu.rs`). One that lasts is in their map meanwhile, where it is
//! read here, so that its time is in the windows in which it passes.
// For `aya::Pod`.
#![allow(unsafe_code)]

use super::error::CaptureError;
use super::features::HostFeatures;
use super::loader;
use super::session::Capture;
use super::source::{Source, SourceState};
use super::tracepoints::too_old;
use aya::Ebpf;
use aya::maps::{HashMap, MapData};
use aya::programs::RawTracePoint;
use aya::programs::raw_trace_point::RawTracePointLinkId;
use emberscope_model::{RawSample, RawWait, SampleKind, Tid};
use profiler_ebpf::{MAX_WAITERS, WaiterState};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The programs, and their tracepoints. Who wakes is watched first: no wait begins before its end can be seen.
pub(super) const PROGRAMS: [(&str, &str); 2] =
    [("off_cpu_wakeup", "sched_wakeup"), ("off_cpu_switch", "sched_switch")];

/// As the map has it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Waiter(profiler_ebpf::Waiter);

// SAFETY: integers without padding between them (its size is asserted where it is made).
unsafe impl aya::Pod for Waiter {}

/// The waiting threads, by tid.
pub(super) type Waiters = HashMap<MapData, u32, Waiter>;

/// The tracepoints, which are the whole machine's: attached while there is a CPU to watch, and a process that runs tasks.
pub(super) struct OffCpuSource {
    every: u64,
    cpus: BTreeSet<u32>,
    /// Whether a process runs tasks; true until that is known.
    tasks: bool,
    links: Vec<(&'static str, RawTracePointLinkId)>,
}

impl OffCpuSource {
    /// Not attached yet. The programs are loaded.
    pub(super) fn new(every: u64) -> Self {
        Self { every, cpus: BTreeSet::new(), tasks: true, links: Vec::new() }
    }

    /// Puts the programs on the tracepoints, or takes them off.
    fn set(&mut self, ebpf: &mut Ebpf) -> Result<(), CaptureError> {
        if self.cpus.is_empty() || !self.tasks {
            for (name, link) in self.links.drain(..) {
                let program: &mut RawTracePoint = loader::program(ebpf, name)?;
                program.detach(link).map_err(|e| CaptureError::attach(name, e))?;
            }
        } else if self.links.is_empty() {
            for (name, tracepoint) in PROGRAMS {
                let program: &mut RawTracePoint = loader::program(ebpf, name)?;
                let link = program.attach(tracepoint).map_err(|e| CaptureError::attach(name, e))?;
                self.links.push((name, link));
            }
        }
        Ok(())
    }
}

/// What this host lacks for sampling waits, and what mends that.
pub(super) fn lacks(host: &HostFeatures) -> Option<&'static str> {
    let offsets = &host.offsets;
    let watched = host.raw_tracepoints && offsets.task_state.is_some() && offsets.task_pid.is_some();
    let unwatched = "BPF programs on the scheduler's tracepoints: CONFIG_BPF_EVENTS brings them";
    too_old(host).or_else(|| (!watched).then_some(unwatched))
}

impl Source for OffCpuSource {
    fn state(&self) -> SourceState {
        SourceState { kind: SampleKind::OffCpu, event: None, every: self.every, cpus: self.cpus.len() }
    }

    fn lacks(&self, host: &HostFeatures) -> Option<Cow<'static, str>> {
        lacks(host).map(Cow::Borrowed)
    }

    fn attach(&mut self, ebpf: &mut Ebpf, cpu: u32) -> Result<bool, CaptureError> {
        self.cpus.insert(cpu);
        self.set(ebpf).map(|()| true)
    }

    fn detach(&mut self, ebpf: &mut Ebpf, cpu: u32) -> Result<(), CaptureError> {
        // The tracepoints stay while any other CPU is watched: a wait of a thread may end on each.
        self.cpus.remove(&cpu);
        self.set(ebpf)
    }

    fn has_tasks(&mut self, ebpf: &mut Ebpf, are: bool) -> Result<(), CaptureError> {
        self.tasks = are;
        self.set(ebpf)
    }
}

impl Capture {
    /// Whether waits are sampled.
    pub fn has_waits(&self) -> bool {
        self.sources.iter().any(|source| source.state().kind == SampleKind::OffCpu)
    }

    /// Whether there are processes that run tasks: else no thread's waits need to be watched.
    ///
    /// # Errors
    /// A tracepoint cannot be attached to, or left.
    pub fn has_tasks(&mut self, are: bool) -> Result<(), CaptureError> {
        self.sources.iter_mut().try_for_each(|source| source.has_tasks(&mut self.ebpf, are))
    }

    /// The waits that are not over, as they are at `now_ns` of CLOCK_MONOTONIC, of at least this length, and what their threads
    /// waited for shortly before and the programs did not tell yet: a thread that stands still for long may not tell it
    /// for as long. What the ring has of a wait's end was sent after it was read here, or is sent yet.
    pub fn open_waits(&self, now_ns: u64, at_least_ns: u64) -> Vec<RawWait> {
        let entries = self.waiters.iter().take(MAX_WAITERS as usize).filter_map(Result::ok);
        let open = entries.filter(|(_, Waiter(waiter))| {
            waiter.state == WaiterState::Waits as u32
                && now_ns.saturating_sub(waiter.began_ns) >= at_least_ns
                && waiter.began_ns != 0
        });
        open.flat_map(|(tid, Waiter(waiter))| waits_of(tid, &waiter, now_ns)).collect()
    }
}

/// A thread's wait that goes on, and of each cause what was not told of waits before it.
fn waits_of(tid: Tid, waiter: &profiler_ebpf::Waiter, now_ns: u64) -> Vec<RawWait> {
    let wait = |began_ns, (time_ns, weight, waits), stack, (several, walked)| RawWait {
        sample: RawSample {
            time_ns,
            weight,
            stack,
            pid: waiter.pid,
            tid,
            cpu: 0,
            name_seq: waiter.name_seq,
            kind: SampleKind::OffCpu,
            slot: 0,
            detail: waits,
            kernel_mode: true,
        },
        began_ns,
        several,
        walked,
    };
    let lasted = now_ns.saturating_sub(waiter.began_ns);
    let goes_on =
        wait(waiter.began_ns, (now_ns, lasted, 1), waiter.stack(lasted, now_ns), (false, waiter.walked != 0));
    // All of these ended before this one began.
    let owed = waiter.causes.iter().flat_map(|cause| {
        let owed = cause.alike.iter().enumerate().filter(|(_, alike)| alike.owed_ns != 0);
        owed.map(|(length, alike)| {
            let waits = u32::try_from(alike.owed).unwrap_or(u32::MAX);
            let of = (waiter.began_ns, alike.owed_ns, waits);
            wait(alike.owed_since_ns, of, cause.stack_of(length, now_ns), (true, false))
        })
    });
    std::iter::once(goes_on).chain(owed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler_ebpf::{Alike, Cause};

    #[test]
    fn what_was_waited_shortly_before_comes_with_the_wait_that_goes_on() {
        let mut waiter = profiler_ebpf::Waiter { began_ns: 500, cause: 1, name_seq: 4, ..Default::default() };
        let owed = Alike { owed_ns: 30, owed_since_ns: 100, owed: 3, ..Alike::default() };
        waiter.causes[0] =
            Cause { stack: 7, alike: [Alike::default(), owed, Alike::default()], ..Cause::default() };
        waiter.causes[1] = Cause { stack: 8, ..Cause::default() };
        let waits = waits_of(9, &waiter, 800);
        let told = |wait: &RawWait| {
            let sample = &wait.sample;
            (wait.began_ns, sample.time_ns, sample.weight, sample.stack, sample.detail, wait.several)
        };
        assert_eq!(
            waits.iter().map(told).collect::<Vec<_>>(),
            [(500, 800, 300, 8, 1, false), (100, 500, 30, 7, 3, true)]
        );
        assert!(waits.iter().all(|wait| (wait.sample.tid, wait.sample.name_seq) == (9, 4)));
    }
}
