//! What the kernel's walker is told of runtimes' processes, in a map of each runtime by pid.
//!
//! In: a process and its layout, as bytes. The kernel drops a process's entry by itself when the process runs another
//! program or its last thread ends, so that who gets the pid never has it. Reading a layout takes time, in which that may
//! happen: so an entry is made before ([`Capture::expect_runtime`]), and only one that is still there is filled. At most
//! [`MAX_JVMS`] JVMs and [`MAX_PYTHONS`] interpreters.

use super::error::CaptureError;
use super::session::{Capture, take};
use aya::Ebpf;
use aya::maps::{HashMap, MapData, MapError};
use emberscope_model::Pid;
use profiler_ebpf::{JvmLayout, MAX_JVMS, MAX_PYTHONS, PythonLayout, RuntimeId};

/// A runtime's map: layouts of `N` bytes by pid.
struct PidMap<const N: usize>(HashMap<MapData, u32, [u8; N]>);

/// The same, of any size.
trait Layouts {
    fn insert(&mut self, pid: Pid, layout: &[u8], flags: u64) -> Result<(), MapError>;
    fn insert_empty(&mut self, pid: Pid, flags: u64) -> Result<(), MapError>;
    fn has(&self, pid: Pid) -> bool;
    fn remove(&mut self, pid: Pid);
}

impl<const N: usize> Layouts for PidMap<N> {
    fn insert(&mut self, pid: Pid, layout: &[u8], flags: u64) -> Result<(), MapError> {
        let layout: [u8; N] =
            layout.try_into().map_err(|_| MapError::InvalidValueSize { size: layout.len(), expected: N })?;
        self.0.insert(pid, layout, flags)
    }
    fn insert_empty(&mut self, pid: Pid, flags: u64) -> Result<(), MapError> {
        self.0.insert(pid, [0; N], flags)
    }
    fn has(&self, pid: Pid) -> bool {
        self.0.get(&pid, 0).is_ok()
    }
    fn remove(&mut self, pid: Pid) {
        let _ = self.0.remove(&pid);
    }
}

/// The maps, and whether the sampler looks in them: not the one that walks by frame pointers only.
pub(super) struct RuntimeMaps {
    maps: Vec<(RuntimeId, &'static str, Box<dyn Layouts + Send + Sync>)>,
    pub(super) walked: bool,
}

/// bpf(2): the element is made or replaced; it must not be there, or must be there already.
const ANY: u64 = 0;
const MUST_BE_NEW: u64 = 1;
const MUST_EXIST: u64 = 2;

impl RuntimeMaps {
    /// The maps of the runtimes that the walker has rooms for.
    pub(super) fn of(ebpf: &mut Ebpf, walked: bool) -> Result<Self, CaptureError> {
        let jvms = PidMap::<{ size_of::<JvmLayout>() }>(take(ebpf, "JVMS")?);
        let pythons = PidMap::<{ size_of::<PythonLayout>() }>(take(ebpf, "PYTHONS")?);
        let maps: Vec<(_, _, Box<dyn Layouts + Send + Sync>)> = vec![
            (RuntimeId::HOTSPOT, "JVMS", Box::new(jvms)),
            (RuntimeId::CPYTHON, "PYTHONS", Box::new(pythons)),
        ];
        Ok(Self { maps, walked })
    }

    fn of_runtime(&mut self, runtime: RuntimeId) -> Result<(&'static str, &mut dyn Layouts), CaptureError> {
        let found = self.maps.iter_mut().find(|(id, ..)| *id == runtime);
        let (_, name, map) = found.ok_or(CaptureError::NoSuchRuntime(runtime.0))?;
        if self.walked { Ok((*name, &mut **map)) } else { Err(CaptureError::NoRuntimeWalk) }
    }
}

impl Capture {
    /// Before a process's layout is read: from now on the kernel notes whether it runs another program or ends.
    ///
    /// # Errors
    /// [`CaptureError::NoRuntimeWalk`]: this kernel walks by frame pointers only. [`CaptureError::NoSuchRuntime`]: no
    /// such map. [`CaptureError::TooMany`]: the map is full. [`CaptureError::Map`]: bpf(2) failed otherwise. Then the
    /// kernel notes nothing of the process.
    pub fn expect_runtime(&mut self, runtime: RuntimeId, pid: Pid) -> Result<(), CaptureError> {
        // Without a range of code it is walked as any other process.
        let (name, map) = self.runtimes.of_runtime(runtime)?;
        // A forked interpreter has its parent's layout, which is as right for it until its own is read.
        let flags = if runtime == RuntimeId::CPYTHON { MUST_BE_NEW } else { ANY };
        match map.insert_empty(pid, flags) {
            Err(MapError::SyscallError(e)) if e.io_error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            done => done.map_err(|error| failed(name, error)),
        }
    }

    /// From now on, the process's stacks are walked by this layout, which was read after
    /// [`expect_runtime`](Self::expect_runtime). A layout of other code needs another incarnation, never 0. False: the
    /// process has ended or run another program meanwhile, and the layout is nobody's.
    ///
    /// # Errors
    /// As for [`Self::expect_runtime`]; [`CaptureError::Map`] also for a layout of another length than the runtime's.
    /// The process has the layout then that it had before, or none.
    pub fn set_runtime(&mut self, runtime: RuntimeId, pid: Pid, layout: &[u8]) -> Result<bool, CaptureError> {
        let (name, map) = self.runtimes.of_runtime(runtime)?;
        match map.insert(pid, layout, MUST_EXIST) {
            Ok(()) => Ok(true),
            Err(MapError::SyscallError(e)) if e.io_error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(error) => Err(failed(name, error)),
        }
    }

    /// Whether the kernel still has the process's entry: it drops those of processes that ended or run another
    /// program.
    pub fn has_runtime(&self, runtime: RuntimeId, pid: Pid) -> bool {
        self.runtimes.maps.iter().any(|(id, _, map)| *id == runtime && map.has(pid))
    }

    /// Drops a process's layout; a process without one is fine.
    pub fn forget_runtime(&mut self, runtime: RuntimeId, pid: Pid) {
        if let Ok((_, map)) = self.runtimes.of_runtime(runtime) {
            map.remove(pid);
        }
    }
}

fn failed(name: &'static str, error: MapError) -> CaptureError {
    match error {
        MapError::SyscallError(e) if e.io_error.raw_os_error() == Some(libc::E2BIG) => {
            let limit = if name == "PYTHONS" { MAX_PYTHONS } else { MAX_JVMS };
            CaptureError::TooMany { what: "processes of a runtime", limit: limit as usize }
        }
        error => CaptureError::Map { name, source: error.into() },
    }
}
