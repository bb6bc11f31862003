//! What a job reads, and of whom: what is counted, told and left alone.

use super::payer;
use crate::maps::{Backing, Mapping};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What of a process is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// /proc/PID/maps.
    Maps,
    /// /proc/PID/cmdline and environ.
    Words,
    /// A program or library that the process maps.
    File,
    /// A perf map, or another file in the process's root.
    Root,
    /// The memory of the process.
    Memory,
}

impl What {
    /// Stable short name, for metrics.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Maps => "maps",
            Self::Words => "command_line",
            Self::File => "file",
            Self::Root => "root",
            Self::Memory => "memory",
        }
    }
}

/// Which others wait for the end of a job that is slow, and are left alone when it does not end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// The jobs of one process, by its directory in /proc.
    Process(PathBuf),
    /// The jobs of one file system, by its device (major, minor): processes that map other files are not stuck with
    /// it.
    Device(u32, u32),
}

/// What a job reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The process, by its directory in /proc.
    pub dir: PathBuf,
    /// The user whose process that is.
    pub uid: u32,
    /// The user whose budget and threads the job takes: that one, or who owns the user namespace that he is in.
    pub(crate) payer: u32,
    /// What of the process.
    pub what: What,
    /// The file, where it is one that the process maps.
    pub path: Option<Arc<Path>>,
    /// What else waits for the job: see [`Key`].
    pub key: Key,
}

impl About {
    /// A job that reads a process. The user is the directory's owner, which the kernel tells without the process's
    /// memory, also of one that is not dumpable (task_dump_owner, fs/proc/base.c).
    pub fn process(dir: &Path, what: What) -> Self {
        let uid = std::fs::metadata(dir).map_or(u32::MAX, |metadata| metadata.uid());
        let payer = payer::user(dir, uid);
        Self { dir: dir.into(), uid, payer, what, path: None, key: Key::Process(dir.into()) }
    }

    /// A job that reads the file behind a mapping.
    pub fn file(dir: &Path, mapping: &Mapping) -> Self {
        let about = Self::process(dir, What::File);
        match &mapping.backing {
            Backing::File { path, .. } => {
                let (major, minor) = mapping.device;
                Self { path: Some(Arc::clone(path)), key: Key::Device(major, minor), ..about }
            }
            Backing::Anonymous | Backing::Special(_) | Backing::Vdso => about,
        }
    }

    /// The pid of the process; 0 where the directory is none of /proc.
    pub fn pid(&self) -> u32 {
        self.dir.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or_default()
    }

    /// When the process began, ticks since the boot. /proc/PID/stat needs neither its memory nor its mmap_lock.
    pub(super) fn start(&self) -> Option<u64> {
        crate::start_ticks(&self.dir)
    }
}
