//! Threads that wait for reads of targets, so that no other thread of the daemon does: one queue for all.
//!
//! In: jobs, each about a process. Out: what each gave, at the [`Door`] of who handed it in. A job runs on an errand's
//! thread ([`super::errand`]), which can be given up; a reader waits for it as long as its [`Class`] says. One job of a
//! process at a time, in the order that they came; of those that may take half a minute at most `ASKING` at once, so
//! that names of frames never wait behind them. At most `MAX_WAITING` jobs of a door wait.

use super::errand::{About, Errand, Turned, What, asking, background};
use emberscope_model::ProcessKey;
use emberscope_supervise::Beat;
use emberscope_supervise::quarantine::{self, Item};
use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Threads. Jobs mostly wait for a target's memory or for a JVM's answer.
const THREADS: usize = 4;
/// Threads that wait for answers of processes, at most.
const ASKING: usize = 2;
/// Jobs of a door that may wait: more processes of a runtime than a node has.
const MAX_WAITING: usize = 256;
/// Longest for one job of any class.
const STUCK: Duration = Duration::from_secs(120);

/// How long a job may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The job reads memory. A large heap's first look takes a second or two.
    Memory,
    /// The job asks a process and reads what that wrote: twice a JVM's ten seconds, and reading its file.
    Asking,
}

impl Class {
    fn patience(self) -> Duration {
        match self {
            Self::Memory => Duration::from_secs(8),
            Self::Asking => Duration::from_secs(35),
        }
    }
}

/// Why a job gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Reading this process made the daemon fail, now or before.
    Quarantined,
    /// Reading this process takes too long, or too much of it is read.
    Late,
}

/// The process that a job reads.
#[derive(Clone, Debug)]
pub struct Of {
    /// The process, by pid and start time.
    pub key: ProcessKey,
    /// Directory of the process in /proc.
    pub dir: PathBuf,
}

type Work = Box<dyn FnOnce(&Beat) + Send>;

struct Job {
    key: ProcessKey,
    class: Class,
    work: Work,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    /// Processes with a job that is done now.
    busy: HashSet<ProcessKey>,
    /// Jobs of [`Class::Asking`] that are done now.
    asking: usize,
    threads: usize,
    over: bool,
}

impl State {
    /// The first job whose turn it is.
    fn next(&mut self) -> Option<Job> {
        let mut waits = HashSet::new();
        let may = |job: &Job| {
            let free = !self.busy.contains(&job.key) && !waits.contains(&job.key);
            let may = free && (job.class != Class::Asking || self.asking < ASKING);
            if !may {
                // Those behind it are of the same process and come after it.
                waits.insert(job.key);
            }
            may
        };
        let at = self.queue.iter().position(may)?;
        let job = self.queue.remove(at)?;
        self.busy.insert(job.key);
        self.asking += usize::from(job.class == Class::Asking);
        Some(job)
    }

    fn done(&mut self, key: ProcessKey, class: Class) {
        self.busy.remove(&key);
        self.asking -= usize::from(class == Class::Asking);
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads, which end with this.
#[derive(Default)]
struct Pool(Arc<Shared>);

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.over = true;
        state.queue.clear();
        self.0.changed.notify_all();
    }
}

/// The threads that read targets. A clone is the same pool.
#[derive(Clone, Default)]
pub struct Readers(Arc<Pool>);

impl Readers {
    /// A door of this pool. Starts no thread yet.
    pub fn door<T>(&self) -> Door<T> {
        let (out, done) = channel();
        Door { readers: self.clone(), out, done, waiting: Arc::default() }
    }

    fn put(&self, job: Job) -> bool {
        let shared = &self.0.0;
        let mut state = shared.lock();
        if state.threads < THREADS {
            let of_thread = Arc::clone(shared);
            match emberscope_supervise::spawn("reader", STUCK, move |beat| read(&of_thread, beat)) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    tracing::warn!(%error, "no thread to read processes with");
                    return false;
                }
                Err(_) => {}
            }
        }
        state.queue.push_back(job);
        shared.changed.notify_one();
        true
    }
}

fn read(shared: &Shared, beat: &Beat) {
    let mut state = shared.lock();
    while !state.over {
        let Some(job) = state.next() else {
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(state);
        (job.work)(beat);
        state = shared.lock();
        state.done(job.key, job.class);
        // What waited behind it, or for its class.
        shared.changed.notify_all();
    }
}

/// Where jobs of one kind are handed in, and what they gave comes out.
pub struct Door<T> {
    readers: Readers,
    out: Sender<T>,
    done: Receiver<T>,
    waiting: Arc<AtomicUsize>,
}

impl<T: Send + 'static> Door<T> {
    /// Whether a job would be taken.
    pub fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < MAX_WAITING
    }

    /// Hands in a job; `unread` makes of its failure what comes out. False when too many wait, or no thread can be
    /// started.
    pub fn submit(
        &self,
        class: Class,
        of: Of,
        job: impl FnOnce() -> T + Send + 'static,
        unread: impl FnOnce(Unread) -> T + Send + 'static,
    ) -> bool {
        if !self.has_room() {
            return false;
        }
        let (key, out, waiting) = (of.key, self.out.clone(), Arc::clone(&self.waiting));
        waiting.fetch_add(1, Ordering::Relaxed);
        let work: Work = Box::new(move |beat| {
            let done = beat.work(|| within(class, &of, job)).unwrap_or(Err(Unread::Quarantined));
            waiting.fetch_sub(1, Ordering::Relaxed);
            let _ = out.send(done.unwrap_or_else(unread));
        });
        let taken = self.readers.put(Job { key, class, work });
        if !taken {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        taken
    }

    /// What came out since the last call.
    pub fn poll(&self) -> impl Iterator<Item = T> {
        self.done.try_iter()
    }
}

/// Does a job on a thread that can be given up.
fn within<T: Send + 'static>(
    class: Class,
    of: &Of,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unread> {
    let (errands, what) = match class {
        Class::Memory => (background(), What::Memory),
        Class::Asking => (asking(), What::Root),
    };
    let key = of.key;
    let done = errands.run(About::process(&of.dir, what), class.patience(), move || {
        let entered = quarantine::enter(|| Item::process(key.pid, key.start_ticks));
        entered.map(|_reading| job())
    });
    match done {
        Errand::Done(done) => done.map_err(|_| Unread::Quarantined),
        Errand::Turned(Turned::Failed) => Err(Unread::Quarantined),
        Errand::Late(_) | Errand::Turned(_) => Err(Unread::Late),
    }
}

#[cfg(test)]
mod tests;
