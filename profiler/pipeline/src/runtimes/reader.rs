//! What is read of processes of runtimes, on threads that may wait: jobs in, what was found out.
//!
//! Names of frames are asked for by `symbolize`, at a door of its own; all read the same opened process.

use super::comms::comms;
use emberscope_model::{ProcessKey, Tid};
use emberscope_runtime::{Again, Layout, Library, Opened, Problem, Readers, RuntimeId};
use emberscope_target::readers::{Door, Of};
use std::path::{Path, PathBuf};

/// What to find out of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Where the process's namings of threads can be seen.
    Library,
    /// What the process's threads are called.
    Names,
    /// What the walker must know of the process; the layout gets this incarnation.
    Layout(u32),
    /// The same of a process that the walker knows already.
    Settled(u32),
    /// What the process has counted.
    Counts,
}

/// Names of a process's threads, from two sources.
#[derive(Debug)]
pub struct Names {
    /// Of all threads what the kernel calls them, cut to 15 bytes.
    pub comms: Vec<(Tid, Vec<u8>)>,
    /// Full names from the process's memory.
    pub full: Result<Vec<(Tid, String)>, Problem>,
}

/// What came of a job.
#[derive(Debug)]
pub enum Found {
    /// What came of [`Job::Library`].
    Library(ProcessKey, Result<Library, Problem>),
    /// What came of [`Job::Names`].
    Names(ProcessKey, Names),
    /// What came of [`Job::Layout`] or [`Job::Settled`], with the incarnation.
    Layout(ProcessKey, u32, Result<Layout, Problem>),
    /// What came of [`Job::Counts`]; nothing where the process is not read.
    Counts(ProcessKey, Vec<(&'static str, u64)>),
}

/// The door of this room's jobs at the readers.
pub struct Reader {
    readers: Readers,
    door: Door<Found>,
}

impl Reader {
    /// The door at these readers.
    pub fn of(readers: Readers) -> Self {
        Self { door: readers.door(), readers }
    }

    /// Hands in a job; false when too many wait.
    pub fn submit(&self, (runtime, key): (RuntimeId, ProcessKey), job: Job) -> bool {
        let again = match job {
            // Whatever was opened before was opened before the kernel was told to expect a layout.
            Job::Layout(_) => Again::Always,
            Job::Library | Job::Names | Job::Settled(_) | Job::Counts => Again::Failed,
        };
        let of = (runtime, Of { key, dir: dir_of(key) });
        let find = move |opened: Result<&mut dyn Opened, Problem>| match opened {
            Ok(opened) => job.find(key, opened),
            Err(problem) => job.failed(key, problem),
        };
        self.readers.submit(&self.door, of, again, find, move |problem| job.failed(key, problem))
    }

    /// The process runs another program.
    pub fn forget(&self, key: ProcessKey) {
        self.readers.forget(key);
    }

    /// The readers behind the door.
    pub fn readers(&self) -> &Readers {
        &self.readers
    }

    /// What was found since the last call.
    pub fn poll(&self) -> impl Iterator<Item = Found> {
        self.door.poll()
    }
}

impl Job {
    fn find(self, key: ProcessKey, opened: &mut dyn Opened) -> Found {
        match self {
            Self::Library => Found::Library(key, opened.library()),
            Self::Names => {
                let comms = comms(&dir_of(key));
                Found::Names(key, Names { comms, full: opened.thread_names() })
            }
            Self::Layout(number) | Self::Settled(number) => Found::Layout(key, number, opened.layout()),
            Self::Counts => Found::Counts(key, opened.counts()),
        }
    }

    /// What comes out of a job whose process is not read.
    fn failed(self, key: ProcessKey, problem: Problem) -> Found {
        match self {
            Self::Library => Found::Library(key, Err(problem)),
            Self::Names => Found::Names(key, Names { comms: comms(&dir_of(key)), full: Err(problem) }),
            Self::Layout(number) | Self::Settled(number) => Found::Layout(key, number, Err(problem)),
            Self::Counts => Found::Counts(key, Vec::new()),
        }
    }
}

fn dir_of(key: ProcessKey) -> PathBuf {
    Path::new("/proc").join(key.pid.to_string())
}
