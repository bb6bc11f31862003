//! What /proc tells of one process, as a plain value.
//!
//! In: a pid and a proc root. Out: [`ProcessFacts`], from which identity is worked out by pure functions;
//! tests build one by hand or from recorded files. Facts are read once per program (first sight, exec) and
//! dropped after identification: command lines are never kept whole. Each file has its limit in bytes.

mod words;

pub use words::parse_cmdline;

use super::environ::Environ;
use super::procfs::{ProcRoot, ReadError};
use super::properties::Properties;
use super::stat::{read_stat, read_status};
use super::text::clean;
use super::users::Users;
use emberscope_model::{Pid, ProcessKey, RuntimeId};

/// Bytes read of /proc/PID/cmdline. A class path of thousands of jars is in one word before the main
/// class, so this is far more than is kept.
pub const MAX_CMDLINE: usize = 1 << 20;
/// Words kept; Spark's own `--add-opens` are some 20, and a driver's `--conf` may be a hundred.
pub const MAX_WORDS: usize = 2048;
/// Bytes kept of one word.
pub const MAX_WORD: usize = 512;
/// Bytes read of /proc/PID/environ, of which only the named variables are kept.
pub const MAX_ENVIRON: usize = 1 << 20;
/// Bytes read of /proc/PID/cgroup: some 15 lines of a path each.
pub const MAX_CGROUP: usize = 16 << 10;
/// Bytes read of /proc/PID/maps while looking for a runtime's mark.
pub const MAX_MAPS: usize = 4 << 20;
/// Bytes kept of a path (exe, cwd).
pub const MAX_PATH: usize = 1024;

/// What /proc told of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Process id in the initial PID namespace.
    pub pid: Pid,
    /// Start time, clock ticks since boot (stat, field 22).
    pub start_ticks: u64,
    /// Parent (stat, field 4); 0 when there is none.
    pub ppid: Pid,
    /// Program name (stat, field 2), at most 15 bytes; for kernel threads the kernel adds to it.
    pub comm: String,
    /// Words of the command line, cut to [`MAX_WORDS`] of [`MAX_WORD`] bytes. Empty for kernel threads.
    pub words: Vec<String>,
    /// The variables that identity needs.
    pub environ: Environ,
    /// Of a driver, what its properties file says of what identity needs.
    pub properties: Properties,
    /// Lines of /proc/PID/cgroup, `id:controllers:path`.
    pub cgroup: Vec<String>,
    /// The executable's path; empty when it cannot be read.
    pub exe: String,
    /// The working directory; empty when it cannot be read.
    pub cwd: String,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// Name of `uid` in the host's passwd file, else the number.
    pub user: String,
    /// Pids from the outermost PID namespace inwards; the last is the process's own view.
    pub nspid: Vec<Pid>,
    /// Network namespace, `net:[4026531840]`; empty when it cannot be read.
    pub netns: String,
    /// The runtime whose mark is in a mapped file's path.
    pub runtime: RuntimeId,
    /// No program was run since it was forked.
    pub forked: bool,
    /// The process's memory did not tell in time: command line or environment are missing.
    pub late: bool,
}

impl ProcessFacts {
    /// The process's pid and start, which tell it from others.
    pub fn key(&self) -> ProcessKey {
        ProcessKey { pid: self.pid, start_ticks: self.start_ticks }
    }

    /// Reads a process's files. Only `stat` must be there; whatever else cannot be read stays empty.
    ///
    /// # Errors
    /// [`ReadError`] of `stat`. [`ReadError::Gone`] also of a zombie, and where the pid was taken over meanwhile
    /// (another start).
    pub fn read(root: &ProcRoot, users: &mut Users, pid: Pid) -> Result<Self, ReadError> {
        let stat = read_stat(root, pid)?;
        if stat.ended() {
            return Err(ReadError::Gone);
        }
        let status = read_status(root, pid);
        let line = root.read_memory(pid, "cmdline", MAX_CMDLINE);
        let late = line == Err(ReadError::Late);
        let words = parse_cmdline(&line.unwrap_or_default());
        let kernel_thread = words.is_empty() && !late;
        let mut facts = Self {
            pid,
            start_ticks: stat.start_ticks,
            ppid: stat.ppid,
            forked: stat.forked,
            comm: stat.comm,
            words,
            cgroup: String::from_utf8_lossy(&root.read(pid, "cgroup", MAX_CGROUP).unwrap_or_default())
                .lines()
                .map(|l| clean(l.as_bytes(), MAX_PATH))
                .collect(),
            uid: status.uid,
            gid: status.gid,
            user: users.name(status.uid),
            late,
            nspid: if status.nspid.is_empty() { vec![pid] } else { status.nspid },
            ..Self::default()
        };
        if !kernel_thread {
            let environ = root.read_memory(pid, "environ", MAX_ENVIRON);
            facts.late |= environ == Err(ReadError::Late);
            facts.environ = Environ::parse(&environ.unwrap_or_default());
            facts.exe = link_text(root, pid, "exe");
            facts.cwd = link_text(root, pid, "cwd");
            facts.netns = link_text(root, pid, "ns/net");
            let properties = Properties::read(root, pid, &facts.words, &facts.cwd);
            facts.late |= properties == Err(ReadError::Late);
            facts.properties = properties.unwrap_or_default();
            facts.runtime = runtime_of(root, pid, RuntimeId::NATIVE);
        }
        match read_stat(root, pid) {
            Ok(after) if after.start_ticks != facts.start_ticks => Err(ReadError::Gone),
            // Gone by now: what was read before is still its own.
            _ => Ok(facts),
        }
    }

    /// The process's own pid inside its PID namespace: the one in the names of a JVM's files.
    pub fn inner_pid(&self) -> Pid {
        self.nspid.last().copied().unwrap_or(self.pid)
    }
}

/// Which runtime a process runs now, by the files that it maps: the `java` launcher maps libjvm.so some milliseconds after
/// its exec, and programs that embed a JVM at any time. One that runs several has the first that is looked for: a program of
/// Python that loads a JVM is a JVM. `known` is what it was found to run before.
pub fn runtime_of(root: &ProcRoot, pid: Pid, known: RuntimeId) -> RuntimeId {
    let marks = root.marks();
    let (mut found, mut before) = (known, marks);
    loop {
        let own = before.iter().position(|(runtime, _)| *runtime == found).unwrap_or(before.len());
        before = before.get(..own).unwrap_or_default();
        if before.is_empty() {
            return found;
        }
        let texts = before.iter().map(|(_, mark)| *mark).collect();
        let first = root.first_of(pid, "maps", texts, MAX_MAPS).ok().flatten();
        let Some((runtime, _)) = first.and_then(|first| before.get(first)) else { return found };
        found = *runtime;
    }
}

fn link_text(root: &ProcRoot, pid: Pid, name: &str) -> String {
    use std::os::unix::ffi::OsStrExt;
    root.link(pid, name).map(|l| clean(l.as_bytes(), MAX_PATH)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{FakeProc, ReadFake as _, stat_line};

    #[test]
    fn a_zombie_is_gone_but_not_one_with_living_threads() {
        let fake = FakeProc::new();
        let line = String::from_utf8(stat_line(5, "java", 1, 100)).unwrap().replace(" S ", " Z ");
        let process = fake.process(5, 1, "java", 100).file("stat", line.as_bytes());
        assert_eq!(fake.facts(5), Err(ReadError::Gone));
        process.file("stat", line.replace(" 20 0 1 0 ", " 20 0 7 0 ").as_bytes());
        assert_eq!(fake.facts(5).unwrap().start_ticks, 100);
    }

    #[test]
    fn facts_of_this_process() {
        let pid = std::process::id();
        let facts = ProcessFacts::read(&ProcRoot::new("/proc"), &mut Users::host(), pid).unwrap();
        assert_eq!(facts.pid, pid);
        assert!(facts.start_ticks > 0 && !facts.words.is_empty() && facts.runtime != RuntimeId::HOTSPOT);
        assert_eq!(facts.uid, rustix::process::geteuid().as_raw());
        assert!(facts.netns.starts_with("net:["), "{}", facts.netns);
        assert!(!facts.nspid.is_empty());
    }

    #[test]
    fn ten_megabytes_of_command_line_are_bounded() {
        let fake = FakeProc::new();
        fake.process(5, 1, "java", 100).cmdline(&vec![b'a'; 10 << 20]);
        let facts = fake.facts(5).unwrap();
        assert_eq!(facts.words.len(), 1);
        assert_eq!(facts.words[0].len(), MAX_WORD);
        let many: Vec<u8> = b"w\0".repeat(5 << 20);
        fake.process(6, 1, "java", 100).cmdline(&many);
        assert_eq!(fake.facts(6).unwrap().words.len(), MAX_WORDS);
    }

    #[test]
    fn binary_rubbish_everywhere_is_survived() {
        let fake = FakeProc::new();
        let rubbish: Vec<u8> = (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let process = fake.process(5, 1, "x\n\u{1b}[31m", 100);
        for name in ["cmdline", "environ", "cgroup", "status", "maps"] {
            process.file(name, &rubbish);
        }
        let facts = fake.facts(5).unwrap();
        assert_eq!(facts.nspid, [5]);
        assert!(facts.words.len() <= MAX_WORDS && facts.words.iter().all(|w| w.len() <= MAX_WORD));
        assert!(!facts.comm.contains('\n'));
        process.file("stat", &rubbish);
        assert_eq!(fake.facts(5), Err(ReadError::Failed));
    }

    #[test]
    fn only_stat_is_needed() {
        let fake = FakeProc::new();
        fake.process(5, 2, "kworker/0:1", 100);
        let facts = fake.facts(5).unwrap();
        assert!(facts.words.is_empty() && facts.exe.is_empty() && facts.cgroup.is_empty());
        assert_eq!(facts.inner_pid(), 5);
        assert_eq!(fake.facts(6), Err(ReadError::Gone));
    }

    #[test]
    fn ids_come_from_status() {
        let fake = FakeProc::new();
        fake.process(5, 1, "java", 100)
            .file("status", b"Name:\tjava\nUid:\t0\t1000\t1000\t1000\nGid:\t5\t6\t7\t8\nNSpid:\t5\t31\t1\n");
        let facts = fake.facts(5).unwrap();
        assert_eq!((facts.uid, facts.gid, facts.inner_pid()), (1000, 6, 1));
        assert_eq!(facts.user, "ana", "from the fake root's passwd");
    }
}
