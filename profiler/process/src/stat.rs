//! /proc/PID/stat and status: start time, parent, state; user, group, inner pids.
//!
//! In: the files' bytes. Out: the fields that are of use; None where stat is not what proc(5) says.

use super::procfs::{ProcRoot, ReadError};
use super::text::clean;
use emberscope_model::Pid;

/// Bytes read of /proc/PID/stat and status.
pub const MAX_STAT: usize = 8 << 10;

/// Ids in /proc/PID/status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub uid: u32,
    pub gid: u32,
    pub nspid: Vec<Pid>,
}

/// The fields of /proc/PID/stat that are of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Program name, cleaned; the kernel keeps 15 bytes of it, and more of its own threads'.
    pub comm: String,
    /// `R`, `S`, `Z` (zombie), `X` (dead), ...
    pub state: char,
    /// Pid of the parent.
    pub ppid: Pid,
    /// Threads that are left, an ended main thread among them.
    pub threads: u64,
    /// Start time, clock ticks since boot.
    pub start_ticks: u64,
    /// The process has run no program since it was forked: it runs its parent's.
    pub forked: bool,
}

/// Of a process's flags: forked, and no exec since (PF_FORKNOEXEC, include/linux/sched.h, Linux 2.6.12 to 6.18).
const FORK_NO_EXEC: u64 = 0x40;

impl Stat {
    /// Whether the whole process ended. A main thread may end before the others: it is a zombie then too, and they
    /// live on.
    pub fn ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }
}

/// Reads /proc/PID/stat. The comm is in parentheses and may itself hold blanks, parentheses and
/// newlines: it ends at the last parenthesis.
pub fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let open = bytes.iter().position(|b| *b == b'(')?;
    let close = bytes.iter().rposition(|b| *b == b')')?;
    let comm = clean(bytes.get(open + 1..close)?, 64);
    let rest = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let ppid = fields.next()?.parse().ok()?;
    // Fields 9, 20 and 22; state was field 3 and ppid field 4.
    let flags: u64 = fields.nth(4)?.parse().ok()?;
    let threads = fields.nth(10)?.parse().ok()?;
    let start_ticks = fields.nth(1)?.parse().ok()?;
    Some(Stat { comm, state, ppid, threads, start_ticks, forked: flags & FORK_NO_EXEC != 0 })
}

fn parse_status(bytes: &[u8]) -> Status {
    let text = String::from_utf8_lossy(bytes);
    let mut status = Status::default();
    // Uid and Gid: real, effective, saved, file system.
    let effective = |rest: &str| rest.split_ascii_whitespace().nth(1).and_then(|n| n.parse().ok());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Uid:") {
            status.uid = effective(rest).unwrap_or_default();
        } else if let Some(rest) = line.strip_prefix("Gid:") {
            status.gid = effective(rest).unwrap_or_default();
        } else if let Some(rest) = line.strip_prefix("NSpid:") {
            status.nspid = rest.split_ascii_whitespace().filter_map(|n| n.parse().ok()).take(33).collect();
        }
    }
    status
}

/// /proc/PID/stat alone: the cheapest question whether a process is still the same.
///
/// # Errors
/// As for [`ProcRoot::read`]; [`ReadError::Failed`] also where the line is not what proc(5) says.
pub fn read_stat(root: &ProcRoot, pid: Pid) -> Result<Stat, ReadError> {
    parse_stat(&root.read(pid, "stat", MAX_STAT)?).ok_or(ReadError::Failed)
}

/// /proc/PID/status; what cannot be read is 0 or empty.
pub(super) fn read_status(root: &ProcRoot, pid: Pid) -> Status {
    parse_status(&root.read(pid, "status", MAX_STAT).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::stat_line;

    #[test]
    fn a_fork_is_one_until_its_exec() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let stat = read_stat(&ProcRoot::new("/proc"), child.id()).unwrap();
        child.kill().and_then(|()| child.wait()).unwrap();
        assert!(!stat.forked, "spawn returns after the exec: {stat:?}");
        let forked = stat_line(9, "java", 4, 1234);
        let forked = String::from_utf8(forked).unwrap().replace(" 4194560 ", " 4194624 ");
        assert!(parse_stat(forked.as_bytes()).unwrap().forked);
    }

    #[test]
    fn stat_survives_a_comm_that_looks_like_stat() {
        let line = stat_line(9, "a) S 1 (b\n", 4, 1234);
        let stat = parse_stat(&line).unwrap();
        assert_eq!((stat.ppid, stat.start_ticks, stat.state, stat.forked), (4, 1234, 'S', false));
        assert_eq!(stat.comm, "a) S 1 (b\u{fffd}");
        for rubbish in [&b""[..], b"1", b"1 (x", b")(", b"1 (x)", b"1 (x) S y", &[0xff; 4096]] {
            assert_eq!(parse_stat(rubbish), None, "{rubbish:?}");
        }
    }
}
