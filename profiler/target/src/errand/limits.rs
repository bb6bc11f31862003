//! How much a pool may have out, and how long.

use std::time::Duration;

/// What the sampling thread may wait ahead, as at a start.
pub(super) const AHEAD: Duration = Duration::from_secs(2);
/// Share of the sampling thread's time that it waits for jobs that are late.
const SHARE: f64 = 0.05;
/// At least so long a job is waited for: most take some ten microseconds.
const LEAST: Duration = Duration::from_millis(1);

/// How much a pool may have out, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The name of the threads, by which they have their rights.
    pub thread: &'static str,
    /// After so long a job is given up.
    pub stuck_after: Duration,
    /// While a job is out for longer, no other for the same process or file system is begun.
    pub slow_after: Duration,
    /// Share of the caller's time for jobs that are late; 1: the caller waits as long as it likes.
    pub waiting: f64,
    /// At least so long a job is waited for.
    pub least: Duration,
    /// How many threads may do jobs. Of these, and of `stuck`, one user's processes have at most half of what others leave.
    pub threads: usize,
    /// How many threads whose jobs were given up are replaced: those beyond count as threads that do jobs.
    pub stuck: usize,
    /// How many threads may do jobs for one process or file system.
    pub of_key: usize,
    /// Share of a core for the jobs of one user's processes.
    pub user_share: f64,
    /// CPU time of that share that may be taken ahead, as for a node's processes at the start.
    pub user_ahead: Duration,
    /// Seconds of each second that callers may wait for the jobs of one user's processes, beyond their CPU time.
    pub user_waits: f64,
    /// Waiting of that share that may be taken ahead.
    pub user_waits_ahead: Duration,
    /// Share of a core for the jobs of one process.
    pub process_share: f64,
    /// CPU time of that share that may be taken ahead.
    pub process_ahead: Duration,
}

impl Limits {
    /// For the sampling thread. A maps file of 65,530 mappings takes 40 ms, a large library on a cold disk a second.
    pub const SAMPLING: Self = Self {
        thread: "errand",
        stuck_after: Duration::from_secs(5),
        slow_after: Duration::from_millis(500),
        waiting: SHARE,
        least: LEAST,
        threads: 16,
        stuck: 16,
        of_key: 4,
        user_share: 0.1,
        user_ahead: Duration::from_secs(3),
        user_waits: SHARE,
        user_waits_ahead: AHEAD,
        process_share: 0.03,
        process_ahead: Duration::from_secs(2),
    };
    /// For the sampling thread as well, while it learns what a process is: its words and the marks of runtimes, some ten
    /// microseconds a process. Apart from [`Self::SAMPLING`], whose budget the libraries of a user's compilers may take.
    pub const IDENTIFYING: Self = Self {
        threads: 8,
        stuck: 8,
        user_share: 0.05,
        user_ahead: Duration::from_secs(2),
        process_ahead: Duration::from_secs(1),
        ..Self::SAMPLING
    };
    /// For threads that may wait: reading a large JVM's heap for the first time takes a second or two.
    pub const BACKGROUND: Self = Self {
        stuck_after: Duration::from_secs(10),
        slow_after: Duration::from_secs(3),
        waiting: 1.0,
        threads: 12,
        stuck: 12,
        user_share: 0.5,
        user_ahead: Duration::from_secs(30),
        // Half of the one thread that makes unwind tables, an eighth of the readers.
        user_waits: 0.5,
        user_waits_ahead: Duration::from_secs(60),
        process_share: 0.2,
        process_ahead: Duration::from_secs(10),
        ..Self::SAMPLING
    };

    /// For asking JVMs, each of which may take ten seconds to open its socket and ten to answer, and for reading perf
    /// maps.
    pub const ASKING: Self = Self {
        thread: "jvm-names",
        stuck_after: Duration::from_secs(40),
        threads: 5,
        stuck: 5,
        of_key: 2,
        user_waits_ahead: Duration::from_secs(120),
        ..Self::BACKGROUND
    };

    /// Tests of other rooms run side by side, on machines of any speed, as one user.
    pub(super) fn or_tests(self) -> Self {
        if cfg!(test) {
            let long = Duration::from_secs(60);
            Self {
                least: long,
                slow_after: long,
                stuck_after: long,
                threads: 4096,
                stuck: 4096,
                user_share: 1e6,
                user_waits: 1e6,
                process_share: 1e6,
                ..self
            }
        } else {
            self
        }
    }
}
