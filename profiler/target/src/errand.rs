//! Reads of a target that may never end, on threads that can be given up.
//!
//! In: a job, what it reads and of whom ([`About`]), and how long the caller waits. Out: what the job gave; a
//! [`Ticket`] when it takes longer; or why it was not begun ([`Turned`]). Where the kernel must fault in a page of the
//! target's memory, or waits for its mmap_lock that such a fault holds
//! (/proc/PID/{cmdline,environ,maps,map_files,mem}; fs/proc/base.c, fs/proc/task_mmu.c, Linux 6.18), and where a
//! file's file system is served by a program or another machine, a read takes as long as others like. A job that is
//! out for [`Limits::stuck_after`] is given up: its thread is left to it, another takes its place, and the process or
//! the file system is left alone for a time that doubles. Threads, what one user's jobs may hold of them, and the CPU
//! time and the waiting that they may cost are bounded. The sampling thread ([`errands`], [`identifying`]) waits for late jobs for a share of
//! the time only; threads that may wait have a pool of their own ([`background`]).

mod about;
mod debts;
mod held;
mod limits;
mod payer;
mod shares;
mod state;
#[cfg(test)]
mod tests;

pub use about::{About, Key, What};
use emberscope_model::thread_cpu_time;
use emberscope_supervise::attempt;
use emberscope_supervise::rights;
pub use held::Held;
pub use limits::Limits;
pub use shares::Parts;
pub(crate) use shares::half;
pub use state::{Alone, ErrandCounts, Stuck};
use state::{Seen, State, lock};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// A job that took so much CPU time is its cgroup's too.
const COUNTED: Duration = Duration::from_millis(1);
/// Bytes of each thread's stack, of which it touches a few pages.
const STACK: usize = 1 << 20;

/// Why a job was not begun, or gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// A job for the same process or file system did not come back: both are left alone for a while.
    Banned,
    /// A job for the same is out for a moment: it is waited for before the next.
    Slow,
    /// Too many jobs for the processes of one user are out.
    UserBusy,
    /// All threads are out.
    Busy,
    /// The jobs for one user, of these for one cgroup, or for one process took too much CPU time, or were waited for too long.
    Budget,
    /// No thread can be started.
    NoThread,
    /// The job panicked.
    Failed,
}

impl Turned {
    /// All reasons.
    pub const ALL: [Self; 7] =
        [Self::Banned, Self::Slow, Self::UserBusy, Self::Busy, Self::Budget, Self::NoThread, Self::Failed];

    /// Stable short name, for metrics.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Banned => "banned",
            Self::Slow => "slow",
            Self::UserBusy => "user_busy",
            Self::Busy => "busy",
            Self::Budget => "budget",
            Self::NoThread => "no_thread",
            Self::Failed => "failed",
        }
    }
}

/// What a job gives, when it comes back.
#[derive(Debug)]
pub struct Ticket<T>(Receiver<(T, Duration)>);

impl<T> Ticket<T> {
    /// What the job gave; None: it has not come back yet.
    ///
    /// # Errors
    /// [`Turned::Failed`]: the job panicked, so it will never give anything.
    pub fn poll(&self) -> Result<Option<T>, Turned> {
        match self.0.try_recv() {
            Ok((done, _)) => Ok(Some(done)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Turned::Failed),
        }
    }
}

/// What came of handing in a job.
#[derive(Debug)]
pub enum Errand<T> {
    /// The job is done.
    Done(T),
    /// The job takes longer than the caller waits.
    Late(Ticket<T>),
    /// The job was not begun, or gave nothing.
    Turned(Turned),
}

impl<T> Errand<T> {
    /// What the job gave, if that is there in time; else it is dropped when it comes.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(done) => Some(done),
            Self::Late(_) | Self::Turned(_) => None,
        }
    }
}

/// Threads, and what is known of those whose jobs did not come back.
pub struct Errands {
    state: Arc<Mutex<State>>,
}

/// The pool of the sampling thread.
pub fn errands() -> &'static Errands {
    static SAMPLING: OnceLock<Errands> = OnceLock::new();
    SAMPLING.get_or_init(|| Errands::new(Limits::SAMPLING.or_tests()))
}

/// The pool of the sampling thread for what tells who a process is.
pub fn identifying() -> &'static Errands {
    static IDENTIFYING: OnceLock<Errands> = OnceLock::new();
    IDENTIFYING.get_or_init(|| Errands::new(Limits::IDENTIFYING.or_tests()))
}

/// The pool of threads that may wait.
pub fn background() -> &'static Errands {
    static BACKGROUND: OnceLock<Errands> = OnceLock::new();
    BACKGROUND.get_or_init(|| Errands::new(Limits::BACKGROUND.or_tests()))
}

/// The pool of threads that ask JVMs: they have the right to be another user, as a JVM wants to be asked.
pub fn asking() -> &'static Errands {
    static ASKING: OnceLock<Errands> = OnceLock::new();
    ASKING.get_or_init(|| Errands::new(Limits::ASKING.or_tests()))
}

/// What all four pools did.
pub fn counts() -> ErrandCounts {
    errands().counts().and(identifying().counts()).and(background().counts()).and(asking().counts())
}

impl Errands {
    /// A pool without threads yet.
    pub fn new(limits: Limits) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(limits))) }
    }

    /// Has a job done, and waits for it: until `patience` is over, or less where much was waited lately.
    pub fn run<T: Send + 'static>(
        &self,
        about: About,
        patience: Duration,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Errand<T> {
        let (out, result) = channel();
        let state = Arc::clone(&self.state);
        // Files of /proc are not read under the lock.
        let (start, group) = lock(&state).matters(&about, Instant::now());
        let seen = Seen {
            start: if start { about.start() } else { None },
            group: if group { payer::group(&about.dir) } else { None },
        };
        let mut all = lock(&state);
        let (number, queue) = match all.begin(&about, seen, Instant::now()) {
            Ok(thread) => thread,
            Err(turned) => return Errand::Turned(all.turn(turned)),
        };
        let patience = patience.min(all.may_wait(&about, Instant::now())).max(all.limits.least);
        drop(all);
        let (thread, dir) = (queue.clone(), about.dir.clone());
        let work: state::Job = Box::new(move || {
            let before = thread_cpu_time();
            let done = attempt(job);
            let used = thread_cpu_time().saturating_sub(before);
            let group = seen.group.or_else(|| if used >= COUNTED { payer::group(&dir) } else { None });
            lock(&state).back(number, thread, (used, group));
            if let Ok(done) = done {
                let _ = out.send((done, used));
            }
        });
        if queue.send(work).is_err() {
            return Errand::Turned(lock(&self.state).lost(number));
        }
        let began = Instant::now();
        let came = result.recv_timeout(patience);
        let waited = began.elapsed();
        let group = seen.group.or_else(|| if waited > state::FREE { payer::group(&about.dir) } else { None });
        let mut all = lock(&self.state);
        match came {
            Ok((done, used)) => {
                all.waited(&about, group, (waited.saturating_sub(used), false), Instant::now());
                Errand::Done(done)
            }
            Err(RecvTimeoutError::Disconnected) => Errand::Turned(all.turn(Turned::Failed)),
            Err(RecvTimeoutError::Timeout) => {
                all.waited(&about, group, (waited, true), Instant::now());
                Errand::Late(Ticket(result))
            }
        }
    }

    /// What the pool did, and who is stuck.
    pub fn counts(&self) -> ErrandCounts {
        lock(&self.state).counts(Instant::now())
    }
}

/// A thread that does jobs until nobody has its queue.
fn start_thread(name: &'static str) -> Result<state::Queue, Turned> {
    let (jobs, queue) = sync_channel::<state::Job>(1);
    let thread = std::thread::Builder::new().name(name.into()).stack_size(STACK);
    let run = move || {
        rights::keep_only(name);
        queue.into_iter().for_each(|job| job());
    };
    thread.spawn(run).map(|_| jobs).map_err(|_| Turned::NoThread)
}
