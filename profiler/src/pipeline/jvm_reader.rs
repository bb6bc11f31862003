//! The thread that reads JVMs from outside, so that the sampling thread never waits for a target's memory.
//!
//! In: a process, and whether its libjvm, its code heaps or its threads' names are wanted. Out: what was found. One job at
//! a time, at most [`MAX_WAITING`] waiting; who is turned away is asked for again.

use crate::hotspot::{Jvm, JvmProblem, LibjvmFiles};
use crate::model::{FileId, NameProbe, Pid, ProcessKey, StringLayout, Tid};
use crate::supervise::quarantine::{self, Item};
use crate::supervise::{self, Beat};
use crate::target::errand::{About, Errand, Held, Turned, What, background};
use crate::unwind;
use profiler_ebpf::JvmLayout;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Jobs that may wait: more JVMs than a node has.
const MAX_WAITING: usize = 256;
/// Longest for one job: 32,768 threads' comms on a busy machine.
const STUCK: Duration = Duration::from_secs(60);
/// Longest that the thread waits for a JVM's memory: others wait behind.
const PATIENCE: Duration = Duration::from_secs(8);
/// Threads of one JVM whose comm is read.
const MAX_COMMS: usize = 32_768;

/// What to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Where its threads' namings can be seen.
    Library(ProcessKey),
    /// What its threads are called.
    Names(ProcessKey),
    /// Where its code is and how it is laid out; the layout gets this incarnation.
    Layout(ProcessKey, u32),
}

/// The libjvm of a JVM, and where in it namings can be seen.
#[derive(Debug)]
pub struct Library {
    /// Which file.
    pub id: FileId,
    /// The file.
    pub file: Held,
    /// Where; None: the file does not tell.
    pub probe: Option<NameProbe>,
    /// How the JVM lays out Strings, where the probe needs to know.
    pub strings: Option<StringLayout>,
}

/// Names of a JVM's threads, from two sources.
#[derive(Debug)]
pub struct Names {
    /// comms: of all threads, cut to 15 bytes.
    pub comms: Vec<(Tid, Vec<u8>)>,
    /// Full names from the JVM's memory: of Java threads.
    pub java: Result<Vec<(Tid, String)>, JvmProblem>,
}

/// What came of a job.
#[derive(Debug)]
pub enum Found {
    /// Of [`Job::Library`].
    Library(ProcessKey, Result<Library, JvmProblem>),
    /// Of [`Job::Names`].
    Names(ProcessKey, Names),
    /// Of [`Job::Layout`], with its incarnation.
    Layout(ProcessKey, u32, Result<JvmLayout, JvmProblem>),
}

/// The thread's door.
pub struct JvmReader {
    jobs: SyncSender<Job>,
    found: Receiver<Found>,
}

impl JvmReader {
    /// Starts the thread.
    pub fn start() -> std::io::Result<Self> {
        let (jobs, queue) = sync_channel(MAX_WAITING);
        let (out, found) = channel();
        supervise::spawn("jvm-reader", STUCK, move |beat| run(&queue, &out, beat))?;
        Ok(Self { jobs, found })
    }

    /// Hands over a job; false when too many wait.
    pub fn submit(&self, job: Job) -> bool {
        match self.jobs.try_send(job) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// What was found since the last call.
    pub fn poll(&self) -> impl Iterator<Item = Found> {
        self.found.try_iter()
    }
}

fn run(queue: &Receiver<Job>, out: &Sender<Found>, beat: &Beat) {
    let mut files = Arc::<Mutex<LibjvmFiles>>::default();
    for job in queue {
        let found = beat
            .work(|| find_within(PATIENCE, job, &mut files))
            .unwrap_or_else(|_| job.failed(JvmProblem::Quarantined));
        if out.send(found).is_err() {
            return;
        }
    }
}

/// Reads on a thread that can be given up. What is known of files stays with one that does not come back, or fails.
fn find_within(patience: Duration, job: Job, files: &mut Arc<Mutex<LibjvmFiles>>) -> Found {
    let known = Arc::clone(files);
    let about = About::process(&dir_of(job.key()), What::Memory);
    let found = background().run(about, patience, move || match quarantine::enter(|| job.item()) {
        Ok(_reading) => find(job, &mut known.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(_) => job.failed(JvmProblem::Quarantined),
    });
    match found {
        Errand::Done(found) => found,
        Errand::Turned(Turned::Failed) => {
            *files = Arc::default();
            job.failed(JvmProblem::Quarantined)
        }
        Errand::Late(_) => {
            *files = Arc::default();
            job.failed(JvmProblem::Late)
        }
        Errand::Turned(_) => job.failed(JvmProblem::Late),
    }
}

fn find(job: Job, files: &mut LibjvmFiles) -> Found {
    match job {
        Job::Library(key) => Found::Library(key, library(key, files)),
        Job::Names(key) => Found::Names(key, names(key, files)),
        Job::Layout(key, incarnation) => Found::Layout(key, incarnation, layout(key, incarnation, files)),
    }
}

impl Job {
    fn item(self) -> Item {
        let key = self.key();
        Item::process(key.pid, key.start_ticks)
    }

    fn key(self) -> ProcessKey {
        let (Self::Library(key) | Self::Names(key) | Self::Layout(key, _)) = self;
        key
    }

    /// The JVM is not read.
    fn failed(self, problem: JvmProblem) -> Found {
        match self {
            Self::Library(key) => Found::Library(key, Err(problem)),
            Self::Names(key) => Found::Names(key, Names { comms: comms(&dir_of(key)), java: Err(problem) }),
            Self::Layout(key, incarnation) => Found::Layout(key, incarnation, Err(problem)),
        }
    }
}

fn dir_of(key: ProcessKey) -> PathBuf {
    Path::new("/proc").join(key.pid.to_string())
}

fn library(key: ProcessKey, files: &mut LibjvmFiles) -> Result<Library, JvmProblem> {
    let mut jvm = Jvm::open(&dir_of(key), key.start_ticks, files)?;
    let libjvm = jvm.libjvm();
    let (id, probe) = (libjvm.id, libjvm.probe);
    let file = libjvm.file.try_clone().map_err(|_| JvmProblem::File("too many open files"))?;
    let strings = match probe {
        Some(NameProbe::JavaName { .. }) => Some(jvm.string_layout()?),
        Some(NameProbe::NativeName { .. }) | None => None,
    };
    if let Some(NameProbe::NativeName { offset } | NameProbe::JavaName { offset }) = probe {
        // The kernel reads the page that gets the probe, on the thread that asks for it (copy_insn,
        // kernel/events/uprobes.c): it comes here, or that thread never asks.
        file.read_exact_at(&mut [0], offset).map_err(|_| JvmProblem::File("its code cannot be read"))?;
    }
    Ok(Library { id, file: Held::new(file, &dir_of(key)), probe, strings })
}

fn layout(key: ProcessKey, incarnation: u32, files: &mut LibjvmFiles) -> Result<JvmLayout, JvmProblem> {
    let jvm = Jvm::open(&dir_of(key), key.start_ticks, files)?;
    unwind::hotspot::layout(&jvm, incarnation)
}

fn names(key: ProcessKey, files: &mut LibjvmFiles) -> Names {
    let comms = comms(&dir_of(key));
    let java = Jvm::open(&dir_of(key), key.start_ticks, files).and_then(|mut jvm| jvm.thread_names());
    Names { comms, java: java.map(|names| names.names) }
}

/// The comm of one thread.
pub fn comm(pid: Pid, tid: Tid) -> Option<Vec<u8>> {
    read_comm(&Path::new("/proc").join(pid.to_string()).join("task").join(tid.to_string()))
}

/// Without its newline. At most 16 bytes (TASK_COMM_LEN), and no process chooses how long reading it takes.
fn read_comm(thread: &Path) -> Option<Vec<u8>> {
    let mut comm = std::fs::read(thread.join("comm")).ok()?;
    comm.pop_if(|last| *last == b'\n');
    Some(comm)
}

/// The comm of every thread.
fn comms(dir: &Path) -> Vec<(Tid, Vec<u8>)> {
    let tasks = std::fs::read_dir(dir.join("task")).into_iter().flatten().flatten();
    let comm = |entry: std::fs::DirEntry| {
        let tid = entry.file_name().to_str()?.parse().ok()?;
        Some((tid, read_comm(&entry.path())?))
    };
    tasks.take(MAX_COMMS).filter_map(comm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_comms_of_our_own_threads() {
        let name = "x (y) z";
        let (told, heard) = channel();
        let (go, wait) = channel::<()>();
        let thread = std::thread::Builder::new().name(name.into());
        let thread = thread.spawn(move || {
            told.send(rustix::thread::gettid().as_raw_nonzero().get() as Tid).unwrap();
            wait.recv().unwrap();
        });
        let tid = heard.recv().unwrap();
        let all = comms(Path::new("/proc/self"));
        assert_eq!(all.iter().find(|(t, _)| *t == tid).map(|(_, comm)| &comm[..]), Some(name.as_bytes()));
        go.send(()).unwrap();
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn no_jvm_is_a_problem_with_a_name() {
        let reader = JvmReader::start().unwrap();
        let me = ProcessKey { pid: std::process::id(), start_ticks: 0 };
        assert!(reader.submit(Job::Library(me)) && reader.submit(Job::Names(me)));
        let mut found = reader.found.iter();
        assert!(matches!(found.next(), Some(Found::Library(key, Err(JvmProblem::NoLibjvm))) if key == me));
        let Some(Found::Names(_, names)) = found.next() else { panic!("no names") };
        assert!(!names.comms.is_empty() && names.java == Err(JvmProblem::NoLibjvm));
    }
}
