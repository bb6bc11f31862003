//! All threads of some processes from /proc: where the kernel has no task iterator for us.
//!
//! In: pids. Out: an event for each thread, with the figures of its files `schedstat`, `stat`, `status` and `io`
//! (Documentation/filesystems/proc.rst): the same counters as the programs read, but user and system time,
//! which /proc scales and rounds to ticks (their proportion is what tells), and the start, which is on another
//! clock: 0. At most [`MAX_THREADS_A_ROUND`] threads a round, each process in its turn.

use emberscope_model::{Accounts, Pid, RawEvent, RawThread, ThreadCause, Tid};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Bound::{Excluded, Unbounded};
use std::path::{Path, PathBuf};

/// Threads read in one round, at most.
const MAX_THREADS_A_ROUND: usize = 4096;
/// Longest file read.
const MAX_BYTES: u64 = 8192;
/// `PF_EXITING` (include/linux/sched.h): its end was reported, or will be.
const PF_EXITING: u64 = 4;

/// Reads threads from /proc, and knows where the last round ended.
pub(super) struct ProcThreads {
    root: PathBuf,
    tick_ns: u64,
    last: Pid,
}

impl Default for ProcThreads {
    fn default() -> Self {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        Self { root: "/proc".into(), tick_ns: 1_000_000_000 / ticks, last: 0 }
    }
}

impl ProcThreads {
    /// Appends what is known of the threads of `pids`; `number` gives a thread's name. Where one round is not
    /// enough, the next begins with the processes that had no turn.
    pub(super) fn ask(&mut self, pids: &BTreeSet<Pid>, number: impl Fn(Tid) -> u32, out: &mut Vec<RawEvent>) {
        let end = out.len() + MAX_THREADS_A_ROUND;
        let after = pids.range((Excluded(self.last), Unbounded));
        for pid in after.chain(pids.range(..=self.last)) {
            if out.len() >= end {
                return;
            }
            self.last = *pid;
            let Ok(tasks) = std::fs::read_dir(self.root.join(pid.to_string()).join("task")) else { continue };
            let tids = tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse::<Tid>().ok());
            for tid in tids {
                if out.len() >= end {
                    return;
                }
                out.extend(self.thread(*pid, tid, number(tid)).map(RawEvent::Thread));
            }
        }
    }

    /// A thread's figures. None: it is gone or going.
    fn thread(&self, pid: Pid, tid: Tid, name_seq: u32) -> Option<RawThread> {
        let dir = self.root.join(format!("{pid}/task/{tid}"));
        let now = clock_gettime(ClockId::Monotonic);
        let accounts = self.accounts(&dir)?;
        Some(RawThread {
            time_ns: u64::try_from(now.tv_sec).ok()? * 1_000_000_000 + u64::try_from(now.tv_nsec).ok()?,
            start_ns: 0,
            pid,
            tid,
            name_seq,
            previous_seq: name_seq,
            cause: ThreadCause::Asked,
            name: Box::default(),
            accounts: Some(accounts),
        })
    }

    fn accounts(&self, dir: &Path) -> Option<Accounts> {
        let schedstat = read(&dir.join("schedstat"))?;
        let mut schedstat = schedstat.split_ascii_whitespace().map(|word| word.parse().ok());
        let (cpu_ns, run_delay_ns) = (schedstat.next()??, schedstat.next()??);
        let stat = read(&dir.join("stat"))?;
        // The name may have spaces and parentheses of its own. Field 3, the state, follows it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        if field(9)? & PF_EXITING != 0 {
            return None;
        }
        let status = read(&dir.join("status"))?;
        let io = read(&dir.join("io")).unwrap_or_default();
        Some(Accounts {
            cpu_ns,
            run_delay_ns,
            user_ns: field(14)?.saturating_mul(self.tick_ns),
            system_ns: field(15)?.saturating_mul(self.tick_ns),
            voluntary_switches: value(&status, "voluntary_ctxt_switches:"),
            involuntary_switches: value(&status, "nonvoluntary_ctxt_switches:"),
            minor_faults: field(10)?,
            major_faults: field(12)?,
            read_bytes: value(&io, "read_bytes:"),
            written_bytes: value(&io, "write_bytes:"),
            // /proc tells neither who woke it nor when its cgroup was throttled.
            python_wait_ns: 0,
            throttled_ns: 0,
            paused_ns: 0,
        })
    }
}

/// The number after a line's name; 0 where this kernel has no such line.
fn value(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::with_capacity(1024);
    std::fs::File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(root: &Path, pid: Pid, tid: Tid, flags: u64, cpu: u64) {
        let dir = root.join(format!("{pid}/task/{tid}"));
        std::fs::create_dir_all(&dir).expect("made");
        let file = |name: &str, text: String| std::fs::write(dir.join(name), text).expect("written");
        file("schedstat", format!("{cpu} 77 5\n"));
        let head = format!("{tid} (a) b (c)) S 1 2 3 4 5 {flags}");
        file("stat", format!("{head} 11 12 13 14 15 16 17 18 20 0 9 0 12345 1 2 3\n"));
        let switches = "voluntary_ctxt_switches:\t8\nnonvoluntary_ctxt_switches:\t9\n";
        file("status", format!("Name:\tx\n{switches}"));
        file("io", "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n".into());
    }

    #[test]
    fn figures_land_where_they_belong_and_the_leaving_are_left_out() {
        let root = tempfile::tempdir().expect("a directory");
        thread(root.path(), 7, 70, 0x40_0000, 1_000_001);
        thread(root.path(), 7, 71, 0x40_0004, 5);
        let mut proc = ProcThreads { root: root.path().into(), tick_ns: 10_000_000, last: 0 };
        let mut out = Vec::new();
        proc.ask(&BTreeSet::from([7, 8]), |tid| tid * 2, &mut out);
        let [RawEvent::Thread(thread)] = &out[..] else { panic!("{out:?}") };
        assert_eq!((thread.pid, thread.tid, thread.name_seq, thread.start_ns), (7, 70, 140, 0));
        let want = Accounts {
            cpu_ns: 1_000_001,
            run_delay_ns: 77,
            user_ns: 150_000_000,
            system_ns: 160_000_000,
            voluntary_switches: 8,
            involuntary_switches: 9,
            minor_faults: 11,
            major_faults: 13,
            read_bytes: 4096,
            written_bytes: 8192,
            python_wait_ns: 0,
            throttled_ns: 0,
            paused_ns: 0,
        };
        assert_eq!(thread.accounts, Some(want));
    }

    #[test]
    fn rounds_are_bounded_and_everyone_has_a_turn() {
        let root = tempfile::tempdir().expect("a directory");
        for pid in [5, 6] {
            for tid in 0..3000 {
                thread(root.path(), pid, pid * 10_000 + tid, 0, 1);
            }
        }
        let mut proc = ProcThreads { root: root.path().into(), tick_ns: 1, last: 0 };
        let pids = BTreeSet::from([5, 6]);
        let mut round = || {
            let mut out = Vec::new();
            proc.ask(&pids, |_| 0, &mut out);
            let of = |pid| out.iter().filter(|e| matches!(e, RawEvent::Thread(t) if t.pid == pid)).count();
            (of(5), of(6))
        };
        assert_eq!(round(), (3000, 1096));
        assert_eq!(round(), (3000, 1096));
    }
}
