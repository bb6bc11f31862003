//! What a runtime's processes need of the kernel side: [`Capture`], or a stand-in in tests.

use super::detached::{has_room, take_away};
use emberscope_capture::{Capture, CaptureError, MAX_PROBES};
use emberscope_model::{AllocProbe, FileId, NameProbe, PauseProbe, Pid, StringLayout};
use emberscope_runtime::RuntimeId;
use emberscope_supervise::rights::while_probing;
use std::os::fd::BorrowedFd;

/// The kernel side, as the runtimes' processes use it.
pub trait Kernel {
    /// From now on the kernel notes whether the process runs another program or ends, for a layout that is about to
    /// be read.
    ///
    /// # Errors
    /// This kernel does not walk by layouts, or there is no room.
    fn expect(&mut self, runtime: RuntimeId, pid: Pid) -> Result<(), CaptureError>;
    /// The process's stacks are walked by this layout; false: the process that was expected is gone.
    ///
    /// # Errors
    /// As for [`Self::expect`].
    fn tell(&mut self, runtime: RuntimeId, pid: Pid, layout: &[u8]) -> Result<bool, CaptureError>;
    /// Whether the kernel still has a layout of the process, or expects one.
    fn has(&self, runtime: RuntimeId, pid: Pid) -> bool;
    /// Drops the layout.
    fn forget(&mut self, runtime: RuntimeId, pid: Pid);
    /// Tells what the process's threads use, and their names.
    ///
    /// # Errors
    /// There is no room.
    fn watch_process(&mut self, pid: Pid, strings: Option<StringLayout>) -> Result<(), CaptureError>;
    /// Tells no more of the process's threads.
    fn unwatch_process(&mut self, pid: Pid);
    /// Sees names given in this file.
    ///
    /// # Errors
    /// The probe is refused, or there are too many.
    fn watch_names(&mut self, id: FileId, file: BorrowedFd<'_>, probe: NameProbe)
    -> Result<(), CaptureError>;
    /// Sees no more names given in this file.
    ///
    /// # Errors
    /// The probe stays.
    fn unwatch_names(&mut self, id: FileId) -> Result<(), CaptureError>;
    /// Whether allocations are to be sampled.
    fn samples_allocations(&self) -> bool;
    /// Samples what threads allocate by this file.
    ///
    /// # Errors
    /// The probes are refused.
    fn watch_allocations(
        &mut self,
        id: FileId,
        file: BorrowedFd<'_>,
        probe: AllocProbe,
    ) -> Result<(), CaptureError>;
    /// Samples no more what threads allocate by this file.
    ///
    /// # Errors
    /// A probe stays.
    fn unwatch_allocations(&mut self, id: FileId) -> Result<(), CaptureError>;
    /// Whether pauses are to be seen.
    fn sees_pauses(&self) -> bool;
    /// Sees pauses of processes that map this file.
    ///
    /// # Errors
    /// The probes are refused.
    fn watch_pauses(
        &mut self,
        id: FileId,
        file: BorrowedFd<'_>,
        probe: PauseProbe,
    ) -> Result<(), CaptureError>;
    /// Sees no more pauses of this file.
    ///
    /// # Errors
    /// A probe stays.
    fn unwatch_pauses(&mut self, id: FileId) -> Result<(), CaptureError>;
    /// Whether no other file can be probed.
    fn probes_are_full(&self) -> bool;
    /// Whether a file's old probes are still being taken away: it has no new ones before.
    fn has_going(&self, id: FileId) -> bool;
    /// Whether a file's probes can be taken away without waiting for others'.
    fn may_take_away(&self) -> bool;
}

impl Kernel for Capture {
    fn expect(&mut self, runtime: RuntimeId, pid: Pid) -> Result<(), CaptureError> {
        self.expect_runtime(runtime, pid)
    }
    fn tell(&mut self, runtime: RuntimeId, pid: Pid, layout: &[u8]) -> Result<bool, CaptureError> {
        self.set_runtime(runtime, pid, layout)
    }
    fn has(&self, runtime: RuntimeId, pid: Pid) -> bool {
        self.has_runtime(runtime, pid)
    }
    fn forget(&mut self, runtime: RuntimeId, pid: Pid) {
        self.forget_runtime(runtime, pid);
    }
    fn watch_process(&mut self, pid: Pid, strings: Option<StringLayout>) -> Result<(), CaptureError> {
        Capture::watch_process(self, pid, strings)
    }
    fn unwatch_process(&mut self, pid: Pid) {
        Capture::unwatch_process(self, pid);
    }
    fn watch_names(
        &mut self,
        id: FileId,
        file: BorrowedFd<'_>,
        probe: NameProbe,
    ) -> Result<(), CaptureError> {
        while_probing(|| Capture::watch_names(self, id, file, probe))
    }
    fn unwatch_names(&mut self, id: FileId) -> Result<(), CaptureError> {
        Capture::unwatch_names(self, id).map(take_away)
    }
    fn samples_allocations(&self) -> bool {
        self.has_allocations()
    }
    fn watch_allocations(
        &mut self,
        id: FileId,
        file: BorrowedFd<'_>,
        probe: AllocProbe,
    ) -> Result<(), CaptureError> {
        while_probing(|| Capture::watch_allocations(self, id, file, probe))
    }
    fn unwatch_allocations(&mut self, id: FileId) -> Result<(), CaptureError> {
        Capture::unwatch_allocations(self, id).map(take_away)
    }
    fn sees_pauses(&self) -> bool {
        self.has_pauses()
    }
    fn watch_pauses(
        &mut self,
        id: FileId,
        file: BorrowedFd<'_>,
        probe: PauseProbe,
    ) -> Result<(), CaptureError> {
        while_probing(|| Capture::watch_pauses(self, id, file, probe))
    }
    fn unwatch_pauses(&mut self, id: FileId) -> Result<(), CaptureError> {
        Capture::unwatch_pauses(self, id).map(take_away)
    }
    fn probes_are_full(&self) -> bool {
        self.name_probes() >= MAX_PROBES
    }
    fn has_going(&self, id: FileId) -> bool {
        self.has_probes_going(id)
    }
    fn may_take_away(&self) -> bool {
        has_room()
    }
}
