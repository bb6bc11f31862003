//! Files in a process's own root, by paths that it was told.

use super::{ProcRoot, ReadError};
use emberscope_model::Pid;
use emberscope_target::errand::{About, What};
use emberscope_target::open::{self, Refusal};
use std::io::Read as _;
use std::path::PathBuf;

impl ProcRoot {
    /// Up to `limit` bytes of a file that the process could read by this path of its own: inside its root, a regular file,
    /// its user's or one that everybody may read. On a thread that can be given up, as [`ProcRoot::read_memory`].
    ///
    /// # Errors
    /// [`ReadError::Gone`]: there is none. [`ReadError::Denied`]: it is another user's. [`ReadError::Late`]: it takes longer
    /// than the caller waits. [`ReadError::Failed`]: it is no regular file, or cannot be read.
    pub fn read_inside(&self, pid: Pid, path: PathBuf, limit: usize) -> Result<Vec<u8>, ReadError> {
        let dir = self.path().join(pid.to_string());
        let uid = About::process(&dir, What::Root).uid;
        self.soon(pid, What::Root, move || {
            let root = open::root(&dir.join("root")).map_err(refused)?;
            let inside = path.strip_prefix("/").unwrap_or(&path);
            let (file, stat) = open::any_regular_file(&root, inside).map_err(refused)?;
            if !is_readable(stat.st_uid, stat.st_mode, uid) {
                return Err(ReadError::Denied);
            }
            let mut bytes = Vec::new();
            file.take(limit as u64).read_to_end(&mut bytes).map_err(|e| ReadError::from_io(&e))?;
            Ok(bytes)
        })
    }
}

/// Whether a user may read a file without his groups: this daemon may read all, and must be no way to.
fn is_readable(owner: u32, mode: u32, uid: u32) -> bool {
    uid == 0 || owner == uid || mode & 0o004 != 0
}

fn refused(refusal: Refusal) -> ReadError {
    match refusal {
        Refusal::ProcessGone | Refusal::Missing => ReadError::Gone,
        _ => ReadError::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_elses_file_is_read() {
        assert!(is_readable(1000, 0o100_400, 1000) && is_readable(0, 0o100_644, 1000));
        assert!(!is_readable(0, 0o100_600, 1000) && !is_readable(1001, 0o100_640, 1000));
        assert!(is_readable(1001, 0o100_600, 0));
    }
}
