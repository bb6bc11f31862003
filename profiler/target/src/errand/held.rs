//! An open file of a target in the hands of a thread that must not wait.

use super::{About, Errand, What, background};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Files that nobody may close now; the rest of more stay open.
const MAX_WAITING: usize = 256;

/// Files that are not closed yet, and of whom each is.
static WAITING: Mutex<Vec<Open>> = Mutex::new(Vec::new());

/// A file that is closed on a thread that can be given up: close(2) tells a FUSE server, also one below an overlay, and
/// waits for it (fuse_flush, fs/fuse/file.c, Linux 6.18). While its user's reads are refused the file waits for the
/// next that is closed.
#[derive(Debug)]
pub struct Held {
    file: Option<File>,
    dir: PathBuf,
}

impl Held {
    /// `dir` is the directory in /proc of a process that maps it.
    pub fn new(file: File, dir: &Path) -> Self {
        Self { file: Some(file), dir: dir.into() }
    }

    /// The open file's descriptor.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        let open = Open { about: About::process(&self.dir, What::File), file: Shared::of(file) };
        let mut all = std::mem::take(&mut *waiting());
        all.push(open);
        all.retain(|open| !open.close());
        let mut waiting = waiting();
        let room = MAX_WAITING.saturating_sub(waiting.len());
        waiting.extend(all.into_iter().take(room));
    }
}

fn waiting() -> MutexGuard<'static, Vec<Open>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that waits to be closed, and whose it is.
#[derive(Debug)]
struct Open {
    about: About,
    file: Shared,
}

impl Open {
    /// Has it closed; false when nobody may now.
    fn close(&self) -> bool {
        let file = self.file.clone();
        let closed = background().run(self.about.clone(), Duration::ZERO, move || file.close());
        !matches!(closed, Errand::Turned(_))
    }
}

/// A file that only [`Shared::close`] closes: never who drops it.
#[derive(Clone, Debug)]
struct Shared(Arc<Mutex<Option<ManuallyDrop<File>>>>);

impl Shared {
    fn of(file: File) -> Self {
        Self(Arc::new(Mutex::new(Some(ManuallyDrop::new(file)))))
    }

    fn close(&self) {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(file.map(ManuallyDrop::into_inner));
    }
}
