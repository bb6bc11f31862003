//! The threads that ask JVMs for perf maps and read them, so that nobody else waits for a target.
//!
//! Jobs in, outcomes out, over bounded channels. Two threads, started at the first job: a JVM that does
//! not answer holds up one of them for at most the time-out. All that is read of a target is checked and
//! bounded ([`crate::target::open`], [`super::perf_map`]).

use super::attach::{self, AskError, Jvm};
use super::identity::as_user;
use super::jvm;
use super::perf_map::{self, Limits, Scan, ScanError, Wanted};
use crate::model::ProcessKey;
use crate::supervise::quarantine::{self, Item};
use crate::supervise::{self, Beat};
use crate::target::errand::{About, What, asking};
use crate::target::open::{self, Refusal};
use std::io::BufReader;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const THREADS: usize = 2;
/// Longest for one job: the time-out of the JVM, and reading a gigabyte of map.
const STUCK: Duration = Duration::from_secs(120);
/// Longest that the thread waits for one: twice the JVM's time-out, and reading its map.
const PATIENCE: Duration = Duration::from_secs(35);
/// Jobs that may wait: more JVMs than a node has.
const MAX_WAITING: usize = 256;
/// Perf map entries and bytes of names taken over in one reading.
const MAX_ENTRIES: usize = 32_768;
const MAX_NAME_BYTES: usize = 8 << 20;

/// What to do for one process.
#[derive(Clone, Debug)]
pub struct Job {
    /// The process.
    pub key: ProcessKey,
    /// Which of its programs; comes back in the outcome.
    pub epoch: u32,
    /// How to reach it.
    pub jvm: Jvm,
    /// Its libjvm.so as mapped; None: it is no JVM, so nothing is asked.
    pub libjvm: Option<PathBuf>,
    /// Asking is allowed now.
    pub may_ask: bool,
    /// Look for a map that somebody else made before asking.
    pub first: bool,
    /// The map exists only because we asked: remove it after reading.
    pub ours: bool,
    /// The version is known.
    pub version: Option<String>,
    /// What to look for.
    pub wanted: Wanted,
    /// Bytes of the map to read.
    pub max_bytes: u64,
    /// For the JVM.
    pub timeout: Duration,
}

/// How it went.
#[derive(Debug)]
pub struct Outcome {
    /// The process.
    pub key: ProcessKey,
    /// Which of its programs.
    pub epoch: u32,
    /// Version of the JVM, where it could be found out.
    pub version: Option<String>,
    /// The JVM was asked: what came of it, and whether a signal was sent.
    pub asked: Option<Result<bool, AskError>>,
    /// How long the JVM took to answer; zero when it was not asked.
    pub took: Duration,
    /// What the map gave.
    pub read: Result<Scan, Refusal>,
    /// The map is there only because we asked.
    pub ours: bool,
    /// What had been looked for.
    pub wanted: Wanted,
}

/// The threads' door.
pub struct Asker {
    jobs: Option<SyncSender<Job>>,
    outcomes: Option<Receiver<Outcome>>,
}

impl Asker {
    /// Starts nothing yet.
    pub fn new() -> Self {
        Self { jobs: None, outcomes: None }
    }

    /// Hands over a job; false when too many wait or no thread can be started.
    pub fn submit(&mut self, job: Job) -> bool {
        if self.jobs.is_none()
            && let Err(error) = self.start()
        {
            tracing::warn!(%error, "cannot start the threads that read perf maps");
            return false;
        }
        let Some(jobs) = &self.jobs else { return false };
        match jobs.try_send(job) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// An outcome, if one is there.
    pub fn poll(&mut self) -> Option<Outcome> {
        self.outcomes.as_ref()?.try_recv().ok()
    }

    fn start(&mut self) -> std::io::Result<()> {
        let (jobs, queue) = sync_channel::<Job>(MAX_WAITING);
        let (done, outcomes) = channel();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..THREADS {
            let (queue, done) = (Arc::clone(&queue), done.clone());
            supervise::spawn("jvm-names", STUCK, move |beat| work(&queue, &done, beat))?;
        }
        (self.jobs, self.outcomes) = (Some(jobs), Some(outcomes));
        Ok(())
    }
}

fn work(queue: &Mutex<Receiver<Job>>, done: &Sender<Outcome>, beat: &Beat) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        let nothing = Outcome::nothing(&job);
        let outcome = beat.work(|| run_within(PATIENCE, job));
        if done.send(outcome.unwrap_or(nothing)).is_err() {
            return;
        }
    }
}

/// Does a job on a thread that can be given up: its root may be one of a file system that never answers.
fn run_within(patience: Duration, job: Job) -> Outcome {
    let about = About::process(&job.jvm.process_dir, What::Root);
    let late = Outcome { wanted: job.wanted.clone(), read: Err(Refusal::Late), ..Outcome::nothing(&job) };
    let done = asking().run(about, patience, move || {
        match quarantine::enter(|| Item::process(job.key.pid, job.jvm.start_ticks)) {
            Ok(_reading) => run(job),
            Err(_) => Outcome { wanted: job.wanted.clone(), ..Outcome::nothing(&job) },
        }
    });
    done.done().unwrap_or(late)
}

impl Outcome {
    /// Of a job that was not done.
    fn nothing(job: &Job) -> Self {
        Self {
            key: job.key,
            epoch: job.epoch,
            version: job.version.clone(),
            asked: None,
            took: Duration::ZERO,
            read: Err(Refusal::Unreadable),
            ours: job.ours,
            wanted: Wanted::default(),
        }
    }
}

/// Does a job, here and now.
pub fn run(job: Job) -> Outcome {
    let mut outcome = Outcome::nothing(&job);
    outcome.read = match open::root(&job.jvm.process_dir.join("root")) {
        Ok(_) if !crate::target::same_process(&job.jvm.process_dir, job.jvm.start_ticks) => {
            Err(Refusal::ProcessGone)
        }
        Ok(root) => with_root(&job, &root, &mut outcome),
        Err(refusal) => Err(refusal),
    };
    outcome.wanted = job.wanted;
    outcome
}

fn with_root(job: &Job, root: &OwnedFd, outcome: &mut Outcome) -> Result<Scan, Refusal> {
    let path = jvm::map_path(job.jvm.nspid);
    if outcome.version.is_none()
        && let Some(libjvm) = &job.libjvm
    {
        outcome.version = jvm::version_of(root, libjvm);
    }
    if job.first {
        match read(job, root, &path) {
            // Somebody's map names all that we look for: leave the JVM alone.
            Ok(scan) if names_all(&scan, &job.wanted) => return Ok(scan),
            Ok(_) => outcome.ours = false,
            Err(Refusal::Missing) => outcome.ours = true,
            Err(refusal) => return Err(refusal),
        }
    }
    if job.may_ask && job.libjvm.is_some() {
        let begun = Instant::now();
        let asked = ask(job, root, &path, outcome.version.as_deref());
        outcome.took = begun.elapsed();
        let answered = asked.is_ok();
        outcome.asked = Some(asked);
        let scan = read(job, root, &path);
        if outcome.ours && answered {
            // We made the JVM write it; megabytes in its /tmp are not ours to leave behind.
            let _ = as_user(job.jvm.uid, job.jvm.gid, || open::remove_file(root, &path, job.jvm.uid));
        }
        return scan;
    }
    read(job, root, &path)
}

fn ask(job: &Job, root: &OwnedFd, path: &Path, version: Option<&str>) -> Result<bool, AskError> {
    if version.and_then(jvm::major).is_some_and(|major| major < jvm::FIRST_WITH_PERFMAP) {
        return Err(AskError::Never("this JDK is older than 17 and has no Compiler.perfmap"));
    }
    jvm::safe_to_write(root, path, job.jvm.uid)
        .map_err(|refusal| AskError::Unsafe("the place of its perf map", refusal.sentence()))?;
    attach::ask(&job.jvm, root, "Compiler.perfmap", job.timeout).map(|answer| answer.signalled)
}

fn read(job: &Job, root: &OwnedFd, path: &Path) -> Result<Scan, Refusal> {
    let (file, _) = open::regular_file(root, path, job.jvm.uid)?;
    let limits = Limits { file_bytes: job.max_bytes, entries: MAX_ENTRIES, name_bytes: MAX_NAME_BYTES };
    perf_map::scan(BufReader::with_capacity(256 << 10, file), &job.wanted, &limits).map_err(|e| match e {
        ScanError::Io(_) => Refusal::Unreadable,
        ScanError::Rubbish(_) => Refusal::Rubbish,
    })
}

fn names_all(scan: &Scan, wanted: &Wanted) -> bool {
    let mut code: Vec<_> = scan.entries.iter().map(|e| &e.code).collect();
    code.sort_by_key(|c| c.start);
    // Entries may overlap; the last that begins before an address is the likely one, and missing another
    // only means that the JVM is asked once more.
    wanted.addresses.iter().all(|a| {
        let at = code.partition_point(|c| c.start <= *a);
        at.checked_sub(1).and_then(|i| code.get(i)).is_some_and(|c| c.contains(a))
    })
}
