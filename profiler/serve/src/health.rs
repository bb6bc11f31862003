//! `health` of the status: each thread, the last window, and what is left alone.
//!
//! In: the process's own state. Out: a part of the answer.

use emberscope_api::{Health, Quarantine, QuarantineEntry, ThreadHealth};
use emberscope_supervise::quarantine::{self, Entry};
use emberscope_supervise::{THREADS, ThreadState, Weight, count_of};

/// As it is now.
pub fn status() -> Health {
    let health = emberscope_supervise::health();
    let checked = health.check();
    let alone = quarantine::state();
    let panics = THREADS.iter().map(|thread| ((*thread).into(), count_of(thread)));
    Health {
        healthy: checked.is_ok(),
        says: checked.err(),
        degraded: health.degraded(),
        last_window_seconds: health.last_window.map(|age| age.as_secs_f64()),
        threads: health.threads.iter().map(thread).collect(),
        panics: panics.filter(|(_, count)| *count > 0).collect(),
        quarantine: Quarantine {
            careful_seconds: alone.careful.map(|left| left.as_secs()),
            refused: alone.refused,
            entries: alone.entries.iter().map(entry).collect(),
        },
    }
}

fn thread(state: &ThreadState) -> ThreadHealth {
    ThreadHealth {
        thread: state.thread.into(),
        busy_seconds: state.busy_for.map(|busy| busy.as_secs_f64()),
        limit_seconds: state.limit.as_secs(),
        stuck: state.is_stuck(),
        vital: state.weight == Weight::Vital,
    }
}

fn entry(entry: &Entry) -> QuarantineEntry {
    QuarantineEntry {
        what: entry.item.shown.clone(),
        id: entry.item.id.clone(),
        strikes: entry.strikes,
        left_seconds: entry.left.as_secs(),
    }
}
