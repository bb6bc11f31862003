//! The threads that read files and make tables of them, one at a time each, at low priority: one for what most processes map,
//! at most half a core, and one for large files, at most a quarter. A library with 60 MB of unwind information takes it half a
//! minute on a busy machine, and nobody else waits for that.

use super::Ask;
use super::budget::Budget;
use emberscope_model::thread_cpu_time;
use emberscope_supervise::{Beat, quarantine};
use emberscope_unwind::table::{Disk, Keys, Made, Sizes, Wanted, make};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How a builder goes about it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Below the sampling thread and what the machine is there for, but not starved on a busy one.
    nice: i32,
    /// Share of a core, once [`AHEAD`] is used up.
    share: f64,
}

/// Of the files that most processes map.
pub const USUAL: Pace = Pace { nice: 5, share: 0.5 };
/// Of large ones.
pub const LARGE: Pace = Pace { nice: 10, share: 0.25 };

/// CPU time that may be taken at once: a JVM with all its libraries takes half a second.
const AHEAD: Duration = Duration::from_secs(1);

/// Longest for one file: half a core of a busy machine's slow disk.
const STUCK: Duration = Duration::from_secs(120);

/// A file, and how many bytes of unwind information it may have.
pub type Job = (Box<Wanted>, u64);

/// Starts a thread; what it makes goes to `asks`. It ends when nobody has jobs for it.
///
/// # Errors
/// The kernel starts no thread.
pub fn start(
    pace: Pace,
    keys: Keys,
    disk: Option<Disk>,
    asks: SyncSender<Ask>,
) -> std::io::Result<SyncSender<Job>> {
    let (jobs, queue) = sync_channel(1);
    emberscope_supervise::spawn("unwind-builder", STUCK, move |beat| {
        run(pace, &queue, &keys, disk.as_ref(), &asks, beat)
    })?;
    Ok(jobs)
}

fn run(
    pace: Pace,
    jobs: &Receiver<Job>,
    keys: &Keys,
    disk: Option<&Disk>,
    asks: &SyncSender<Ask>,
    beat: &Beat,
) {
    // Of this thread alone (setpriority(2), C library/kernel differences).
    if let Err(error) = rustix::process::setpriority_process(None, pace.nice) {
        tracing::debug!(%error, "unwind tables are built at the usual priority");
    }
    let mut budget = Budget::new(pace.share, AHEAD);
    while let Ok((wanted, most)) = jobs.recv() {
        let before = thread_cpu_time();
        let made = beat.work(|| match quarantine::enter(|| wanted.inode.item()) {
            Ok(_reading) => make(&wanted, Sizes::usual(most), keys, disk),
            Err(_) => Made::refused(&wanted),
        });
        let made = made.unwrap_or_else(|_| Made::refused(&wanted));
        if asks.send(Ask::Made(Box::new(made))).is_err() {
            return;
        }
        std::thread::sleep(budget.take(thread_cpu_time().saturating_sub(before), Instant::now()));
    }
}
