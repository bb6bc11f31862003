//! The walker's maps of unwind tables: words, rules and lists in.
//!
//! Taken out of a [`Capture`] once and used on a thread of their own: putting a slab into the map waits for the kernel's
//! readers, some milliseconds. The kernel drops a process's list by itself when the process runs another program or its
//! last thread ends. A slab is made when something is written to it.

use super::error::CaptureError;
use super::session::Capture;
use aya::maps::{Array, ArrayOfMaps, HashMap, MapData, MapError};
use emberscope_model::Pid;
use profiler_ebpf::{GRANULE_WORDS, MAX_TABLED, ProcessTables, SLAB_GRANULES, SLAB_WORDS};
use std::collections::HashMap as Map;

/// What one call writes.
type Granule = [u32; GRANULE_WORDS as usize];
type Slab = Array<MapData, Granule>;
/// bpf(2): the element must not be there, or must be there already.
const MUST_BE_NEW: u64 = 1;
const MUST_EXIST: u64 = 2;
/// `BPF_F_MMAPABLE`: granules are cache lines then. As the object declares it.
const FLAGS: u32 = 1 << 10;

/// The maps. Used by one thread.
pub struct TableMaps {
    pub(super) slabs: ArrayOfMaps<MapData, Slab>,
    pub(super) rules: Array<MapData, u64>,
    pub(super) processes: HashMap<MapData, u32, [u32; 4]>,
    /// Slabs that the kernel holds, by number.
    pub(super) made: Map<u32, Slab>,
    /// One slab that stands for all that are not needed, put where they were; None: none was given back yet.
    pub(super) nothing: Option<Slab>,
}

impl TableMaps {
    /// Writes words from `address` up, which is a multiple of a granule's; the rest of the last granule is 0.
    ///
    /// # Errors
    /// [`CaptureError::Map`]: a slab cannot be made (no memory) or written. Granules before it are written.
    pub fn write(&mut self, address: u32, words: &[u32]) -> Result<(), CaptureError> {
        for (nth, words) in words.chunks(GRANULE_WORDS as usize).enumerate() {
            let at = address / GRANULE_WORDS + nth as u32;
            let mut granule = Granule::default();
            for (to, from) in granule.iter_mut().zip(words) {
                *to = *from;
            }
            self.slab(at / SLAB_GRANULES)?
                .set(at % SLAB_GRANULES, granule, 0)
                .map_err(|e| error("SLABS", e))?;
        }
        Ok(())
    }

    fn slab(&mut self, number: u32) -> Result<&mut Slab, CaptureError> {
        if !self.made.contains_key(&number) {
            let slab = Slab::create(SLAB_GRANULES, FLAGS).map_err(|e| error("SLABS", e))?;
            self.slabs.set(number, &slab, 0).map_err(|e| error("SLABS", e))?;
            self.made.insert(number, slab);
        }
        self.made.get_mut(&number).ok_or(CaptureError::Missing { name: "SLABS" })
    }

    /// Gives a rule a number.
    ///
    /// # Errors
    /// [`CaptureError::Map`]: the number is beyond the map.
    pub fn rule(&mut self, number: u32, rule: u64) -> Result<(), CaptureError> {
        self.rules.set(number, rule, 0).map_err(|e| error("RULES", e))
    }

    /// Before a process's mappings are read: from now on the kernel notes whether it runs another program or ends.
    ///
    /// # Errors
    /// [`CaptureError::TooMany`]: the map of processes is full. [`CaptureError::Map`]: bpf(2) failed otherwise.
    pub fn expect(&mut self, pid: Pid) -> Result<(), CaptureError> {
        match self.processes.insert(pid, [0; 4], MUST_BE_NEW) {
            Err(MapError::SyscallError(e)) if e.io_error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            other => other.map_err(failed),
        }
    }

    /// From now on, the process is walked by this list, which was made after [`expect`](Self::expect). False: it has
    /// ended or run another program meanwhile, and the list is nobody's.
    ///
    /// # Errors
    /// As for [`Self::expect`]. The process has the list then that it had before.
    pub fn set(&mut self, pid: Pid, tables: ProcessTables) -> Result<bool, CaptureError> {
        let words = [tables.list, tables.ranges, tables.incarnation, tables.stamp];
        match self.processes.insert(pid, words, MUST_EXIST) {
            Err(MapError::SyscallError(e)) if e.io_error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            other => other.map(|()| true).map_err(failed),
        }
    }

    /// Drops a process's list; a process without one is fine.
    pub fn forget(&mut self, pid: Pid) {
        let _ = self.processes.remove(&pid);
    }

    /// Gives back the memory of the slabs for which `empty` holds.
    pub fn free_slabs(&mut self, empty: &dyn Fn(u32) -> bool) {
        let free: Vec<u32> = self.made.keys().copied().filter(|slab| empty(*slab)).collect();
        // One stays: something will be written again.
        for number in free.into_iter().skip(1) {
            if let Some(slab) = self.made.remove(&number) {
                let nothing = self.nothing.get_or_insert(slab);
                if let Err(error) = self.slabs.set(number, nothing, 0) {
                    tracing::debug!(%error, number, "memory of unwind tables is not given back");
                }
            }
        }
    }

    /// Bytes of all slabs that the kernel holds.
    pub fn bytes(&self) -> u64 {
        (self.made.len() + usize::from(self.nothing.is_some())) as u64 * u64::from(SLAB_WORDS) * 4
    }
}

impl Capture {
    /// The maps of unwind tables, once; None where this kernel walks by frame pointers only.
    pub fn take_tables(&mut self) -> Option<TableMaps> {
        self.tables.take().filter(|_| self.runtimes.walked)
    }
}

fn failed(failed: MapError) -> CaptureError {
    match failed {
        MapError::SyscallError(e) if e.io_error.raw_os_error() == Some(libc::E2BIG) => {
            CaptureError::TooMany { what: "processes with unwind tables", limit: MAX_TABLED as usize }
        }
        failed => error("PROCESSES", failed),
    }
}

fn error(name: &'static str, source: MapError) -> CaptureError {
    CaptureError::Map { name, source: source.into() }
}
