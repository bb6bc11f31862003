//! The thread that reads files and makes tables of them, one at a time, at low priority and at most half a core.

use super::Ask;
use super::budget::Budget;
use emberscope_model::thread_cpu_time;
use emberscope_supervise::{Beat, quarantine};
use emberscope_unwind::table::{Disk, Keys, Made, Wanted, make};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Below the sampling thread and what the machine is there for, but not starved on a busy one.
const NICE: i32 = 5;
/// Share of a core, once [`AHEAD`] is used up.
const SHARE: f64 = 0.5;
/// CPU time that may be taken at once: a JVM with all its libraries takes half a second.
const AHEAD: Duration = Duration::from_secs(1);

/// Longest for one file: half a core of a busy machine's slow disk.
const STUCK: Duration = Duration::from_secs(120);

/// A file, and how many bytes of unwind information it may have.
pub type Job = (Box<Wanted>, u64);

/// Starts the thread; what it makes goes to `asks`. It ends when nobody has jobs for it.
///
/// # Errors
/// The kernel starts no thread.
pub fn start(keys: Keys, disk: Option<Disk>, asks: SyncSender<Ask>) -> std::io::Result<SyncSender<Job>> {
    let (jobs, queue) = sync_channel(1);
    emberscope_supervise::spawn("unwind-builder", STUCK, move |beat| {
        run(&queue, &keys, disk.as_ref(), &asks, beat)
    })?;
    Ok(jobs)
}

fn run(jobs: &Receiver<Job>, keys: &Keys, disk: Option<&Disk>, asks: &SyncSender<Ask>, beat: &Beat) {
    // Of this thread alone (setpriority(2), C library/kernel differences).
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "unwind tables are built at the usual priority");
    }
    let mut budget = Budget::new(SHARE, AHEAD);
    while let Ok((wanted, most)) = jobs.recv() {
        let before = thread_cpu_time();
        let made = beat.work(|| match quarantine::enter(|| wanted.inode.item()) {
            Ok(_reading) => make(&wanted, most, keys, disk),
            Err(_) => Made::refused(&wanted),
        });
        let made = made.unwrap_or_else(|_| Made::refused(&wanted));
        if asks.send(Ask::Made(Box::new(made))).is_err() {
            return;
        }
        std::thread::sleep(budget.take(thread_cpu_time().saturating_sub(before), Instant::now()));
    }
}
