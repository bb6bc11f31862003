//! `health` of the status: each thread, the last window, and what is left alone.
//!
//! In: the process's own state. Out: JSON.

use emberscope_supervise::quarantine::{self, Entry};
use emberscope_supervise::{ThreadState, Weight};
use serde_json::{Value, json};

/// The object.
pub fn status() -> Value {
    let health = emberscope_supervise::health();
    let checked = health.check();
    let alone = quarantine::state();
    json!({
        "healthy": checked.is_ok(),
        "says": checked.err(),
        "degraded": health.degraded(),
        "last_window_seconds": health.last_window.map(|age| age.as_secs_f64()),
        "threads": health.threads.iter().map(thread).collect::<Vec<_>>(),
        "panics": panics(),
        "quarantine": {
            "careful_seconds": alone.careful.map(|left| left.as_secs()),
            "refused": alone.refused,
            "entries": alone.entries.iter().map(entry).collect::<Vec<_>>(),
        },
    })
}

fn panics() -> Value {
    let counts =
        emberscope_supervise::THREADS.iter().map(|thread| (*thread, emberscope_supervise::count_of(thread)));
    counts.filter(|(_, count)| *count > 0).map(|(thread, count)| (thread.to_owned(), count)).collect()
}

fn thread(state: &ThreadState) -> Value {
    json!({
        "thread": state.thread,
        "busy_seconds": state.busy_for.map(|busy| busy.as_secs_f64()),
        "limit_seconds": state.limit.as_secs(),
        "stuck": state.is_stuck(),
        "vital": state.weight == Weight::Vital,
    })
}

fn entry(entry: &Entry) -> Value {
    json!({
        "what": entry.item.shown,
        "id": entry.item.id,
        "strikes": entry.strikes,
        "left_seconds": entry.left.as_secs(),
    })
}
