//! What was found in files, kept by file: many processes map the same one.

use rustix::fs::Stat;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Files that are kept; beyond, all are forgotten and found anew.
const MAX_FILES: usize = 256;

/// A file as it is now: device, inode, size, when it was changed. That time cannot be set back, as that of modification
/// can.
type Key = (u64, u64, u64, (i64, u64));

/// What is known of files of one kind, of a kilobyte each or less.
#[derive(Debug)]
pub struct ByFile<T>(Mutex<HashMap<Key, Arc<T>>>);

impl<T> Default for ByFile<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> ByFile<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the file with these attributes; `read` finds it where nothing is known.
    ///
    /// # Errors
    /// What `read` fails with; that is not kept.
    pub fn get<E>(&self, stat: &Stat, read: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let key = (stat.st_dev, stat.st_ino, stat.st_size as u64, (stat.st_ctime, stat.st_ctime_nsec));
        if let Some(known) = self.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        // Not under the lock: the file's system may never answer.
        let found = Arc::new(read()?);
        let mut known = self.lock();
        if known.len() >= MAX_FILES {
            known.clear();
        }
        known.insert(key, Arc::clone(&found));
        Ok(found)
    }
}
