//! What is kept of one process: its executable mappings, the files behind them, the names of its JIT code.

mod room;
mod runtime;

pub use runtime::{RuntimeState, Walked};

use super::config::Target;
use super::deferred::Slots;
use super::files::FileSlot;
use super::jit::JitNames;
use super::native::ModuleId;
use emberscope_model::{JvmFacts, NameSource, Pid, RuntimeId, StackEnd, Tenant};
use emberscope_runtime::Runtimes;
use emberscope_target::errand::{self, About, Errand, Ticket, What};
use emberscope_target::maps::{self, Mapping, Maps};
use emberscope_target::open;
use std::path::Path;
use std::time::{Duration, Instant};

/// `/proc/PID/maps` is read at most this often for one process. While reading it again does not help
/// (walking code without frame pointers gives addresses that are none) the pause doubles, up to the second.
const REREAD: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// How long the sampling thread waits for the mappings, where it did not wait much lately; those of a JVM take 2 ms.
const PATIENCE: Duration = Duration::from_millis(100);
/// Longest pause between two attempts to ask a JVM that does not answer.
const MAX_PAUSE: Duration = Duration::from_secs(600);
/// Signals that brought no socket before a JVM is left alone for good.
const MAX_VAIN_SIGNALS: u32 = 2;

/// A file behind a mapping, as far as it has been looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// The file was not looked at yet.
    New,
    /// The file is known to [`super::native::Natives`], in that generation.
    Known(ModuleId, u64),
    /// The file is being looked at.
    Coming(FileSlot),
    /// The file cannot be opened.
    Unreadable,
}

/// What is kept of one process.
pub struct ProcessState {
    /// Executable mappings, as /proc/PID/maps had them when it was read last.
    pub mappings: Vec<Mapping>,
    /// The file of each mapping, in the same order.
    pub files: Vec<FileState>,
    path_bytes: usize,
    /// Names of the process's JIT code, from perf maps.
    pub jit: JitNames,
    /// The process's deferred frames, on their way to names.
    pub deferred: Slots,
    /// Batches of deferred frames that are being read.
    pub deferred_in_flight: u32,
    /// Whether the walker knows its code.
    pub walked: Walked,
    /// Set when the file of a runtime is mapped.
    pub runtime: Option<RuntimeState>,
    runtimes: Runtimes,
    /// Whether a job for the process is under way.
    pub in_flight: bool,
    /// No job is started before this.
    pub next_job: Instant,
    /// How long the JVM took to answer the last question.
    pub last_took: Duration,
    /// Whether a job has been done.
    pub looked: bool,
    /// Whether its map is there only because we asked.
    pub map_is_ours: bool,
    /// Whether the process could not be read when it was first needed.
    pub gone: bool,
    /// When the process ended; None: it lives as far as is known.
    pub exited: Option<Instant>,
    /// When the process was last needed.
    pub used: Instant,
    /// Whose share of the table of processes it takes.
    pub tenant: Tenant,
    /// Goes up with each program; results for an earlier one are not for this.
    pub epoch: u32,
    stale: bool,
    read_at: Option<Instant>,
    reread_pause: Duration,
    /// A reading that takes longer than the caller waits.
    reading: Option<Ticket<MapsRead>>,
    /// It gave way to others: its mappings are not read again before this.
    crowded: Option<Instant>,
    failures: u32,
}

/// The mappings; None of a process that is gone.
type MapsRead = Option<Maps>;

/// Reads the mappings, for as long as it takes.
fn read_maps(dir: &Path, start_ticks: u64) -> MapsRead {
    let maps = open::mappings(dir).ok();
    // A zombie's maps are empty, and an ended process's pid may be another's by now.
    maps.filter(|maps| !maps.is_empty && emberscope_target::same_process(dir, start_ticks))
}

impl ProcessState {
    /// A process of which nothing is read yet.
    pub fn new(now: Instant, runtimes: Runtimes) -> Self {
        Self {
            mappings: Vec::new(),
            files: Vec::new(),
            path_bytes: 0,
            jit: JitNames::default(),
            deferred: Slots::default(),
            deferred_in_flight: 0,
            walked: Walked::NotYet,
            runtime: None,
            runtimes,
            in_flight: false,
            next_job: now,
            last_took: Duration::ZERO,
            looked: false,
            map_is_ours: false,
            gone: false,
            exited: None,
            used: now,
            tenant: Tenant::default(),
            epoch: 0,
            stale: true,
            read_at: None,
            reread_pause: REREAD.0,
            reading: None,
            crowded: None,
            failures: 0,
        }
    }

    /// The mappings may have changed.
    pub fn mark_stale(&mut self) {
        self.stale = true;
        self.reread_pause = REREAD.0;
    }

    /// Makes sure that `addresses` can be looked up, as far as reading the mappings again may help. True
    /// when they were read.
    pub fn prepare(&mut self, dir: &Path, target: &Target, mut addresses: impl Iterator<Item = u64>) -> bool {
        if self.take_late(target.key.pid) {
            return true;
        }
        if self.reading.is_some() || self.is_crowded() {
            return false;
        }
        let Some(read_at) = self.read_at else {
            self.read(dir, target);
            return true;
        };
        if self.exited.is_some() || read_at.elapsed() < self.reread_pause {
            return false;
        }
        let missing = addresses.find(|a| maps::find(&self.mappings, *a).is_none());
        if !self.stale && missing.is_none() {
            return false;
        }
        self.read(dir, target);
        let helped = missing.is_none_or(|a| maps::find(&self.mappings, a).is_some());
        self.reread_pause = if helped { REREAD.0 } else { (self.reread_pause * 2).min(REREAD.1) };
        true
    }

    /// Takes in mappings that took longer to read than the caller waited, once they are there. True when they are.
    pub fn take_late(&mut self, pid: Pid) -> bool {
        let Some(ticket) = self.reading.take() else { return false };
        match ticket.poll() {
            Ok(Some(read)) => {
                self.take_maps(read, pid);
                return true;
            }
            Ok(None) => self.reading = Some(ticket),
            Err(_) => {}
        }
        false
    }

    fn read(&mut self, dir: &Path, target: &Target) {
        self.read_at = Some(Instant::now());
        let (of, start_ticks) = (dir.to_owned(), target.key.start_ticks);
        let about = About::process(dir, What::Maps);
        match errand::errands().run(about, PATIENCE, move || read_maps(&of, start_ticks)) {
            Errand::Done(read) => self.take_maps(read, target.key.pid),
            Errand::Late(ticket) => self.reading = Some(ticket),
            Errand::Turned(_) => {}
        }
    }

    fn take_maps(&mut self, read: MapsRead, pid: Pid) {
        let Some(Maps { mappings, path_bytes, cut, .. }) = read else {
            self.gone = self.mappings.is_empty();
            return;
        };
        self.stale = false;
        self.gone = false;
        if cut {
            tracing::debug!(pid, "more executable mappings than the limit");
        }
        self.path_bytes = path_bytes;
        let old = std::mem::replace(&mut self.mappings, mappings);
        let states = std::mem::take(&mut self.files);
        self.files = self
            .mappings
            .iter()
            .map(|new| {
                let before = maps::find(&old, new.start).and_then(|i| Some((old.get(i)?, states.get(i)?)));
                before.filter(|(m, _)| *m == new).map_or(FileState::New, |(_, state)| state.clone())
            })
            .collect();
        // A program of Python may load a JVM.
        if let Some((id, library)) = self.runtimes.recognise(&self.mappings)
            && self.runtime.as_ref().is_none_or(|known| known.id != id)
        {
            self.runtime = Some(RuntimeState {
                id,
                library: library.into(),
                version: None,
                names: NameSource::Waiting("no JIT code was sampled yet".to_owned()),
                facts: None,
                unread: false,
                never: false,
                vain_signals: 0,
            });
        }
    }

    /// The program was replaced: nothing of the old one holds.
    pub fn replaced(&mut self, now: Instant) {
        *self = Self { epoch: self.epoch.wrapping_add(1), ..Self::new(now, self.runtimes.clone()) };
    }

    /// What is known of the process where it is a JVM: those may be asked for a perf map, which names their code.
    pub fn jvm(&self) -> Option<&RuntimeState> {
        self.runtime.as_ref().filter(|runtime| runtime.id == RuntimeId::HOTSPOT)
    }

    /// Why a stack with generated code in it ended as the walker says: following frame pointers in a runtime's process
    /// that it did not know is a reason of its own.
    pub fn end_in_generated(&self, end: StackEnd, taken_ns: u64) -> StackEnd {
        if !matches!(end, StackEnd::NoFramePointer | StackEnd::BadReturnAddress) {
            return end;
        }
        let runtime = self.runtime.as_ref().and_then(|runtime| self.runtimes.get(runtime.id));
        let Some(words) = runtime.map(|runtime| runtime.words()) else { return end };
        match self.walked {
            Walked::Never => words.not_known,
            Walked::From(ns) if taken_ns >= ns => end,
            Walked::NotYet | Walked::From(_) => words.not_ready,
        }
    }

    /// Whether nothing but a perf map can name the process's code: it is a JVM whose memory does not tell. Not so
    /// before that was found out.
    pub fn needs_map(&self) -> bool {
        self.jvm().is_some_and(|jvm| jvm.unread || self.walked == Walked::Never)
    }

    /// When the next job may be, after one that went well or not.
    pub fn schedule(&mut self, now: Instant, interval: Duration, ok: bool) {
        self.failures = if ok { 0 } else { (self.failures + 1).min(16) };
        let pause =
            interval.saturating_mul(1 << self.failures.saturating_sub(1)).min(MAX_PAUSE.max(interval));
        self.next_job = now + pause;
    }

    /// Notes what asking came to.
    pub fn note_signal(&mut self, vain: bool) {
        let Some(jvm) = &mut self.runtime else { return };
        jvm.vain_signals = if vain { jvm.vain_signals + 1 } else { 0 };
        if jvm.vain_signals >= MAX_VAIN_SIGNALS {
            jvm.never = true;
        }
    }

    /// What the records of windows have of the process's JVM.
    pub fn facts(&self) -> Option<JvmFacts> {
        let jvm = self.jvm()?;
        Some(JvmFacts { version: jvm.version.clone().unwrap_or_default(), names: jvm.names.clone() })
    }
}

#[cfg(test)]
mod tests;
