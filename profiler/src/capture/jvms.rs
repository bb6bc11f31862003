//! What the kernel's walker is told of JVMs, by pid.
//!
//! In: a process and its [`JvmLayout`]. The kernel drops a process's entry by itself when the process runs
//! another program or its last thread ends, so that who gets the pid never has it. Reading a layout takes time, in
//! which that may happen: so an entry is made before ([`Capture::expect_jvm`]), and only one that is still there is
//! filled. At most [`profiler_ebpf::MAX_JVMS`].
// For `aya::Pod`.
#![allow(unsafe_code)]

use super::error::CaptureError;
use super::session::Capture;
use crate::model::Pid;
use aya::maps::{HashMap, MapData, MapError};
use profiler_ebpf::{JvmLayout, MAX_JVMS};

/// As the map has it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Layout(JvmLayout);

// SAFETY: integers without padding between them (its size is asserted where it is made).
unsafe impl aya::Pod for Layout {}

/// The map, and whether the sampler looks in it: not the one that walks by frame pointers only.
pub(super) struct Jvms {
    pub(super) map: HashMap<MapData, u32, Layout>,
    pub(super) walked: bool,
}

/// bpf(2): the element is made or replaced; it must be there already.
const ANY: u64 = 0;
const MUST_EXIST: u64 = 2;

impl Capture {
    /// Before a process's layout is read: from now on the kernel notes whether it runs another program or ends.
    /// An error where this kernel walks by frame pointers only.
    pub fn expect_jvm(&mut self, pid: Pid) -> Result<(), CaptureError> {
        if !self.jvms.walked {
            return Err(CaptureError::NoJvmWalk);
        }
        // Without code heaps it is walked as any other process.
        self.jvms.map.insert(pid, Layout(JvmLayout::default()), ANY).map_err(failed)
    }

    /// From now on, the process's stacks are walked by this layout, which was read after
    /// [`expect_jvm`](Self::expect_jvm). A layout of other code needs another `incarnation`, never 0. False: the
    /// process has ended or run another program meanwhile, and the layout is nobody's.
    pub fn set_jvm(&mut self, pid: Pid, layout: &JvmLayout) -> Result<bool, CaptureError> {
        match self.jvms.map.insert(pid, Layout(*layout), MUST_EXIST) {
            Ok(()) => Ok(true),
            Err(MapError::SyscallError(e)) if e.io_error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Whether the kernel still has the process's entry: it drops those of processes that ended or run another
    /// program.
    pub fn has_jvm(&self, pid: Pid) -> bool {
        self.jvms.map.get(&pid, 0).is_ok()
    }

    /// Drops a process's layout; a process without one is fine.
    pub fn forget_jvm(&mut self, pid: Pid) {
        let _ = self.jvms.map.remove(&pid);
    }
}

fn failed(error: MapError) -> CaptureError {
    match error {
        MapError::SyscallError(e) if e.io_error.raw_os_error() == Some(libc::E2BIG) => {
            CaptureError::TooMany { what: "JVMs", limit: MAX_JVMS as usize }
        }
        error => CaptureError::Map { name: "JVMS", source: error.into() },
    }
}
