//! Processes of runtimes, each held open once for all that is read of it.
//!
//! In: jobs on a process (its layout, names of its frames, names of its threads). Out: what they gave, at the door of who
//! handed them in. A process is opened with its first job and closed when it is forgotten; of [`MAX_OPEN`] the one
//! unused for longest goes. A job that does not come back keeps what was open of that process alone.

use super::{Opened, Problem, RuntimeId, Runtimes};
use emberscope_model::ProcessKey;
use emberscope_target::readers::{Class, Door, Of, Readers as Pool};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Processes held open.
const MAX_OPEN: usize = 256;
/// A process that could not be opened is tried again after this.
const RETRY: Duration = Duration::from_secs(1);

/// When a process is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// In any case: what was opened may be the program that ran before.
    Always,
    /// If it could not be opened before.
    Failed,
    /// If it could not be opened before, but not within `RETRY`.
    FailedLongAgo,
}

type Open = Result<Box<dyn Opened>, Problem>;

struct Entry {
    open: Arc<Mutex<Open>>,
    ok: bool,
    used: Instant,
    opened: Instant,
}

#[derive(Default)]
struct Table {
    runtimes: Runtimes,
    entries: Mutex<HashMap<ProcessKey, Entry>>,
    held: AtomicUsize,
}

/// The processes, and the threads that read them. A clone is the same.
#[derive(Clone, Default)]
pub struct Readers {
    pool: Pool,
    table: Arc<Table>,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.runtimes().fmt(f)
    }
}

impl Readers {
    /// The readers of these runtimes' processes. No thread is started yet.
    pub fn new(runtimes: Runtimes) -> Self {
        Self { pool: Pool::default(), table: Arc::new(Table { runtimes, ..Table::default() }) }
    }

    /// The runtimes whose processes are read.
    pub fn runtimes(&self) -> &Runtimes {
        &self.table.runtimes
    }

    /// A door for jobs of one kind.
    pub fn door<T>(&self) -> Door<T> {
        self.pool.door()
    }

    /// Hands in a job on a process; `unread` makes of a failure what comes out at the door. False when too many wait.
    pub fn submit<T: Send + 'static>(
        &self,
        door: &Door<T>,
        (runtime, of): (RuntimeId, Of),
        again: Again,
        job: impl FnOnce(Result<&mut dyn Opened, Problem>) -> T + Send + 'static,
        unread: impl FnOnce(Problem) -> T + Send + 'static,
    ) -> bool {
        let (table, key, dir) = (Arc::clone(&self.table), of.key, of.dir.clone());
        let failed = Arc::clone(&self.table);
        let job = move || {
            let open = table.of(runtime, key, &dir, again);
            let mut open = lock(&open);
            match &mut *open {
                Ok(opened) => job(Ok(&mut **opened)),
                Err(problem) => job(Err(problem.clone())),
            }
        };
        door.submit(Class::Memory, of, job, move |why| {
            // Its thread may hold it for good.
            failed.forget(key);
            unread(why.into())
        })
    }

    /// The process ended or runs another program.
    pub fn forget(&self, key: ProcessKey) {
        self.table.forget(key);
    }

    /// Processes whose memory is held open, or whose failure is remembered.
    pub fn held(&self) -> usize {
        self.table.held.load(Ordering::Relaxed)
    }
}

impl Table {
    /// The process, opened where it was not yet.
    fn of(&self, runtime: RuntimeId, key: ProcessKey, dir: &Path, again: Again) -> Arc<Mutex<Open>> {
        let now = Instant::now();
        if let Some(entry) = lock(&self.entries).get_mut(&key) {
            let stays = match again {
                Again::Always => false,
                Again::Failed => entry.ok,
                Again::FailedLongAgo => entry.ok || now.duration_since(entry.opened) < RETRY,
            };
            if stays {
                entry.used = now;
                return Arc::clone(&entry.open);
            }
        }
        // Not under the lock: it may never end.
        let open = match self.runtimes.get(runtime) {
            Some(runtime) => runtime.open(dir, key.start_ticks),
            None => Err(Problem::Never("no such runtime is known".to_owned())),
        };
        let ok = open.is_ok();
        let open = Arc::new(Mutex::new(open));
        let mut entries = lock(&self.entries);
        if entries.len() >= MAX_OPEN && !entries.contains_key(&key) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key);
            oldest.map(|key| entries.remove(&key));
        }
        entries.insert(key, Entry { open: Arc::clone(&open), ok, used: now, opened: now });
        self.share(&entries);
        open
    }

    fn forget(&self, key: ProcessKey) {
        let mut entries = lock(&self.entries);
        let gone = entries.remove(&key);
        if gone.is_some() {
            self.share(&entries);
        }
        // Closed without the lock.
        drop(entries);
        drop(gone);
    }

    /// What is kept of each depends on how many there are. One that is read now learns of it with a later change.
    fn share(&self, entries: &HashMap<ProcessKey, Entry>) {
        self.held.store(entries.len(), Ordering::Relaxed);
        let open = entries.values().filter(|entry| entry.ok).count();
        for entry in entries.values() {
            if let Ok(mut held) = entry.open.try_lock()
                && let Ok(opened) = &mut *held
            {
                opened.share(open);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
