//! The sampling thread: events in, closed and named windows out to the store.
//!
//! One thread does all of it: who a sample belongs to, its frames' names, its window. Asking JVMs and
//! drivers happens on threads of their rooms; nothing here waits for another process. The ring buffer
//! holds what comes up while a look-up takes long, and what it cannot hold is counted by the kernel side.

use super::PipelineError;
use super::closing::Closing;
use super::health::Health;
use super::heap::Trim;
use super::idle::Idle;
use super::pace::Pace;
use super::pushers::Pushers;
use super::pythons::Pythons;
use super::relabels::Relabels;
use super::runtimes::{self, Processes};
use super::shares::Shares;
use super::stacks::{Entry, StackCache, StackToken};
use super::tables::Tables;
use super::wait_reasons::{Reasons, up_to_the_switch};
use super::waits::OpenWaits;
use emberscope_aggregate::{ClockReading, ClosedWindow, Interner, Windows};
use emberscope_capture::{Capture, CaptureError};
use emberscope_model::{
    Frame, LabelSet, LostCounts, ProcessKey, ProcessRecord, RawEvent, RawSample, RawThread, Role, SampleKind,
    StackEnd, TaskEvent, UnknownReason, WallTime,
};
use emberscope_process::identity::PythonSide;
use emberscope_process::threads::{Owner, OwnerKind, Threads};
use emberscope_process::{Process, Registry};
use emberscope_store::Store;
use emberscope_supervise::{Beat, Weight, attempt, faults};
use emberscope_symbolize::{PendingFrame, PendingStack, Symbolizer, Target};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often clocks, processes and metrics are looked at.
const TICK: Duration = Duration::from_secs(1);
/// How often processes of runtimes are looked for and looked after: a new one's threads burn CPU before they are known.
const LOOK: Duration = Duration::from_millis(150);
/// Longest for one round of reading, counting and naming; the window's end waits for it.
const STUCK: Duration = Duration::from_secs(15);
/// How long the end may take after a failure: what is closed is stored, and a restart does the rest.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// JVMs remembered for being asked between the ends of windows; over it only at the ends.
const MAX_JVMS: usize = 4096;

/// All rooms up to the store.
pub struct Worker {
    pub(super) capture: Capture,
    pub(super) registry: Registry,
    pub(super) symbolizer: Symbolizer,
    pub(super) windows: Windows<StackToken>,
    pub(super) stacks: StackCache,
    pub(super) interner: Interner,
    pub(super) store: Arc<dyn Store>,
    pub(super) closing: Closing,
    pub(super) health: Health,
    /// Labels that became known while their window was open.
    pub(super) relabels: Relabels,
    /// JVMs whose JIT code was sampled.
    pub(super) jvms: HashMap<ProcessKey, Arc<Target>>,
    /// When JVMs are asked for perf maps: between the ends of windows.
    pub(super) mid_window: Ticks,
    /// When threads are asked for what they used: at the ends of windows.
    pub(super) window_end: Ticks,
    /// Whose work each thread does.
    pub(super) threads: Threads,
    /// Processes of runtimes: how each is walked, and what names its threads.
    pub(super) runtimes: Processes,
    /// PySpark's processes, for the binding of workers to tasks.
    pub(super) pythons: Pythons,
    /// When the ring is read.
    pub(super) pace: Pace,
    /// How native code is walked.
    pub(super) tables: Tables,
    /// What was lost up to the last window that closed.
    pub(super) lost: LostCounts,
    /// What users lost in the kernel.
    pub(super) shares: Shares,
    /// Waits that go on.
    pub(super) waits: OpenWaits,
    /// When free memory is given back.
    pub(super) trim: Trim,
    /// Sends closed windows to another server too.
    pub(super) pushers: Pushers,
}

impl Worker {
    /// Samples until `stopped` says so, then closes what is open and names it. What fails or panics ends it, with all
    /// windows stored.
    pub fn run(mut self, stopped: impl Fn() -> bool) -> Result<(), PipelineError> {
        let beat = emberscope_supervise::beat("sampler", STUCK, Weight::Vital);
        let ended = match attempt(|| self.sample(&beat, stopped)) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => PipelineError::from(error),
            Err(panicked) => PipelineError::from(panicked),
        };
        emberscope_supervise::end_within(LAST_WORDS);
        self.store_the_rest();
        Err(ended)
    }

    fn sample(&mut self, beat: &Beat, stopped: impl Fn() -> bool) -> Result<(), CaptureError> {
        let mut events = Vec::new();
        let (mut next_tick, mut next_look) = (Instant::now(), Instant::now());
        while !stopped() {
            beat.busy();
            faults::point("sampler");
            // Up to the window's end and not beyond: what threads used is asked for at that instant.
            let window = self.store.window_length();
            let (rest, timeout) = self.pace.next();
            std::thread::sleep(rest.min(until_end(window)));
            self.read(timeout.min(until_end(window)), &mut events)?;
            if self.window_end.passed(window, Duration::ZERO) {
                self.ask_threads(&mut events)?;
                self.count_open_waits();
            }
            if Instant::now() >= next_look {
                next_look = Instant::now() + LOOK;
                self.registry.look_for_runtimes();
                let (threads, symbolizer) = (&mut self.threads, &mut self.symbolizer);
                self.runtimes.tick(&self.registry, &mut self.capture, threads, symbolizer);
                self.pythons.tick(&self.registry, &mut self.capture);
            }
            if Instant::now() >= next_tick {
                next_tick = Instant::now() + TICK;
                self.read(Duration::ZERO, &mut events)?;
                self.count_open_waits();
                self.tick()?;
            }
            self.store_named();
            if self.closing.is_empty() {
                emberscope_supervise::windows_are_current(false);
            }
        }
        self.finish(&mut events)
    }

    fn read(&mut self, timeout: Duration, events: &mut Vec<RawEvent>) -> Result<(), CaptureError> {
        self.capture.read(timeout, events)?;
        for event in events.drain(..) {
            self.take(event);
        }
        if self.symbolizer.met_passing() {
            self.pace.passing();
        }
        self.symbolizer.read_names();
        Ok(())
    }

    fn take(&mut self, event: RawEvent) {
        match event {
            RawEvent::Stack(raw) => self.stacks.insert(raw, |pid| self.registry.tenant(pid)),
            RawEvent::Sample(sample) => self.count(&sample),
            RawEvent::Wait(wait) => self.count_wait(&wait),
            RawEvent::Thread(raw) => self.book(&raw),
            RawEvent::Mmap { pid, .. } => {
                self.registry.on_mmap(pid);
                self.tables.mapped(pid, self.registry.tenant(pid));
                if let Some(key) = self.registry.known(pid) {
                    self.symbolizer.on_mmap(key);
                }
            }
            RawEvent::Task(task) => {
                let key = self.registry.known(task.pid);
                self.registry.on_task(&task);
                self.threads.on_task(&task);
                self.tables.on_task(&task, self.registry.tenant(task.pid));
                if task.event == TaskEvent::Exec {
                    self.pace.started();
                    if let Some(key) = self.registry.known(task.pid) {
                        self.pythons.on_exec(key, &self.registry, &mut self.capture);
                    }
                }
                match (task.event, key) {
                    (TaskEvent::Exec, Some(key)) => {
                        self.stacks.forget_tokens(task.pid);
                        self.symbolizer.on_exec(key);
                        self.runtimes.on_exec(key, &mut self.capture);
                    }
                    (TaskEvent::Exit, Some(key)) if self.registry.by_key(key).is_some_and(|p| p.exited) => {
                        self.symbolizer.on_exit(key);
                        self.jvms.remove(&key);
                    }
                    _ => {}
                }
            }
        }
    }

    fn count(&mut self, sample: &RawSample) {
        if let Some((labels, token)) = self.whose(sample) {
            self.windows.add(sample.time_ns, &labels, token, sample.kind, sample.weight);
        }
    }

    /// The labels and the stack of a sample; None: it is not kept.
    pub(super) fn whose(&mut self, sample: &RawSample) -> Option<(Arc<LabelSet>, StackToken)> {
        let process = self.registry.get(sample.pid);
        if !process.kept {
            self.health.not_kept();
            return None;
        }
        self.tables.sampled(sample.pid, process.tenant);
        let (key, jvm, target) = (process.key, process.is_jvm(), target_of(process));
        let owner = owner_of(process);
        if sample.name_seq == 0 && self.threads.is_new(&owner, sample.tid) {
            // Born before the probe was there. It runs at this moment, so it is in /proc.
            if let Some(comm) = runtimes::comm(sample.pid, sample.tid) {
                self.threads.learn_comm(&owner, sample.tid, &comm);
            }
        }
        let labels = self.threads.labels(&owner, sample.tid, sample.name_seq);
        let (symbolizer, jvms) = (&mut self.symbolizer, &mut self.jvms);
        let known = self.stacks.token(key, sample.stack, |raw| {
            let end = raw.end;
            let pending = attempt(|| {
                faults::point("naming");
                symbolizer.begin(&target, raw)
            });
            // A file that cannot be read costs its stack, not the sampling.
            let pending = pending.unwrap_or_else(|_| unreadable(end));
            let entry = Entry { target: Arc::new(target), pending };
            if jvm && entry.pending.waits() && jvms.len() < MAX_JVMS {
                jvms.insert(key, entry.target.clone());
            }
            entry
        });
        let token = known.unwrap_or_else(|| self.stacks.lost_token(key, || Arc::new(target)));
        self.health.sample(sample.kind);
        Some((labels, token))
    }

    fn book(&mut self, raw: &RawThread) {
        let process = self.registry.get(raw.pid);
        if process.kept {
            for line in self.threads.on_thread(raw, &owner_of(process)) {
                self.windows.book(line.from_ns, line.until_ns, &line.labels, &line.sums);
            }
        }
    }

    /// Has every thread of every JVM say what it has used until now.
    fn ask_threads(&mut self, events: &mut Vec<RawEvent>) -> Result<(), CaptureError> {
        if let Err(error) = self.capture.ask_threads() {
            tracing::warn!(%error, "threads are not asked for what they used: tasks show it when they end");
        }
        self.read(Duration::ZERO, events)
    }

    fn tick(&mut self) -> Result<(), CaptureError> {
        let change = self.capture.refresh_cpus()?;
        self.health.cpus_changed(&change);
        self.shares.tick(&mut self.capture, &mut self.registry);
        self.relabel();
        let registry = &self.registry;
        self.symbolizer.tidy(|key| registry.by_key(key).is_some_and(|process| !process.exited));
        let now = ClockReading::take();
        self.threads.tick(now.monotonic_ns);
        let closed = self.windows.advance(now);
        self.close(closed);
        let window = self.store.window_length();
        if self.mid_window.passed(window, window / 2) {
            for target in self.jvms.values() {
                self.symbolizer.ask_early(target);
            }
        }
        self.health.update(self);
        self.tables.tick();
        self.trim.tick();
        Ok(())
    }

    fn relabel(&mut self) {
        for relabel in self.registry.tick() {
            self.threads.relabel(&relabel.from);
            let kept = self.registry.by_key(relabel.key).is_none_or(|process| process.kept);
            let to = kept.then_some(relabel.to);
            match &to {
                Some(to) => self.store.relabel(&relabel.from, to),
                None => self.store.forget(&relabel.from),
            }
            self.relabels.note(relabel.from, to);
        }
    }

    /// Names the windows whose maps have come, and hands them to the store.
    fn store_named(&mut self) {
        self.symbolizer.poll();
        while let Some((window, lost)) = self.closing.next(&mut self.symbolizer, Instant::now()) {
            self.name_and_store(window, lost);
        }
    }

    /// Windows that are over wait for their names. What was lost is of the window that closes first, and not of one that
    /// happens to be named when it is counted.
    fn close(&mut self, closed: Vec<ClosedWindow<StackToken>>) {
        for window in closed {
            let lost_by_now = self.capture.lost();
            let lost = lost_by_now.since(&self.lost);
            self.lost = lost_by_now;
            self.closing.push(window, lost, Instant::now());
        }
    }

    fn name_and_store(&mut self, mut window: ClosedWindow<StackToken>, lost: LostCounts) {
        let mut relabels = self.relabels.apply();
        window.rows.retain_mut(|row| relabels.keeps(&mut row.labels));
        window.ledger.retain_mut(|line| relabels.keeps(&mut line.labels));
        let processes = self.processes_of(&window);
        let (symbolizer, interner) = (&mut self.symbolizer, &mut self.interner);
        let (mut idle, mut reasons) = (Idle::default(), Reasons::default());
        let window = window.into_window(processes, lost, |token, kind, labels| {
            // Its frames are shared already, by the symbolizer's own table.
            let stack = attempt(|| symbolizer.finish(&token.0.target, &token.0.pending));
            let stack = match stack {
                Ok(stack) if kind == SampleKind::OffCpu => {
                    interner.stack(up_to_the_switch(&stack.frames), stack.end)
                }
                Ok(stack) => interner.stack(&stack.frames, stack.end),
                Err(_) => interner.stack(&[quarantined()], token.0.pending.end),
            };
            idle.strip(&stack, labels);
            if kind == SampleKind::OffCpu {
                reasons.tell(&stack, labels);
            }
            stack
        });
        self.health.window(&window);
        self.pushers.iter().for_each(|(_, pusher)| pusher.offer(&window));
        self.store.append(window);
        emberscope_supervise::windows_are_current(true);
        self.interner.sweep();
    }

    fn processes_of(&self, window: &ClosedWindow<StackToken>) -> Vec<Arc<ProcessRecord>> {
        let keys: HashSet<ProcessKey> = window.rows.iter().map(|row| row.stack.0.target.key).collect();
        let record = |key: ProcessKey| {
            let process = self.registry.by_key(key)?;
            let Some(jvm) = self.symbolizer.jvm_facts(key) else { return Some(process.record.clone()) };
            Some(Arc::new(ProcessRecord { jvm: Some(jvm), ..(*process.record).clone() }))
        };
        keys.into_iter().filter_map(record).collect()
    }

    /// Counts what is still in the ring, closes all windows and gives their maps a last chance.
    fn finish(&mut self, events: &mut Vec<RawEvent>) -> Result<(), CaptureError> {
        self.ask_threads(events)?;
        self.count_open_waits();
        self.relabel();
        let closed = self.windows.close_all(ClockReading::take());
        self.close(closed);
        while !self.closing.is_empty() {
            self.store_named();
            std::thread::sleep(Duration::from_millis(20));
        }
        self.health.update(self);
        Ok(())
    }

    /// After a failure: closed windows go to the store with the names that they have, the open one with them.
    fn store_the_rest(&mut self) {
        let closed = attempt(|| self.windows.close_all(ClockReading::take()));
        self.close(closed.unwrap_or_default());
        while let Some((window, lost)) = self.closing.first() {
            let from = window.range.from;
            match attempt(|| self.name_and_store(window, lost)) {
                Ok(()) => tracing::info!(%from, "stored a window before the end"),
                Err(error) => tracing::error!(%from, %error, "a window is lost"),
            }
        }
    }
}

/// A stack whose frames could not be read without a failure of ours.
fn unreadable(end: StackEnd) -> PendingStack {
    PendingStack { frames: [PendingFrame::Named(quarantined())].into(), end }
}

fn quarantined() -> Arc<Frame> {
    Arc::new(Frame::unknown(UnknownReason::Quarantined, ""))
}

/// Tells once a window that a moment of it has passed.
#[derive(Debug, Default)]
pub struct Ticks(u64);

impl Ticks {
    /// The moment is `after` the window's start, which lies on the wall clock.
    fn passed(&mut self, window: Duration, after: Duration) -> bool {
        let ns = |length: Duration| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let number = WallTime::now().0.saturating_sub(ns(after)) / ns(window).max(1);
        std::mem::replace(&mut self.0, number) != number
    }
}

/// How long the window that is now still lasts, and a little more.
fn until_end(window: Duration) -> Duration {
    let length = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX).max(1);
    Duration::from_nanos(length - WallTime::now().0 % length) + Duration::from_micros(500)
}

fn owner_of(process: &Process) -> Owner<'_> {
    // These are JVMs before libjvm is mapped.
    let jvm = process.is_jvm() || matches!(process.role, Role::Executor | Role::Driver);
    let kind = match process.python {
        _ if jvm => OwnerKind::Jvm,
        Some(PythonSide::Daemon) => OwnerKind::Daemon,
        Some(PythonSide::Worker | PythonSide::Helper) => OwnerKind::Worker,
        Some(PythonSide::Driver) | None => OwnerKind::Other,
    };
    let (labels, role, tenant) = (&process.labels, process.role, process.tenant);
    Owner { pid: process.key.pid, labels, role, kind, tenant }
}

fn target_of(process: &Process) -> Target {
    Target {
        key: process.key,
        uid: process.uid,
        gid: process.gid,
        nspid: process.inner_pid,
        tenant: process.tenant,
    }
}
