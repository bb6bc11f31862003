//! An open file of a target in the hands of a thread that must not wait.

use super::{About, What, background};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file that is closed on a thread that can be given up: close(2) tells a FUSE server, also one below an overlay, and waits
/// for it (fuse_flush, fs/fuse/file.c, Linux 6.18).
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

    /// The open file.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        // One that nobody may close now stays open: those that do not answer are left alone, so they are few.
        let file = ManuallyDrop::new(file);
        let about = About::process(&self.dir, What::File);
        let _ = background().run(about, Duration::ZERO, move || drop(ManuallyDrop::into_inner(file)));
    }
}
