//! Bounded reads below a proc root.
//!
//! In: a pid and the name of a file in its directory. Out: its bytes, or why there are none. A process
//! that dies half way is [`ReadError::Gone`], a value and not a failure. Every read has a limit in bytes
//! that the caller names; what is longer is cut there. The root is configurable so that tests can use a
//! directory with recorded files.

mod inside;

use emberscope_model::{Pid, RuntimeId};
use emberscope_target::errand::{self, About, What};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long the sampling thread waits for what is made from a process's memory, where it did not wait much lately.
const PATIENCE: Duration = Duration::from_millis(100);

/// Most descriptors looked at in one /proc/PID/fd. A JVM with more open files than this keeps its
/// listening sockets among the first: they are opened at start.
pub const MAX_FDS: usize = 16_384;

/// Why a file of a process could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The process (or this file of it) is not there: ENOENT, ESRCH.
    Gone,
    /// The kernel does not let this daemon read it: EACCES, EPERM.
    Denied,
    /// Reading takes longer than anybody waits for.
    Late,
    /// Anything else; the text of the error is of no use to a caller.
    Failed,
}

impl ReadError {
    fn from_io(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::NOENT | Errno::SRCH | Errno::NOTDIR) => Self::Gone,
            Some(Errno::ACCESS | Errno::PERM) => Self::Denied,
            _ => Self::Failed,
        }
    }
}

/// A directory laid out as proc(5) says, and the marks of runtimes that are looked for.
#[derive(Clone, Debug)]
pub struct ProcRoot(PathBuf, Arc<[Mark]>);

/// A runtime, and what in the path of a mapped file shows that a process runs it.
pub type Mark = (RuntimeId, &'static str);

/// The mark of a JVM: what a process is to Spark rests on it.
pub const JVM_MARK: Mark = (RuntimeId::HOTSPOT, "/libjvm.so");

impl ProcRoot {
    /// The directory at `path`, `/proc` but for tests.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into(), [JVM_MARK].into())
    }

    /// With the marks of these runtimes, of which a process has the first that it shows.
    pub fn looking_for(self, marks: &[Mark]) -> Self {
        Self(self.0, marks.into())
    }

    /// What shows a runtime, in the order in which it is looked for.
    pub fn marks(&self) -> &[Mark] {
        &self.1
    }

    /// The directory's path, `/proc` but for tests.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn file(&self, pid: Pid, name: &str) -> PathBuf {
        self.0.join(pid.to_string()).join(name)
    }

    fn open(&self, pid: Pid, name: &str) -> Result<File, ReadError> {
        // Never blocks: a fake root may hold a FIFO, and nothing in /proc needs to be waited for.
        let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW).bits();
        OpenOptions::new()
            .read(true)
            .custom_flags(flags as i32)
            .open(self.file(pid, name))
            .map_err(|e| ReadError::from_io(&e))
    }

    /// Up to `limit` bytes of a file that the kernel makes from the process's memory: read on a thread that can be
    /// given up.
    ///
    /// # Errors
    /// As for [`ProcRoot::read`], and [`ReadError::Late`] when it takes longer than the caller waits.
    pub fn read_memory(&self, pid: Pid, name: &'static str, limit: usize) -> Result<Vec<u8>, ReadError> {
        let root = self.clone();
        self.soon(pid, What::Words, move || root.read(pid, name, limit))
    }

    fn soon<T: Send + 'static>(
        &self,
        pid: Pid,
        what: What,
        job: impl FnOnce() -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let about = About::process(&self.0.join(pid.to_string()), what);
        errand::identifying().run(about, PATIENCE, job).done().unwrap_or(Err(ReadError::Late))
    }

    /// Up to `limit` bytes of a file of a process.
    ///
    /// # Errors
    /// [`ReadError::Gone`], [`ReadError::Denied`] or [`ReadError::Failed`]: nothing was read. What was read before
    /// the process died is no error.
    pub fn read(&self, pid: Pid, name: &str, limit: usize) -> Result<Vec<u8>, ReadError> {
        // Most files there are smaller, and are read at once.
        let mut bytes = Vec::with_capacity(limit.min(1024));
        let file = self.open(pid, name)?;
        match file.take(limit as u64).read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            // It died meanwhile: what came before is whole lines of a file that cannot be had again.
            Err(_) if !bytes.is_empty() => Ok(bytes),
            Err(e) => Err(ReadError::from_io(&e)),
        }
    }

    /// The first of `needles` (at most 64 bytes each) that begins in the first `limit` bytes. Reads in pieces: maps
    /// of a large JVM are megabytes. On a thread that can be given up, as [`ProcRoot::read_memory`].
    ///
    /// # Errors
    /// As for [`ProcRoot::read_memory`]; what was read before counts for nothing here.
    pub fn first_of(
        &self,
        pid: Pid,
        name: &'static str,
        needles: Vec<&'static str>,
        limit: usize,
    ) -> Result<Option<usize>, ReadError> {
        let root = self.clone();
        self.soon(pid, What::Maps, move || root.first_of_here(pid, name, &needles, limit))
    }

    fn first_of_here(
        &self,
        pid: Pid,
        name: &str,
        needles: &[&str],
        limit: usize,
    ) -> Result<Option<usize>, ReadError> {
        let mut file = self.open(pid, name)?;
        let mut buffer = [0u8; 16 * 1024];
        let (mut kept, mut seen) = (0usize, 0usize);
        let longest = needles.iter().map(|needle| needle.len()).max().unwrap_or(0);
        let overlap = longest.saturating_sub(1).min(64);
        while seen < limit {
            let Some(free) = buffer.get_mut(kept..) else { break };
            let got = match file.read(free) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(ReadError::from_io(&e)),
            };
            seen += got;
            let filled = kept + got;
            let text = buffer.get(..filled).unwrap_or_default();
            let has = |needle: &&str| {
                !needle.is_empty() && text.windows(needle.len()).any(|w| w == needle.as_bytes())
            };
            if let Some(first) = needles.iter().position(has) {
                return Ok(Some(first));
            }
            kept = overlap.min(filled);
            buffer.copy_within(filled - kept..filled, 0);
        }
        Ok(None)
    }

    /// Where a link of the process points.
    ///
    /// # Errors
    /// [`ReadError::Gone`], [`ReadError::Denied`] or [`ReadError::Failed`]: readlink(2).
    pub fn link(&self, pid: Pid, name: &str) -> Result<OsString, ReadError> {
        fs::read_link(self.file(pid, name)).map(PathBuf::into_os_string).map_err(|e| ReadError::from_io(&e))
    }

    /// All pids that are there now.
    pub fn pids(&self) -> Vec<Pid> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
    }

    /// Inodes of the sockets that a process holds open; of its first `MAX_FDS` descriptors.
    ///
    /// # Errors
    /// The list of descriptors cannot be read: [`ReadError::Gone`], [`ReadError::Denied`] or [`ReadError::Failed`].
    /// Descriptors that go meanwhile are left out.
    pub fn socket_inodes(&self, pid: Pid) -> Result<Vec<u64>, ReadError> {
        let directory = self.file(pid, "fd");
        let entries = fs::read_dir(&directory).map_err(|e| ReadError::from_io(&e))?;
        let mut inodes = Vec::new();
        for entry in entries.take(MAX_FDS).flatten() {
            // "socket:[12345]", fs/proc/fd.c and net/socket.c (sockfs_dname).
            if let Ok(target) = fs::read_link(entry.path())
                && let Some(text) = target.to_str()
                && let Some(number) = text.strip_prefix("socket:[").and_then(|t| t.strip_suffix(']'))
                && let Ok(inode) = number.parse()
            {
                inodes.push(inode);
            }
        }
        Ok(inodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_with(name: &str, bytes: &[u8]) -> (tempfile::TempDir, ProcRoot) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("7")).unwrap();
        fs::write(dir.path().join("7").join(name), bytes).unwrap();
        let root = ProcRoot::new(dir.path());
        (dir, root)
    }

    #[test]
    fn a_read_is_cut_at_its_limit() {
        let (_dir, root) = root_with("cmdline", &vec![b'x'; 10 << 20]);
        assert_eq!(root.read(7, "cmdline", 1000).unwrap().len(), 1000);
    }

    #[test]
    fn a_missing_process_is_gone() {
        let (_dir, root) = root_with("cmdline", b"x");
        assert_eq!(root.read(8, "cmdline", 10), Err(ReadError::Gone));
        assert_eq!(root.read(7, "stat", 10), Err(ReadError::Gone));
        assert_eq!(root.link(8, "exe"), Err(ReadError::Gone));
        assert_eq!(root.socket_inodes(8), Err(ReadError::Gone));
    }

    #[test]
    fn a_directory_or_fifo_in_the_place_of_a_file_does_not_block() {
        let (dir, root) = root_with("comm", b"x");
        fs::create_dir(dir.path().join("7/stat")).unwrap();
        assert_eq!(root.read(7, "stat", 10), Err(ReadError::Failed));
        let fifo = dir.path().join("7/environ");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(root.read(7, "environ", 10), Ok(Vec::new()));
    }

    #[test]
    fn a_needle_is_found_across_the_pieces_and_not_beyond_the_limit() {
        let mut text = vec![b'.'; 16 * 1024 - 4];
        text.extend_from_slice(b"libjvm.so\n");
        let (_dir, root) = root_with("maps", &text);
        assert_eq!(root.first_of(7, "maps", vec!["absent", "libjvm.so"], 1 << 20), Ok(Some(1)));
        assert_eq!(root.first_of(7, "maps", vec!["libjvm.so"], 1 << 10), Ok(None));
        assert_eq!(root.first_of(7, "maps", vec!["absent"], 1 << 20), Ok(None));
    }

    #[test]
    fn own_process_is_listed_with_its_sockets() {
        let root = ProcRoot::new("/proc");
        let me = std::process::id();
        assert!(root.pids().contains(&me));
        let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!root.socket_inodes(me).unwrap().is_empty());
    }
}
