//! Who of the node's processes are PySpark's: executors, Python daemons and workers, told to the programs that bind workers to
//! tasks.
//!
//! The programs add a Python daemon's children themselves, and drop who ends or runs another program. Wake-ups are watched
//! only while [`Capture::watch_wakes`] says so: each of the whole node costs something. At most [`MAX_PARTIES`].
// For `aya::Pod`.
#![allow(unsafe_code)]

use super::error::CaptureError;
use super::loader;
use super::session::Capture;
use crate::model::Pid;
use aya::maps::{HashMap, MapData, MapError};
use aya::programs::RawTracePoint;
use aya::programs::raw_trace_point::RawTracePointLinkId;
use profiler_ebpf::{MAX_PARTIES, Party, PartyKind};

/// The program on wake-ups, and its tracepoint.
pub(super) const PROGRAM: &str = "worker_waking";
const TRACEPOINT: &str = "sched_waking";

/// As the map has it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Entry(Party);

// SAFETY: integers without padding between them (its size is asserted where it is made).
unsafe impl aya::Pod for Entry {}

/// The map, and whether wake-ups are watched.
pub(super) struct Workers {
    pub(super) parties: HashMap<MapData, u32, Entry>,
    /// The program was loaded.
    pub(super) loaded: bool,
    pub(super) link: Option<RawTracePointLinkId>,
}

impl Capture {
    /// A process of PySpark's. A worker that the programs know already keeps what they know of it.
    ///
    /// # Errors
    /// There is no room.
    pub fn set_party(&mut self, pid: Pid, kind: PartyKind, executor: Pid) -> Result<(), CaptureError> {
        let parties = &mut self.workers.parties;
        let new = Party::new(kind, executor);
        if parties.get(&pid, 0).is_ok_and(|Entry(old)| (old.kind, old.executor) == (new.kind, new.executor)) {
            return Ok(());
        }
        parties.insert(pid, Entry(new), 0).map_err(|error| match error {
            MapError::SyscallError(e) if e.io_error.raw_os_error() == Some(libc::E2BIG) => {
                CaptureError::TooMany { what: "processes of PySpark", limit: MAX_PARTIES as usize }
            }
            error => CaptureError::Map { name: "PARTIES", source: error.into() },
        })
    }

    /// The process is none of PySpark's any more; one that never was is fine.
    pub fn forget_party(&mut self, pid: Pid) {
        let _ = self.workers.parties.remove(&pid);
    }

    /// Whether who wakes whom is watched from now on.
    ///
    /// # Errors
    /// The tracepoint cannot be attached to.
    pub fn watch_wakes(&mut self, watch: bool) -> Result<(), CaptureError> {
        if !self.workers.loaded || watch == self.workers.link.is_some() {
            return Ok(());
        }
        let program: &mut RawTracePoint = loader::program(&mut self.ebpf, PROGRAM)?;
        let error = |e| CaptureError::attach(PROGRAM, e);
        match self.workers.link.take() {
            Some(link) => program.detach(link).map_err(error),
            None => {
                self.workers.link = Some(program.attach(TRACEPOINT).map_err(error)?);
                Ok(())
            }
        }
    }
}
