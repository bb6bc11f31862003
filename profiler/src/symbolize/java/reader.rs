//! The thread that reads the names of Java frames out of JVMs' memory.
//!
//! In: batches of frames of a process, each with its [`Slot`]. Out: the names of each, and what the JVM is. What
//! is known of a JVM (its tables, its methods) is kept here while it lives, for [`MAX_JVMS`] of them. A batch that
//! cannot be handed over stays with its process and goes with the next.

use super::slot::{Slot, Wanted};
use crate::hotspot::{JavaFrame, Jvm, JvmFacts, JvmProblem, LibjvmFiles, Limits, Namer, Texts, Unnamed};
use crate::model::ProcessKey;
use crate::supervise::quarantine::{self, Item, Quarantined};
use crate::supervise::{self, Beat};
use crate::target::errand::{About, Errand, Turned, What, background};
use crate::target::memory::ProcessMemory;
use profiler_ebpf::UserFrame;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Batches that may wait.
const MAX_WAITING: usize = 256;
/// JVMs whose tables are kept; the one unused for longest goes.
const MAX_JVMS: usize = 256;
/// Longest for one batch: a large heap's first look takes a second or two.
const STUCK: Duration = Duration::from_secs(60);
/// Longest that the thread waits for a JVM's memory: others wait behind.
const PATIENCE: Duration = Duration::from_secs(8);
/// A JVM that could not be read is tried again after this.
const RETRY: Duration = Duration::from_secs(1);

enum Job {
    Name { key: ProcessKey, dir: PathBuf, wanted: Wanted },
    Forget(ProcessKey),
}

/// The names of one frame, root first, or why there are none.
pub type Answer = Result<Arc<[JavaFrame]>, Unnamed>;

/// Each frame with its place and its names.
pub type Answers = Vec<(UserFrame, Slot, Answer)>;

/// What came of a batch.
pub struct Named {
    /// Whose frames.
    pub key: ProcessKey,
    /// Each with its names.
    pub frames: Answers,
    /// What is known of the JVM, or why it cannot be read.
    pub facts: Result<JvmFacts, JvmProblem>,
    /// How long it took.
    pub took: Duration,
}

/// The thread's door.
pub struct Reader {
    jobs: Option<(SyncSender<Job>, Receiver<Named>)>,
    held: Arc<AtomicUsize>,
}

impl Reader {
    /// Starts no thread yet.
    pub fn new() -> Self {
        Self { jobs: None, held: Arc::default() }
    }

    /// Hands over frames; gives them back when too many wait.
    pub fn submit(&mut self, key: ProcessKey, dir: PathBuf, wanted: Wanted) -> Result<(), Wanted> {
        match self.send(Job::Name { key, dir, wanted }) {
            Err(Job::Name { wanted, .. }) => Err(wanted),
            _ => Ok(()),
        }
    }

    /// The process ended or runs another program.
    pub fn forget(&mut self, key: ProcessKey) {
        if self.jobs.is_some() {
            // One that is not forgotten now is when its place is needed.
            let _ = self.send(Job::Forget(key));
        }
    }

    /// JVMs whose memory is held open, or whose failure is remembered.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// What was named since the last call.
    pub fn poll(&self) -> impl Iterator<Item = Named> {
        self.jobs.iter().flat_map(|(_, named)| named.try_iter())
    }

    fn send(&mut self, job: Job) -> Result<(), Job> {
        if self.jobs.is_none() {
            let (jobs, queue) = sync_channel(MAX_WAITING);
            let (out, named) = channel();
            let held = Arc::clone(&self.held);
            if let Err(error) =
                supervise::spawn("java-names", STUCK, move |beat| run(&queue, &out, &held, beat))
            {
                tracing::warn!(%error, "no thread to name Java frames with");
                return Err(job);
            }
            self.jobs = Some((jobs, named));
        }
        let Some((jobs, _)) = &self.jobs else { return Err(job) };
        jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(job) | TrySendError::Disconnected(job) => job,
        })
    }
}

/// All that were opened.
#[derive(Default)]
struct Opened {
    jvms: HashMap<ProcessKey, Open>,
    files: LibjvmFiles,
    texts: Texts,
}

/// A JVM that was opened.
struct Open {
    jvm: Result<(Namer, ProcessMemory), JvmProblem>,
    used: Instant,
    opened: Instant,
}

fn run(queue: &Receiver<Job>, out: &Sender<Named>, held: &AtomicUsize, beat: &Beat) {
    let mut all = Arc::<Mutex<Opened>>::default();
    for job in queue {
        match job {
            Job::Forget(key) => {
                let mut opened = lock(&all);
                if opened.jvms.remove(&key).is_some_and(|jvm| jvm.jvm.is_ok()) {
                    opened.share();
                }
                held.store(opened.jvms.len(), Ordering::Relaxed);
            }
            Job::Name { key, dir, wanted } => {
                let begun = Instant::now();
                let frames = wanted.iter().map(|(frame, unloads, _)| (*frame, *unloads)).collect();
                let named = beat.work(|| name_within(PATIENCE, &mut all, (key, dir), frames));
                let (answers, facts) = named.unwrap_or_else(|_| left_alone(wanted.len()));
                let frames = wanted.into_iter().zip(answers);
                let frames = frames.map(|((frame, _, slot), answer)| (frame, slot, answer)).collect();
                held.store(lock(&all).jvms.len(), Ordering::Relaxed);
                if out.send(Named { key, frames, facts, took: begun.elapsed() }).is_err() {
                    return;
                }
            }
        }
    }
}

fn lock(opened: &Mutex<Opened>) -> MutexGuard<'_, Opened> {
    opened.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names frames on a thread that can be given up. What is known of JVMs stays with one that does not come back, or fails:
/// the others' is read again.
fn name_within(
    patience: Duration,
    all: &mut Arc<Mutex<Opened>>,
    (key, dir): (ProcessKey, PathBuf),
    frames: Vec<(UserFrame, u64)>,
) -> (Vec<Answer>, Result<JvmFacts, JvmProblem>) {
    let (opened, count) = (Arc::clone(all), frames.len());
    let named = background().run(About::process(&dir, What::Memory), patience, move || {
        let entered = quarantine::enter(|| Item::process(key.pid, key.start_ticks));
        entered.map(|_reading| name(lock(&opened).of(key, &dir, Instant::now()), &frames))
    });
    let late = || (vec![Err(Unnamed::Unreadable); count], Err(JvmProblem::Late));
    match named {
        Errand::Done(Ok(named)) => named,
        Errand::Done(Err(Quarantined)) => left_alone(count),
        Errand::Turned(Turned::Failed) => {
            *all = Arc::default();
            left_alone(count)
        }
        Errand::Late(_) => {
            *all = Arc::default();
            late()
        }
        Errand::Turned(_) => late(),
    }
}

impl Opened {
    /// The JVM, opened where it was not yet.
    fn of(&mut self, key: ProcessKey, dir: &Path, now: Instant) -> &mut Open {
        if self.jvms.len() >= MAX_JVMS && !self.jvms.contains_key(&key) {
            let oldest = self.jvms.iter().min_by_key(|(_, jvm)| jvm.used).map(|(key, _)| *key);
            oldest.map(|key| self.jvms.remove(&key));
        }
        let again = |jvm: &Open| jvm.jvm.is_err() && now.duration_since(jvm.opened) >= RETRY;
        if self.jvms.get(&key).is_none_or(again) {
            let limits = Limits::of_each(self.readable() + 1);
            let jvm = Jvm::open(dir, key.start_ticks, &mut self.files).and_then(|jvm| jvm.namer(limits));
            let jvm = jvm.map(|(namer, memory)| (namer.sharing(&self.texts), memory));
            self.jvms.insert(key, Open { jvm, used: now, opened: now });
            self.share();
        }
        let known = self.jvms.entry(key);
        let known = known.or_insert_with(|| Open { jvm: Err(JvmProblem::Gone), used: now, opened: now });
        known.used = now;
        known
    }

    fn readable(&self) -> usize {
        self.jvms.values().filter(|jvm| jvm.jvm.is_ok()).count()
    }

    /// What is kept of each JVM depends on how many there are.
    fn share(&mut self) {
        let limits = Limits::of_each(self.readable());
        let namers = self.jvms.values_mut().filter_map(|jvm| jvm.jvm.as_mut().ok());
        namers.for_each(|(namer, _)| namer.set_limits(limits));
    }
}

/// No frame has a name: reading this JVM made us fail, now or before.
fn left_alone(frames: usize) -> (Vec<Answer>, Result<JvmFacts, JvmProblem>) {
    (vec![Err(Unnamed::Quarantined); frames], Err(JvmProblem::Quarantined))
}

/// As many answers as there are frames.
fn name(open: &mut Open, wanted: &[(UserFrame, u64)]) -> (Vec<Answer>, Result<JvmFacts, JvmProblem>) {
    match &mut open.jvm {
        Ok((namer, memory)) => (namer.name_all(memory, wanted.iter().copied()), Ok(namer.facts().clone())),
        Err(problem) => {
            let why = if *problem == JvmProblem::Gone { Unnamed::Gone } else { Unnamed::Unreadable };
            (vec![Err(why); wanted.len()], Err(problem.clone()))
        }
    }
}
