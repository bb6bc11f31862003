//! A kernel that only takes notes.

use super::*;

/// Takes notes.
#[derive(Default)]
pub(super) struct FakeKernel {
    pub(super) layouts: BTreeMap<(RuntimeId, Pid), Vec<u8>>,
    pub(super) watched: Vec<Pid>,
    /// Files whose probes were taken away.
    pub(super) taken: Vec<FileId>,
    /// Whose old probes are still there.
    pub(super) going: Option<FileId>,
    pub(super) is_full: bool,
    pub(super) is_busy: bool,
}

impl Kernel for FakeKernel {
    fn expect(&mut self, runtime: RuntimeId, pid: Pid) -> Result<(), CaptureError> {
        self.layouts.insert((runtime, pid), Vec::new());
        Ok(())
    }
    fn tell(&mut self, runtime: RuntimeId, pid: Pid, layout: &[u8]) -> Result<bool, CaptureError> {
        let expected = self.layouts.get_mut(&(runtime, pid));
        Ok(expected.map(|told| *told = layout.to_vec()).is_some())
    }
    fn has(&self, runtime: RuntimeId, pid: Pid) -> bool {
        self.layouts.contains_key(&(runtime, pid))
    }
    fn forget(&mut self, runtime: RuntimeId, pid: Pid) {
        self.layouts.remove(&(runtime, pid));
    }
    fn watch_process(&mut self, pid: Pid, _: Option<StringLayout>) -> Result<(), CaptureError> {
        self.watched.push(pid);
        Ok(())
    }
    fn unwatch_process(&mut self, pid: Pid) {
        self.watched.retain(|watched| *watched != pid);
    }
    fn watch_names(&mut self, _: FileId, _: BorrowedFd<'_>, _: NameProbe) -> Result<(), CaptureError> {
        panic!("it names no threads");
    }
    fn unwatch_names(&mut self, id: FileId) -> Result<(), CaptureError> {
        self.taken.push(id);
        Ok(())
    }
    fn samples_allocations(&self) -> bool {
        false
    }
    fn watch_allocations(&mut self, _: FileId, _: BorrowedFd<'_>, _: AllocProbe) -> Result<(), CaptureError> {
        panic!("it tells no allocations");
    }
    fn sees_pauses(&self) -> bool {
        false
    }
    fn watch_pauses(&mut self, _: FileId, _: BorrowedFd<'_>, _: PauseProbe) -> Result<(), CaptureError> {
        panic!("it tells no pauses");
    }
    fn unwatch_pauses(&mut self, _: FileId) -> Result<(), CaptureError> {
        Ok(())
    }
    fn unwatch_allocations(&mut self, _: FileId) -> Result<(), CaptureError> {
        Ok(())
    }
    fn probes_are_full(&self) -> bool {
        self.is_full
    }
    fn has_going(&self, id: FileId) -> bool {
        self.going == Some(id)
    }
    fn may_take_away(&self) -> bool {
        !self.is_busy
    }
}
