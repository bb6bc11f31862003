//! The room's door; see the module's page. Not Send (blazesym is not): make it on the thread that uses it.

mod asks;
mod deferred;
mod files;
mod lives;
mod reasons;
mod room;

use super::asker::Asker;
use super::config::{SymbolizerConfig, Target};
use super::counters::SymbolizerCounters;
use super::files::Files;
use super::frames::FrameTable;
use super::kernel::KernelSymbols;
use super::native::{Debuginfod, Natives};
use super::pending::{PendingFrame, PendingStack};
use super::process::{ProcessState, Walked};
use super::thread_start;
use deferred::Named;
use emberscope_model::{
    FastMap, FastSet, Frame, JvmFacts, Pid, ProcessKey, RawStack, Refusals, Stack, StackEnd, UnknownReason,
};
use emberscope_runtime::{DeferredFrame, Facts, Readers, Runtimes};
use emberscope_target::readers::Door;
use profiler_ebpf::UserFrame;
use reasons::{why_unnamed, why_unread};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Names stacks; one for the whole daemon.
pub struct Symbolizer {
    pub(super) config: SymbolizerConfig,
    pub(super) processes: FastMap<ProcessKey, ProcessState>,
    kernel: KernelSymbols,
    natives: Natives,
    files: Files,
    pub(super) frames: FrameTable,
    asker: Asker,
    pub(super) readers: Readers,
    /// Batches of deferred frames.
    pub(super) named: Door<Named>,
    /// Processes with deferred frames that are to be read.
    pub(super) deferred_wanted: FastSet<ProcessKey>,
    /// Frames of things that may soon be gone were met for the first time.
    passing_met: bool,
    pub(super) counters: SymbolizerCounters,
    evicted: Refusals,
    /// Bytes that processes may come to hold before all that they hold is counted: no more than is free.
    code_room: usize,
}

impl Symbolizer {
    /// Reads nothing. Starts no thread yet, but for that of debuginfod where it is to be asked.
    pub fn new(config: SymbolizerConfig) -> Self {
        let mut natives = Natives::new(config.max_symbol_bytes, config.max_cached_addresses);
        let (servers, dir) = &config.debuginfod;
        if !servers.is_empty() {
            match Debuginfod::start(servers.clone(), dir) {
                Ok(debuginfod) => natives.ask_servers(debuginfod),
                Err(error) => {
                    tracing::warn!(dir = %dir.display(), %error, "debuginfod is not asked for symbols")
                }
            }
        }
        Self {
            processes: FastMap::default(),
            kernel: KernelSymbols::new(&config.proc_root),
            natives,
            files: Files::default(),
            frames: FrameTable::new(config.frames),
            asker: Asker::of(&config.readers),
            readers: config.readers.clone(),
            named: config.readers.door(),
            deferred_wanted: FastSet::default(),
            passing_met: false,
            counters: SymbolizerCounters::default(),
            evicted: Refusals::default(),
            code_room: config.max_code_bytes,
            config,
        }
    }

    /// Names kernel and native frames now, by the mappings that the process has now; JIT code waits.
    pub fn begin(&mut self, target: &Target, raw: &RawStack) -> PendingStack {
        let mut frames = Vec::with_capacity(raw.user.len() + raw.kernel.len());
        let mut end = raw.end;
        self.frames.of(target.tenant);
        if !raw.user.is_empty() {
            let dir = self.process_dir(target.key.pid);
            let mut process = self.take_process(target.key);
            let before = process.bytes();
            process.tenant = target.tenant;
            let arranged = arranged(raw, self.readers.runtimes());
            let user = arranged.as_deref().unwrap_or(&raw.user);
            process.prepare(&dir, target, user.iter().filter(|f| f.is_native()).map(lookup_address));
            let now = Instant::now();
            for frame in user.iter().rev() {
                let deferred = DeferredFrame { frame: *frame, generation: raw.generation };
                frames.push(if frame.is_native() {
                    self.user_frame(&dir, &mut process, lookup_address(frame))
                } else if let Some(runtime) = self.readers.runtimes().get(frame.runtime()) {
                    self.deferred_wanted.insert(target.key);
                    self.passing_met |=
                        runtime.passing(&deferred).is_some_and(|it| process.deferred.meets(it));
                    PendingFrame::Deferred(process.deferred.of(deferred, runtime.meaning(&deferred), now))
                } else {
                    PendingFrame::Named(self.frames.intern(Frame::unknown(UnknownReason::AnonymousCode, "")))
                });
            }
            let named = |index: usize| frames.get(index).and_then(PendingFrame::named);
            if thread_start::is_first(named(0), named(1)) {
                end = StackEnd::Root;
            } else if frames.iter().any(|frame| matches!(frame, PendingFrame::Jit(_))) {
                end = process.end_in_generated(raw.end, raw.time_ns);
            }
            let more = process.bytes().saturating_sub(before);
            self.processes.insert(target.key, process);
            self.holds_more(more);
        }
        for (depth, address) in raw.kernel.iter().enumerate().rev() {
            // All but the interrupted instruction are return addresses.
            let address = address.saturating_sub(u64::from(depth > 0));
            let frame = self.kernel.frame(address, &mut self.frames);
            frames.push(PendingFrame::Named(frame));
        }
        PendingStack { frames: frames.into(), end }
    }

    /// Whether stacks that were begun since the last call had frames of something that may soon be gone (a
    /// [passing](emberscope_runtime::Runtime::passing) thing), and that was met for the first time: more of the kind is to be
    /// expected, so that stacks are to be begun without delay.
    pub fn met_passing(&mut self) -> bool {
        std::mem::take(&mut self.passing_met)
    }

    /// Names what waits, with the newest maps.
    pub fn finish(&mut self, target: &Target, pending: &PendingStack) -> Stack {
        let mut all = Vec::with_capacity(pending.frames.len());
        self.frames.of(target.tenant);
        for frame in pending.frames.iter() {
            let process = self.processes.get(&target.key);
            match frame {
                PendingFrame::Named(frame) => all.push(Arc::clone(frame)),
                PendingFrame::File(at) => all.push(self.came(&at.slot, at.offset)),
                PendingFrame::Deferred(slot) => match slot.get() {
                    Some(frames) => all.extend(frames.iter().cloned()),
                    None => {
                        let why = why_unread(process, self.readers.runtimes());
                        all.push(self.frames.intern(Frame::unknown(why, "")));
                    }
                },
                PendingFrame::Jit(address) => match process.and_then(|p| p.jit.get(*address)) {
                    Some(frame) => {
                        self.counters.jit_named += 1;
                        all.push(Arc::clone(frame));
                    }
                    None => {
                        self.counters.jit_unnamed += 1;
                        all.push(self.frames.intern(Frame::unknown(why_unnamed(process, *address), "")));
                    }
                },
            }
        }
        // Where the first frame's file was on its way it had no name to tell it by.
        let late = pending.frames.iter().take(2).any(|frame| matches!(frame, PendingFrame::File(..)));
        let named = |index: usize| all.get(index).map(|frame| &**frame);
        let root = late && thread_start::is_first(named(0), named(1));
        let end = if root { StackEnd::Root } else { pending.end };
        Stack { frames: all.into(), end }
    }

    /// Takes in what the background has finished; returns the processes that have newer names. Also lets
    /// go of processes that ended a while ago.
    pub fn poll(&mut self) -> Vec<ProcessKey> {
        let mut done = Vec::new();
        self.take_named();
        self.take_late();
        self.natives.poll();
        self.files.poll(&mut self.natives, &mut self.frames);
        while let Some(outcome) = self.asker.poll() {
            let key = outcome.key;
            done.push(key);
            let before = self.code_bytes(key);
            self.take_outcome(outcome);
            self.holds_more(self.code_bytes(key).saturating_sub(before));
        }
        let keep = self.config.keep_exited;
        let over = |p: &ProcessState| !p.in_flight && p.exited.is_some_and(|t| t.elapsed() >= keep);
        for (key, _) in self.processes.extract_if(|_, process| over(process)) {
            self.readers.forget(key);
        }
        done
    }

    /// Whether files of targets may have names in a moment that stacks wait for.
    pub fn reads_files(&self) -> bool {
        self.files.are_coming()
    }

    /// What is known of a process's JVM; None when it is none, or none of its user code was sampled yet.
    pub fn jvm_facts(&self, key: ProcessKey) -> Option<JvmFacts> {
        self.processes.get(&key)?.facts()
    }

    /// What the memory of a runtime's process tells of it; None until it was read.
    pub fn runtime_facts(&self, key: ProcessKey) -> Option<&Facts> {
        self.processes.get(&key)?.runtime.as_ref()?.facts.as_ref()
    }

    /// Why kernel frames have no names, for people; None when they have.
    pub fn kernel_problem(&self) -> Option<&str> {
        self.kernel.problem.as_deref()
    }

    /// Counts since the start, and what is held now.
    pub fn counters(&self) -> SymbolizerCounters {
        SymbolizerCounters {
            processes: self.processes.len() as u64,
            frames: self.frames.len() as u64,
            jit_dropped: self.processes.values().map(|p| p.jit.dropped).sum(),
            java_held: self.readers.held(),
            native: self.natives.counters(),
            ..self.counters.clone()
        }
    }

    /// Whether anything is held of a process.
    pub fn holds(&self, key: ProcessKey) -> bool {
        self.processes.contains_key(&key)
    }

    /// Since when the kernel's walker knows the code of a process's runtime (CLOCK_MONOTONIC); or it never will.
    pub fn runtime_walked(&mut self, key: ProcessKey, walked: Walked) {
        let mut process = self.take_process(key);
        process.walked = walked;
        self.processes.insert(key, process);
    }

    pub(super) fn process_dir(&self, pid: Pid) -> PathBuf {
        self.config.proc_root.join(pid.to_string())
    }

    /// Takes a process out of the table, so that frames can be named meanwhile; a new one takes the place of the one
    /// unused for longest.
    fn take_process(&mut self, key: ProcessKey) -> ProcessState {
        let now = Instant::now();
        if let Some(mut process) = self.processes.remove(&key) {
            process.used = now;
            return process;
        }
        if self.processes.len() >= self.config.max_processes.max(1) {
            self.make_room();
        }
        ProcessState::new(now, self.readers.runtimes().clone())
    }

    /// Processes dropped because of a limit, and frames that lost their names, by whose they were.
    pub fn refusals(&self) -> [(&'static str, &Refusals); 2] {
        [("named_processes", &self.evicted), self.frames.refusals()]
    }
}

/// The user frames in the order of their calls, where a runtime's come in another.
fn arranged(raw: &RawStack, runtimes: &Runtimes) -> Option<Vec<UserFrame>> {
    let other = raw.user.iter().rev().find(|frame| !frame.is_native())?;
    runtimes.get(other.runtime())?.arranged(&raw.user, raw.end)
}

/// A return address lies behind its call, perhaps in the next function: one byte back is inside.
fn lookup_address(frame: &UserFrame) -> u64 {
    let back = frame.flags & UserFrame::FLAG_RETURN_ADDRESS != 0;
    frame.value.saturating_sub(u64::from(back))
}
