//! What each thread may do: a table of threads and capabilities, and the end of those that a thread does not need.
//!
//! The unit gives nine capabilities, and one thread needs most of them; what speaks to the network or to clients needs
//! none. To Linux capabilities are a thread's (capabilities(7)), and one that is started inherits its starter's: each
//! calls [`keep_only`] first thing, and what it starts later has no more than it. What was given up does not come back.
//! The threads that are started later by the sampling one must find their own there: it keeps SETUID and SETGID as
//! permitted and not as effective, and SYS_ADMIN, but while it attaches a probe ([`while_probing`]). Who runs the daemon as root keeps root's right over files of its own (a data
//! directory that belongs to somebody else); the unit does not give it.
//!
//! A thread with a name that the table does not have loses all: tests/together/deploy.rs looks at every thread of a
//! daemon.
//!
//! So it is with the right to go before others on a crowded CPU, which the sampling thread alone has ([`hurry`]).

use rustix::process::{DumpableBehavior, getpriority_process, set_dumpable_behavior, setpriority_process};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Root's right over files that are not root's.
const FILES: CapabilitySet = CapabilitySet::DAC_OVERRIDE;
/// /proc/PID of other users: what root links to, descriptors, memory, mapped files that were replaced.
const TARGETS: CapabilitySet =
    CapabilitySet::SYS_PTRACE.union(CapabilitySet::DAC_READ_SEARCH).union(CapabilitySet::CHECKPOINT_RESTORE);
/// Maps of the BPF programs.
const MAPS: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON);
/// Being another user for a while.
const USERS: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);
/// Attaching uprobes: CAP_PERFMON was enough in Linux 5.8 to 6.15, and SYS_ADMIN is asked for again since 6.16 and in later releases of
/// the stable series before it (kernel/events/core.c, `perf_uprobe_event_init`: a probe inside of an instruction changes the program).
const PROBES: CapabilitySet = CapabilitySet::SYS_ADMIN;
const NONE: CapabilitySet = CapabilitySet::empty();

/// Threads by name, and what they keep of what the daemon was given.
pub const THREADS: [(&str, CapabilitySet); 22] = [
    // Waits for signals.
    ("signals", NONE),
    // Clients. The socket was bound before; the store's files are the daemon's own.
    ("http", FILES),
    // Blocks of an answer, read side by side.
    ("query", FILES),
    ("journal", FILES),
    ("blocks", FILES),
    // To the network, from the store's files.
    ("archive", FILES),
    ("hdfs", FILES),
    ("watch", FILES),
    ("push", NONE),
    ("push-otlp", NONE),
    ("debuginfod", FILES),
    // Which sockets a driver listens on; then they ask it.
    ("discovery", TARGETS),
    ("spark-names", TARGETS),
    // What is asked is asked by the thread above.
    ("spark-words", FILES),
    // Logs that only their owners may read.
    ("event-logs", CapabilitySet::DAC_READ_SEARCH.union(FILES)),
    // Files and memory of targets.
    ("errand", TARGETS),
    ("unwind-builder", TARGETS.union(FILES)),
    ("unwind-tables", TARGETS.union(MAPS).union(FILES)),
    // Closes what the sampling thread attached.
    ("probes", NONE),
    // A JVM answers its own user: the only ones that become another, and those that start them and wait for them.
    ("jvm-names", TARGETS.union(USERS)),
    ("reader", TARGETS.union(USERS)),
    ("watchdog", NONE),
];

/// What a thread of this name keeps; none, if the table does not have it.
pub fn of(thread: &str) -> CapabilitySet {
    THREADS.iter().find(|(name, _)| *name == thread).map_or(NONE, |(_, keeps)| *keeps)
}

/// Nice value of the sampling thread (sched(7)): the ring buffers fill while it waits for a CPU, and all windows are late
/// then. auditd has -4 for the same reason. It takes a hundredth of a CPU.
const URGENT: i32 = -5;

/// The sampling thread goes before others, where the unit says so or the daemon has the right to (CAP_SYS_NICE); what it
/// starts does not ([`keep_only`]).
pub fn hurry() {
    if let Err(error) = setpriority_process(None, URGENT) {
        tracing::debug!(%error, "the sampling thread has the priority of all others");
    }
}

/// Gives up all that the table does not have for a thread of this name, and the sampling thread's priority: on the
/// calling thread, and on what it starts. Called first thing in a thread.
pub fn keep_only(thread: &str) {
    // Of this thread alone (setpriority(2), C library/kernel differences), and always allowed in this direction.
    if getpriority_process(None).is_ok_and(|nice| nice < 0)
        && let Err(error) = setpriority_process(None, 0)
    {
        tracing::warn!(%error, thread, "goes before others");
    }
    if let Ok(has) = capabilities(None) {
        let keeps = has.permitted.intersection(of(thread));
        // A thread may always have less. The ambient ones go with the inheritable ones (capabilities(7)).
        set(CapabilitySets { effective: keeps, permitted: keeps, inheritable: NONE }, thread);
    }
}

/// The sampling thread never is another user, and attaches probes seldom. What it starts later may have to be one: it can take
/// them back.
pub fn set_aside() {
    if let Ok(has) = capabilities(None) {
        set(CapabilitySets { effective: has.effective.difference(USERS.union(PROBES)), ..has }, "sampling");
    }
}

/// Does what attaches a probe with the right to, where the thread may have it; afterwards it is set aside again.
pub fn while_probing<T>(attach: impl FnOnce() -> T) -> T {
    let set_aside = |has: &CapabilitySets| !has.effective.contains(PROBES) && has.permitted.contains(PROBES);
    let had = capabilities(None).ok().filter(set_aside);
    if let Some(had) = had {
        set(CapabilitySets { effective: had.effective.union(PROBES), ..had }, "sampling");
    }
    let attached = attach();
    if let Some(had) = had {
        set(had, "sampling");
    }
    attached
}

fn set(sets: CapabilitySets, thread: &str) {
    if let Err(error) = set_capabilities(None, sets) {
        tracing::warn!(%error, thread, "cannot give up capabilities");
    }
}

/// No core file, and no process of the same user may read the memory: it holds tokens and names of others' processes.
/// What the process reads of its own in /proc goes on (`ptrace_may_access` lets a thread group look at itself, Linux
/// kernel/ptrace.c; /proc/PID/stat, maps, status and statm are everybody's to open).
pub fn hide_memory() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "cannot keep other processes of this user from reading the daemon's memory");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_own_and_what_it_starts_has_no_more() {
        let had = capabilities(None).unwrap();
        if !had.effective.contains(TARGETS.union(USERS).union(PROBES)) {
            emberscope_testkit::skip("only who has capabilities can give them up");
            return;
        }
        let now = || capabilities(None).unwrap();
        std::thread::spawn(move || {
            set_aside();
            assert_eq!(now().effective, had.effective.difference(USERS.union(PROBES)));
            assert_eq!(while_probing(|| now().effective), had.effective.difference(USERS));
            assert_eq!(now().effective, had.effective.difference(USERS.union(PROBES)));
            assert_eq!(now().permitted, had.permitted);
            // Taken back by the one that needs them.
            std::thread::spawn(move || {
                keep_only("jvm-names");
                assert_eq!((now().effective, now().permitted), (of("jvm-names"), of("jvm-names")));
                std::thread::spawn(move || {
                    keep_only("push");
                    assert_eq!((now().effective, now().permitted), (NONE, NONE));
                    keep_only("jvm-names");
                    assert_eq!(now().permitted, NONE, "it does not come back");
                })
                .join()
                .unwrap();
            })
            .join()
            .unwrap();
            std::thread::spawn(move || {
                keep_only("a name that the table does not have");
                assert_eq!(now().permitted, NONE);
            })
            .join()
            .unwrap();
        })
        .join()
        .unwrap();
        assert_eq!(capabilities(None).unwrap(), had, "the others have theirs");
    }

    /// Linux keeps 15 bytes of a thread's name, and tests/together/deploy.rs finds them by it.
    #[test]
    fn names_are_whole_in_proc() {
        for (name, _) in THREADS {
            assert!(name.len() < 16, "{name}");
        }
    }
}
