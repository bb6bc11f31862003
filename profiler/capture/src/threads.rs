//! Which names are heard of, whose threads are watched, and asking for all of them.
//!
//! By the kernel's task iterator where it can be had (`asked`), else from /proc (`proc_threads`): the same
//! events by two ways. At most [`MAX_WATCHED`] processes of runtimes and
//! [`MAX_SPARK_PYTHONS`] of PySpark's Python.
// For `aya::Pod`.
#![allow(unsafe_code)]

use super::asked;
use super::error::CaptureError;
use super::file_probes::Detached;
use super::proc_threads::ProcThreads;
use super::ring::EventRing;
use super::session::Capture;
use aya::Ebpf;
use aya::maps::{HashMap, MapData, MapError};
use emberscope_model::{FileId, NameProbe};
use emberscope_model::{Pid, RawEvent, StringLayout};
use profiler_ebpf::{MAX_SPARK_PYTHONS, MAX_WATCHED, ThreadState};
use std::os::fd::BorrowedFd;

/// The watched processes, and what their threads are called in the kernel's maps.
pub(super) struct Threads {
    pub(super) watched: HashMap<MapData, u32, u8>,
    pub(super) layouts: HashMap<MapData, u32, Layout>,
    pub(super) names: HashMap<MapData, u32, [u64; 2]>,
    /// Reads threads from /proc, where the kernel lists none.
    pub(super) proc: Option<ProcThreads>,
}

/// As the map has it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Layout(StringLayout);

// SAFETY: integers without padding between them (its size is asserted where it is made).
unsafe impl aya::Pod for Layout {}

impl Capture {
    /// From now on, threads that name themselves by this function of this file are heard of, in whatever
    /// process maps it, and their samples carry the name's number. A file has one probe: a second call does
    /// nothing. `file` is not needed afterwards.
    ///
    /// # Errors
    /// [`CaptureError::TooMany`]: over [`MAX_PROBES`](super::MAX_PROBES) files. [`CaptureError::ProbesGoing`]: the file's old ones are not gone yet
    /// ([`Self::has_probes_going`]). [`CaptureError::Program`]: the kernel
    /// refuses the probe. [`CaptureError::Missing`]: the object has no such program. The file has no probe then.
    pub fn watch_names(
        &mut self,
        id: FileId,
        file: BorrowedFd<'_>,
        probe: NameProbe,
    ) -> Result<(), CaptureError> {
        let waits = self.has_waits();
        self.names.attach(&mut self.ebpf, id, file, probe, waits)
    }

    /// Takes the file's probe away, which is gone when what comes out is dropped; a file without one is fine.
    ///
    /// # Errors
    /// [`CaptureError::Program`]: the kernel keeps the probe; it is counted no longer.
    pub fn unwatch_names(&mut self, id: FileId) -> Result<Detached, CaptureError> {
        self.names.detach(&mut self.ebpf, id)
    }

    /// Whether old probes of a file, on names, allocations or pauses, are still being taken away: it gets no new ones before.
    pub fn has_probes_going(&self, id: FileId) -> bool {
        self.names.has_going(id) || self.allocations.has_going(id) || self.pauses.probes.has_going(id)
    }

    /// Files with a probe.
    pub fn name_probes(&self) -> usize {
        self.names.len()
    }

    /// From now on, the ends of this process's threads are heard of, and [`Self::ask_threads`] tells them.
    /// `strings` is what [`NameProbe::JavaName`] needs; a second call may bring it later.
    ///
    /// # Errors
    /// [`CaptureError::TooMany`]: as many processes are watched as there is room for. [`CaptureError::Map`]: bpf(2)
    /// failed otherwise. The process is not watched then, if it was not before.
    pub fn watch_process(&mut self, pid: Pid, strings: Option<StringLayout>) -> Result<(), CaptureError> {
        self.threads.watch(pid, strings)
    }

    /// Watches a process no longer; one that is not watched is fine.
    pub fn unwatch_process(&mut self, pid: Pid) {
        self.threads.unwatch(pid);
    }

    /// Asks what each thread of the watched processes has used until now. The answers come by
    /// [`Self::read`].
    ///
    /// # Errors
    /// Where the kernel lists threads, [`CaptureError::Program`] or [`CaptureError::Io`]: the iterator cannot be
    /// attached or read, or the ring does not empty. Threads that were listed before come all the same.
    pub fn ask_threads(&mut self) -> Result<(), CaptureError> {
        self.threads.ask(&mut self.ebpf, &mut self.ring, &mut self.early)
    }
}

impl Threads {
    pub(super) fn watch(&mut self, pid: Pid, strings: Option<StringLayout>) -> Result<(), CaptureError> {
        if let Some(layout) = strings {
            self.layouts.insert(pid, Layout(layout), 0).map_err(|e| full("STRING_LAYOUTS", e))?;
        }
        self.watched.insert(pid, 1, 0).map_err(|e| full("WATCHED", e))
    }

    /// Watches a process no longer; one that is not watched is fine.
    pub(super) fn unwatch(&mut self, pid: Pid) {
        let _ = self.watched.remove(&pid);
        let _ = self.layouts.remove(&pid);
    }

    /// Asks for all threads. What comes out at once is appended to `out`; the rest comes by the ring.
    pub(super) fn ask(
        &mut self,
        ebpf: &mut Ebpf,
        ring: &mut EventRing,
        out: &mut Vec<RawEvent>,
    ) -> Result<(), CaptureError> {
        let Some(proc) = &mut self.proc else { return asked::ask(ebpf, ring, out) };
        let pids = self.watched.keys().filter_map(Result::ok).collect();
        proc.ask(
            &pids,
            |tid| self.names.get(&tid, 0).map_or(0, |[state, _]| ThreadState(state).number()),
            out,
        );
        Ok(())
    }
}

fn full(name: &'static str, error: MapError) -> CaptureError {
    match error {
        MapError::SyscallError(e) if e.io_error.raw_os_error() == Some(libc::E2BIG) => {
            CaptureError::TooMany {
                what: "watched processes",
                limit: (MAX_WATCHED + MAX_SPARK_PYTHONS) as usize,
            }
        }
        error => CaptureError::Map { name, source: error.into() },
    }
}
