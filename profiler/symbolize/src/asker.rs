//! JVMs asked for perf maps, and the maps read, by the readers, so that nobody else waits for a target.
//!
//! Jobs in, outcomes out. A JVM that does not answer holds up a reader for at most the time-out. All that is read of a target is checked and
//! bounded ([`emberscope_target::open`], [`super::perf_map`]).

use super::attach::{self, AskError, Jvm};
use super::identity::as_user;
use super::jvm;
use super::perf_map::{self, Limits, Scan, ScanError, Wanted};
use emberscope_model::ProcessKey;
use emberscope_runtime::Readers;
use emberscope_target::open::{self, Refusal};
use emberscope_target::readers::{Class, Door, Of, Unread};
use std::io::BufReader;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Perf map entries that one reading takes over, and bytes of their names.
const MAX_ENTRIES: usize = 32_768;
const MAX_NAME_BYTES: usize = 8 << 20;

/// What to do for one process.
#[derive(Clone, Debug)]
pub struct Job {
    /// The process, by its pid and start.
    pub key: ProcessKey,
    /// Which of its programs ([`super::process::ProcessState::epoch`]); comes back in the outcome.
    pub epoch: u32,
    /// How the process can be reached.
    pub jvm: Jvm,
    /// The process's libjvm.so as mapped; None: it is no JVM, so nothing is asked.
    pub libjvm: Option<PathBuf>,
    /// Whether the JVM may be asked now.
    pub may_ask: bool,
    /// Look for a map that somebody else made before asking.
    pub first: bool,
    /// The map exists only because we asked: remove it after reading.
    pub ours: bool,
    /// The JVM's version, where it is known already.
    pub version: Option<String>,
    /// What to look for in the map.
    pub wanted: Wanted,
    /// Most bytes of the map that are read.
    pub max_bytes: u64,
    /// How long the JVM may take to open its socket, and again to answer.
    pub timeout: Duration,
}

/// What came of a job.
#[derive(Debug)]
pub struct Outcome {
    /// The process, by its pid and start.
    pub key: ProcessKey,
    /// Which of the process's programs the job was for.
    pub epoch: u32,
    /// Version of the JVM, where it could be found out.
    pub version: Option<String>,
    /// The JVM was asked: what came of it, and whether a signal was sent.
    pub asked: Option<Result<bool, AskError>>,
    /// How long the JVM took to answer; zero when it was not asked.
    pub took: Duration,
    /// What the map gave, or why it was not read.
    pub read: Result<Scan, Refusal>,
    /// The map is there only because we asked.
    pub ours: bool,
    /// What was looked for in the map.
    pub wanted: Wanted,
}

/// The readers' door for these jobs.
pub struct Asker(Door<Outcome>);

impl Asker {
    /// The door at these readers.
    pub fn of(readers: &Readers) -> Self {
        Self(readers.door())
    }

    /// Hands over a job; false when too many wait or no thread can be started.
    pub fn submit(&self, job: Job) -> bool {
        let of = Of { key: job.key, dir: job.jvm.process_dir.clone() };
        let nothing = Outcome { wanted: job.wanted.clone(), ..Outcome::nothing(&job) };
        let unread = move |why| match why {
            Unread::Late => Outcome { read: Err(Refusal::Late), ..nothing },
            Unread::Quarantined => nothing,
        };
        self.0.submit(Class::Asking, of, move || run(job), unread)
    }

    /// An outcome, if one is there.
    pub fn poll(&self) -> Option<Outcome> {
        self.0.poll().next()
    }
}

impl Outcome {
    /// The outcome of a job that was not done.
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
        Ok(_) if !emberscope_target::same_process(&job.jvm.process_dir, job.jvm.start_ticks) => {
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
