//! Threads that outlive their panics.
//!
//! In: a name of [`THREADS`] and what the thread does. A body that panics is begun anew after a pause that grows to
//! [`LONGEST`] and is short again after a quiet minute; what it takes from a queue stays there, for the queue is the
//! caller's. Work that somebody waits for is done inside [`Beat::work`], so that its panic is an answer.

use super::beat::{Beat, Weight};
use super::panics::attempt;
use crate::rights;
use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Long-lived threads, as metrics name them. `sampler` is the main thread; `other` are all that are not listed.
pub const THREADS: [&str; 21] = [
    "sampler",
    "http",
    "query",
    "journal",
    "blocks",
    "unwind-tables",
    "unwind-builder",
    "probes",
    "errand",
    "reader",
    "discovery",
    "spark-names",
    "spark-words",
    "event-logs",
    "archive",
    "push",
    "push-otlp",
    "debuginfod",
    "watch",
    "watchdog",
    "other",
];

/// The first pause after a panic.
const FIRST: Duration = Duration::from_millis(50);
/// The longest pause: a daemon that is told to stop waits for a thread that pauses.
const LONGEST: Duration = Duration::from_secs(5);
/// After so long without one, a panic is the first again.
const QUIET: Duration = Duration::from_secs(60);

/// Starts a thread that is stuck after `limit` with one thing, for which nobody need restart the daemon. It has the
/// capabilities that the table of [`rights`] gives it.
///
/// # Errors
/// The kernel starts no thread (`EAGAIN`: the limit of threads, or no memory).
pub fn spawn(
    thread: &'static str,
    limit: Duration,
    body: impl FnMut(&Beat) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let beat = super::beat(thread, limit, Weight::Degraded);
    Builder::new().name(thread.to_owned()).spawn(move || {
        rights::keep_only(thread);
        run(&beat, body);
    })
}

/// Runs `body` on this thread until it ends without a panic.
pub fn run(beat: &Beat, mut body: impl FnMut(&Beat)) {
    let mut pause = FIRST;
    loop {
        let begun = Instant::now();
        if attempt(|| body(beat)).is_ok() {
            return;
        }
        if begun.elapsed() >= QUIET {
            pause = FIRST;
        }
        // It does nothing meanwhile: that is no idleness.
        beat.busy();
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST);
        beat.idle();
    }
}

/// Ends the process after this time if it has not ended by itself: after a failure whatever its end waits for may be what
/// failed.
pub fn end_within(time: Duration) {
    let last = Builder::new().name("end".to_owned()).spawn(move || {
        std::thread::sleep(time);
        tracing::error!("the end takes too long: aborting");
        std::process::abort();
    });
    if last.is_err() {
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    /// One that the table of rights lacks would lose all of them.
    #[test]
    fn every_thread_has_its_rights() {
        let started = THREADS.iter().filter(|thread| !["sampler", "other"].contains(thread));
        for thread in started {
            assert!(rights::THREADS.iter().any(|(name, _)| name == thread), "{thread}");
        }
    }

    #[test]
    fn a_thread_that_panics_goes_on_with_what_waits() {
        let (jobs, queue) = sync_channel::<u32>(8);
        let (out, done) = sync_channel(8);
        let thread = spawn("push", Duration::from_secs(1), move |_| {
            for job in &queue {
                assert_ne!(job, 2, "an injected panic");
                out.send(job).unwrap();
            }
        });
        for job in 1..5 {
            jobs.send(job).unwrap();
        }
        drop(jobs);
        assert_eq!(done.iter().collect::<Vec<_>>(), [1, 3, 4]);
        thread.unwrap().join().unwrap();
    }
}
