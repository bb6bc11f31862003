//! The sampling thread: events in, closed and named windows out to the store.
//!
//! One thread does all of it: who a sample belongs to, its frames' names, its window. Asking JVMs and
//! drivers happens on threads of their rooms; nothing here waits for another process. The ring buffer
//! holds what comes up while a look-up takes long, and what it cannot hold is counted by the kernel side.

mod moments;
mod samples;
mod storing;
mod warm;

use super::PipelineError;
use super::between::Between;
use super::closing::Closing;
use super::derived::derived;
use super::health::Health;
use super::heap::Trim;
use super::named::Named;
use super::pace::Pace;
use super::pushers::Pushers;
use super::pythons::Pythons;
use super::relabels::Relabels;
use super::runtimes::Processes;
use super::shares::Shares;
use super::stacks::{StackCache, StackToken};
use super::tables::Tables;
use super::waits::OpenWaits;
use emberscope_aggregate::{ClockReading, Counts, Interner, Windows};
use emberscope_capture::{Capture, CaptureError};
use emberscope_model::{
    Frame, LostCounts, ProcessKey, RawEvent, RawSample, RawThread, TaskEvent, UnknownReason,
};
use emberscope_process::Registry;
use emberscope_process::threads::Threads;
use emberscope_store::Store;
use emberscope_supervise::{Beat, Weight, attempt, faults};
use emberscope_symbolize::{Symbolizer, Target};
pub use moments::Ticks;
use moments::until_end;
use samples::owner_of;
use std::collections::HashMap;
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
/// Events for which memory is kept between two readings.
const EVENTS_KEPT: usize = 4096;

/// All rooms up to the store, used by the sampling thread alone.
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
    /// What users lost in the kernel for want of room.
    pub(super) shares: Shares,
    /// Waits that go on, and up to when each is counted.
    pub(super) waits: OpenWaits,
    /// Events that the user named.
    pub(super) named: Named,
    /// How long threads waited for their next task.
    pub(super) between: Between,
    /// When free memory is given back.
    pub(super) trim: Trim,
    /// Sends closed windows to another server too.
    pub(super) pushers: Pushers,
}

impl Worker {
    /// Samples until `stopped` says so, then closes what is open and names it.
    ///
    /// # Errors
    /// [`PipelineError::Capture`]: the kernel side fails. [`PipelineError::Panicked`]: a defect. All windows are
    /// stored then, with the names that they have, and the process ends within [`LAST_WORDS`].
    pub fn run(mut self, stopped: impl Fn() -> bool) -> Result<(), PipelineError> {
        let beat = emberscope_supervise::beat("sampler", STUCK, Weight::Vital);
        let ended = match attempt(|| self.sample(&beat, |_| stopped()).and_then(|()| self.finish())) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => PipelineError::from(error),
            Err(panicked) => PipelineError::from(panicked),
        };
        emberscope_supervise::end_within(LAST_WORDS);
        self.store_the_rest();
        Err(ended)
    }

    fn sample(&mut self, beat: &Beat, stopped: impl Fn(&Self) -> bool) -> Result<(), CaptureError> {
        let mut events = Vec::new();
        let (mut next_tick, mut next_look) = (Instant::now(), Instant::now());
        while !stopped(self) {
            beat.busy();
            faults::point("sampler");
            // Up to the window's end and not beyond: what threads used is asked for at that instant.
            let window = self.store.window_length();
            let (rest, timeout) = self.pace.next(self.runtimes.await_layouts());
            std::thread::sleep(rest.min(until_end(window)));
            self.read(timeout.min(until_end(window)), &mut events)?;
            if self.window_end.passed(window, Duration::ZERO) {
                self.ask_threads(&mut events)?;
                self.count_open_waits();
            }
            let (threads, symbolizer) = (&mut self.threads, &mut self.symbolizer);
            if Instant::now() >= next_look {
                next_look = Instant::now() + LOOK;
                self.registry.look_for_runtimes();
                self.runtimes.tick(&self.registry, &mut self.capture, threads, symbolizer);
                self.pythons.tick(&self.registry, &mut self.capture);
            } else {
                self.runtimes.take_found(&self.registry, &mut self.capture, threads, symbolizer);
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
        Ok(())
    }

    fn read(&mut self, timeout: Duration, events: &mut Vec<RawEvent>) -> Result<(), CaptureError> {
        self.capture.read(timeout, events)?;
        for event in events.drain(..) {
            self.take(event);
        }
        // When all threads are asked for their accounts there are as many as threads.
        events.shrink_to(EVENTS_KEPT);
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
            RawEvent::Pause(raw) => self.pause(&raw),
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
            let labels = self.named.tell(sample, labels);
            let counts =
                Counts { kind: sample.kind, samples: 1, weight: sample.weight, derived: derived(sample) };
            self.windows.add(sample.time_ns, &labels, token, counts);
        }
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
        let of = |pid| registry.by_key(registry.known(pid)?);
        self.threads.end_of(|pid| of(pid).is_some_and(|process| process.exited));
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

    /// Counts what is still in the ring, closes all windows and gives their maps a last chance.
    fn finish(&mut self) -> Result<(), CaptureError> {
        self.ask_threads(&mut Vec::new())?;
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
}

/// A frame of what is left alone after a failure.
fn quarantined() -> Arc<Frame> {
    Arc::new(Frame::unknown(UnknownReason::Quarantined, ""))
}
