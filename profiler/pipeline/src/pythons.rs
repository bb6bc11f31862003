//! PySpark's processes on the node, told to the kernel side: which JVMs run tasks, and which Python works for which of them.
//!
//! In: the registry's processes, some times a second and when one runs a new program. Out: a party for each executor, Python
//! daemon and worker (the programs add a daemon's forks themselves), their threads watched, and workers' wake-ups and packets watched
//! while there is any Python. What is believed is the process tree, and user and cgroup, which must be the executor's: else its time is
//! bound to no task. At most [`MAX_SPARK_PYTHONS`] Python processes, of a user half of them; those beyond are counted, and their
//! tasks stay unknown. What a Python daemon forks has its place before this is asked; who has too many loses it here.

use emberscope_capture::{Capture, CaptureError};
use emberscope_model::{Pid, ProcessKey, Role};
use emberscope_process::identity::PythonSide;
use emberscope_process::{Process, Registry};
use profiler_ebpf::{MAX_PARTIES, MAX_SPARK_PYTHONS, PartyKind};
use std::collections::HashMap;

/// Executors that are told of.
const MAX_EXECUTORS: usize = (MAX_PARTIES - MAX_SPARK_PYTHONS) as usize;

/// A process of PySpark's that the kernel side was told of.
#[derive(Clone, Copy, Debug)]
struct Told {
    kind: PartyKind,
    uid: u32,
    /// The process has a place in the kernel's map.
    placed: bool,
}

impl Told {
    fn is_python(&self) -> bool {
        self.kind != PartyKind::Executor
    }
}

/// The processes that the kernel side was told of, and whose places they take.
#[derive(Debug, Default)]
pub struct Pythons {
    told: HashMap<ProcessKey, Told>,
    /// Places by user, of Python processes (true) and executors.
    held: HashMap<(u32, bool), usize>,
    /// Processes turned away since the start for want of room.
    refused: u64,
    /// The programs could not be attached, and that was told.
    unwatched: bool,
    /// Likewise for the programs that watch waits.
    waits_unwatched: bool,
}

/// The kernel side, as it is told: [`Capture`], or a stand-in in tests.
pub trait Kernel {
    /// Tells of a process of PySpark's.
    ///
    /// # Errors
    /// [`CaptureError::TooMany`]: there is no room.
    fn set(&mut self, pid: Pid, kind: PartyKind, executor: Pid) -> Result<(), CaptureError>;
    /// The process is none of PySpark's any more.
    fn forget(&mut self, pid: Pid);
    /// Whether workers' wake-ups and packets are watched.
    ///
    /// # Errors
    /// [`CaptureError::Program`]: a tracepoint cannot be attached to, or left.
    fn watch_workers(&mut self, watch: bool) -> Result<(), CaptureError>;
    /// Whether there are executors, whose tasks' waits are watched.
    ///
    /// # Errors
    /// [`CaptureError::Program`]: a tracepoint cannot be attached to, or left.
    fn watch_waits(&mut self, watch: bool) -> Result<(), CaptureError>;
}

impl Kernel for Capture {
    fn set(&mut self, pid: Pid, kind: PartyKind, executor: Pid) -> Result<(), CaptureError> {
        self.set_party(pid, kind, executor)?;
        // An executor is watched as a JVM.
        if kind == PartyKind::Executor { Ok(()) } else { self.watch_process(pid, None) }
    }
    fn forget(&mut self, pid: Pid) {
        self.forget_party(pid);
    }
    fn watch_workers(&mut self, watch: bool) -> Result<(), CaptureError> {
        Self::watch_workers(self, watch)
    }
    fn watch_waits(&mut self, watch: bool) -> Result<(), CaptureError> {
        self.has_tasks(watch)
    }
}

impl Pythons {
    /// Some times a second: who came, who went.
    pub fn tick(&mut self, registry: &Registry, kernel: &mut dyn Kernel) {
        self.told.retain(|key, told| {
            let process = registry.by_key(*key).filter(|process| !process.exited);
            let stays =
                process.and_then(|process| party(registry, process)).is_some_and(|(now, _)| now == told.kind);
            // Who has the pid now is told of, if need be, below.
            if !stays && registry.known(key.pid) == Some(*key) {
                kernel.forget(key.pid);
            }
            stays
        });
        self.held.clear();
        for told in self.told.values().filter(|told| told.placed) {
            *self.held.entry((told.uid, told.is_python())).or_default() += 1;
        }
        for process in registry.iter().filter(|process| !process.exited) {
            self.tell(registry, process, kernel);
        }
        self.watch(kernel);
    }

    /// A process runs another program: the kernel side has forgotten it.
    pub fn on_exec(&mut self, key: ProcessKey, registry: &Registry, kernel: &mut dyn Kernel) {
        if let Some(told) = self.told.remove(&key).filter(|told| told.placed)
            && let Some(held) = self.held.get_mut(&(told.uid, told.is_python()))
        {
            *held -= 1;
        }
        if let Some(process) = registry.by_key(key) {
            self.tell(registry, process, kernel);
            self.watch(kernel);
        }
    }

    /// Processes turned away since the start.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// How many processes the kernel side was told of.
    pub fn len(&self) -> usize {
        self.held.values().sum()
    }

    fn tell(&mut self, registry: &Registry, process: &Process, kernel: &mut dyn Kernel) {
        let before = self.told.get(&process.key).copied();
        if before.is_some_and(|told| told.placed) {
            return;
        }
        let Some((kind, executor)) = party(registry, process) else { return };
        let mut told = Told { kind, uid: process.uid, placed: self.has_place(kind, process.uid) };
        if !told.placed {
            kernel.forget(process.key.pid);
        } else if let Err(error) = kernel.set(process.key.pid, kind, executor) {
            told.placed = false;
            tracing::debug!(pid = process.key.pid, %error, "this process's tasks stay unknown");
        }
        if told.placed {
            *self.held.entry((told.uid, told.is_python())).or_default() += 1;
        } else if before.is_none() {
            self.refused += 1;
        }
        self.told.insert(process.key, told);
    }

    /// Whether there is a place for one more, and it is not its user's who has half of them.
    fn has_place(&self, kind: PartyKind, uid: u32) -> bool {
        let python = kind != PartyKind::Executor;
        let most = if python { MAX_SPARK_PYTHONS as usize } else { MAX_EXECUTORS };
        let held: usize = self.places(python);
        held < most && self.held.get(&(uid, python)).is_none_or(|own| *own < most / 2)
    }

    fn places(&self, python: bool) -> usize {
        self.held.iter().filter(|((_, kind), _)| *kind == python).map(|(_, held)| held).sum()
    }

    fn watch(&mut self, kernel: &mut dyn Kernel) {
        if let Err(error) = kernel.watch_workers(self.places(true) > 0)
            && !std::mem::replace(&mut self.unwatched, true)
        {
            tracing::warn!(%error, "not all Python workers are bound to their tasks");
        }
        if let Err(error) = kernel.watch_waits(self.places(false) > 0)
            && !std::mem::replace(&mut self.waits_unwatched, true)
        {
            tracing::warn!(%error, "tasks' waits are not sampled");
        }
    }
}

/// What a process is, and its executor's pid.
fn party(registry: &Registry, process: &Process) -> Option<(PartyKind, Pid)> {
    let pid = process.key.pid;
    if process.python.is_none() && matches!(process.role, Role::Executor | Role::Driver) {
        return Some((PartyKind::Executor, pid));
    }
    let kind = match process.python? {
        PythonSide::Daemon => PartyKind::Daemon,
        PythonSide::Worker => PartyKind::Worker,
        PythonSide::Driver | PythonSide::Helper => return None,
    };
    let parent = registry.parent(process.key)?;
    let executor =
        if parent.python == Some(PythonSide::Daemon) { registry.parent(parent.key)? } else { parent };
    let runs_tasks = executor.python.is_none() && matches!(executor.role, Role::Executor | Role::Driver);
    let same = process.uid == executor.uid && process.cgroup == executor.cgroup;
    (runs_tasks && same).then_some((kind, executor.key.pid))
}

#[cfg(test)]
mod tests;
