//! One daemon per data directory: a lock on `<data-dir>/lock`.
//!
//! In: the directory, made when it is missing. Out: a [`DataDirLock`], held until it is dropped or the
//! process ends in any way (flock(2)), or who has it. The file holds the pid of the owner for people; a
//! file that was left behind means nothing without the lock.

use super::CliError;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lock; dropping it lets go.
#[derive(Debug)]
pub struct DataDirLock {
    file: File,
}

impl Drop for DataDirLock {
    /// Closing alone is not enough: a child that a thread has just forked has the file until it runs its program.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Who only looks has the lock for a moment: times it is tried, and how long it is waited between.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Who has a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// No daemon has it now.
    Nobody,
    /// A daemon; its pid where the file tells it.
    Daemon(Option<u32>),
}

impl DataDirLock {
    /// Takes the lock, making the directory (for its owner and group only) where it is missing.
    ///
    /// # Errors
    /// [`CliError::Locked`]: another process has it, with its pid where the file tells. [`CliError::DataDir`]: the
    /// directory or its lock cannot be made, locked or written.
    pub fn take(dir: &Path) -> Result<Self, CliError> {
        let made = DirBuilder::new().recursive(true).mode(0o750).create(dir);
        made.map_err(|reason| CliError::DataDir {
            what: "make the data directory",
            path: dir.to_owned(),
            reason,
        })?;
        let path = file_in(dir);
        let failed = |what, reason| CliError::DataDir { what, path: path.clone(), reason };
        let mut file = open(&path, true).map_err(|source| failed("open the lock", source))?;
        for left in (0..TRIES).rev() {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if left > 0 => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(CliError::Locked { dir: dir.to_owned(), pid: read_pid(&mut file) });
                }
                Err(TryLockError::Error(source)) => return Err(failed("lock", source)),
            }
        }
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(|source| failed("write the lock", source))?;
        Ok(Self { file })
    }

    /// Who has the directory, without taking it for longer than the look.
    ///
    /// # Errors
    /// The lock's file is there and cannot be opened or asked. A file that is not there is nobody's.
    pub fn holder(dir: &Path) -> io::Result<Holder> {
        let mut file = match open(&file_in(dir), false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Holder::Nobody),
            other => other?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Holder::Nobody),
            Err(TryLockError::WouldBlock) => Ok(Holder::Daemon(read_pid(&mut file))),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn file_in(dir: &Path) -> PathBuf {
    dir.join("lock")
}

fn open(path: &Path, write: bool) -> io::Result<File> {
    // Not through a symlink, and not waiting on a FIFO that somebody put there.
    let flags = (libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC) as _;
    OpenOptions::new().read(true).write(write).create(write).mode(0o640).custom_flags(flags).open(path)
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a/b");
        assert_eq!(DataDirLock::holder(&dir).unwrap(), Holder::Nobody);
        let first = DataDirLock::take(&dir).unwrap();
        let pid = std::process::id();
        assert_eq!(DataDirLock::holder(&dir).unwrap(), Holder::Daemon(Some(pid)));
        let second = DataDirLock::take(&dir).unwrap_err();
        let text = second.to_string();
        assert!(text.contains(&format!("(pid {pid})")) && text.contains("a/b"), "{text}");
        assert_ne!(second.code(), 0);
        drop(first);
        assert_eq!(DataDirLock::holder(&dir).unwrap(), Holder::Nobody);
        DataDirLock::take(&dir).unwrap();
    }

    #[test]
    fn it_is_let_go_though_another_has_the_file() {
        let root = tempfile::tempdir().unwrap();
        let first = DataDirLock::take(root.path()).unwrap();
        let _forked = first.file.try_clone().unwrap();
        drop(first);
        DataDirLock::take(root.path()).unwrap();
        // And a look is no holder.
        let look = open(&file_in(root.path()), false).unwrap();
        look.lock_shared().unwrap();
        let looking = std::thread::spawn(move || {
            std::thread::sleep(PAUSE);
            drop(look);
        });
        DataDirLock::take(root.path()).unwrap();
        looking.join().unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_is_told() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = DataDirLock::take(&file.join("data")).unwrap_err().to_string();
        assert!(error.starts_with("cannot make the data directory"), "{error}");
        let link = root.path().join("lock");
        std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
        let error = DataDirLock::take(root.path()).unwrap_err().to_string();
        assert!(error.starts_with("cannot open the lock"), "{error}");
    }
}
