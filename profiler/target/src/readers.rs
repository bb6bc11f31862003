//! Threads that wait for reads of targets, so that no other thread of the daemon does: one queue for all.
//!
//! In: jobs, each about a process. Out: what each gave, at the [`Door`] of who handed it in. A job runs on an errand's
//! thread ([`super::errand`]), which can be given up; a reader waits for it as long as its [`Class`] says. One job of a
//! process at a time, in the order that they came; of those that may take half a minute at most `ASKING` at once, so
//! that names of frames never wait behind them. Next is the job of the user who kept readers least (`queue`).

mod queue;

use super::errand::{About, Errand, Turned, What, asking, background};
use emberscope_model::ProcessKey;
use emberscope_supervise::Beat;
use emberscope_supervise::quarantine::{self, Item};
use queue::{Job, State, THREADS, Waiting, Work};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
        Door { readers: self.clone(), out, done, waiting: Waiting::default() }
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
        state.add(job);
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
        let begun = Instant::now();
        (job.work)(beat);
        state = shared.lock();
        state.done(job.key, begun.elapsed());
        // What waited behind it, or for its class.
        shared.changed.notify_all();
    }
}

/// Where jobs of one kind are handed in, and what they gave comes out.
pub struct Door<T> {
    readers: Readers,
    out: Sender<T>,
    done: Receiver<T>,
    waiting: Waiting,
}

impl<T: Send + 'static> Door<T> {
    /// Whether a job of anybody's would be taken.
    pub fn has_room(&self) -> bool {
        self.waiting.have_room()
    }

    /// Hands in a job; `unread` makes of its failure what comes out. False when too many wait, in all or of this
    /// user's, or no thread can be started.
    pub fn submit(
        &self,
        class: Class,
        of: Of,
        job: impl FnOnce() -> T + Send + 'static,
        unread: impl FnOnce(Unread) -> T + Send + 'static,
    ) -> bool {
        let what = match class {
            Class::Memory => What::Memory,
            Class::Asking => What::Root,
        };
        let about = About::process(&of.dir, what);
        let user = about.payer;
        if !self.waiting.take(user) {
            return false;
        }
        let (key, out, waiting) = (of.key, self.out.clone(), self.waiting.clone());
        let work: Work = Box::new(move |beat| {
            let done = beat.work(|| within(class, key, about, job)).unwrap_or(Err(Unread::Quarantined));
            waiting.give_back(user);
            let _ = out.send(done.unwrap_or_else(unread));
        });
        let taken = self.readers.put(Job { key, user, class, work });
        if !taken {
            self.waiting.give_back(user);
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
    key: ProcessKey,
    about: About,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unread> {
    let errands = match class {
        Class::Memory => background(),
        Class::Asking => asking(),
    };
    let done = errands.run(about, class.patience(), move || {
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
