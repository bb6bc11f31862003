//! What keeps the daemon's own threads going, and says when one does not.
//!
//! In: every long-lived thread of the other rooms, started by [`spawn`], with a [`Beat`] that says when it works and when
//! it waits. Out: [`health`], which `/healthz`, the metrics and the service manager's watchdog show; counts of panics; and
//! what is left alone because reading it brought the daemon down ([`quarantine`]). Imports no other room, so that all may
//! use it. The state is the process's, as its threads are: it cannot be handed through seven rooms without a parameter in
//! each.

mod beat;
pub mod faults;
mod panics;
pub mod quarantine;
pub mod rights;
mod thread;

pub use beat::{Beat, Health, ThreadState, Weight};
pub use panics::{Panicked, attempt, count_of, install_hook};
pub use thread::{THREADS, end_within, run, spawn};

use std::sync::LazyLock;

/// The process's threads that beat.
static BEATS: LazyLock<beat::Beats> = LazyLock::new(beat::Beats::default);

/// What each of the process's threads does, and how late windows are.
pub fn health() -> Health {
    BEATS.health()
}

/// The beat of a thread that is not started by [`spawn`]: the main thread, and tasks of a runtime.
pub fn beat(thread: &'static str, limit: std::time::Duration, weight: Weight) -> Beat {
    BEATS.join(thread, limit, weight)
}

/// All windows that are over are stored. `stored`: one was, just now.
pub fn windows_are_current(stored: bool) {
    BEATS.windows_are_current(stored);
}
