//! What is counted and shown of reads of targets that take too long: who is stuck, and who is left alone until when.

use emberscope_serve::{Metrics, raise_to};
use emberscope_target::errand::{About, Alone, ErrandCounts, Stuck};
use serde_json::{Value, json};

/// Reads that the status lists.
const MAX_LISTED: usize = 64;

/// Brings the numbers of reads to the metrics.
pub fn count(m: &Metrics, reads: &ErrandCounts) {
    raise_to(&m.reads.begun, reads.begun);
    raise_to(&m.reads.late, reads.late);
    for (what, count) in &reads.given_up {
        raise_to(&m.reads.given_up.with_label_values(&[what]), *count);
    }
    for (reason, count) in &reads.turned {
        raise_to(&m.reads.refused.with_label_values(&[reason]), *count);
    }
    m.reads.stuck.set(i64::try_from(reads.stuck.len()).unwrap_or(i64::MAX));
}

/// `reads` of the status.
pub fn status(reads: &ErrandCounts) -> Value {
    let stuck = reads.stuck.iter().take(MAX_LISTED);
    let alone = reads.alone.iter().take(MAX_LISTED);
    json!({
        "begun": reads.begun,
        "late": reads.late,
        "given_up": reads.given_up,
        "refused": reads.turned,
        "threads": reads.threads,
        "stuck": stuck.map(|Stuck { about, since }| one(about, "seconds", since.as_secs())).collect::<Vec<_>>(),
        "left_alone":
            alone.map(|Alone { about, left }| one(about, "left_seconds", left.as_secs())).collect::<Vec<_>>(),
    })
}

fn one(about: &About, time: &str, seconds: u64) -> Value {
    let path = about.path.as_ref().map(|path| path.to_string_lossy());
    let mut told = json!({ "pid": about.pid(), "uid": about.uid, "what": about.what.slug(), "path": path });
    told[time] = seconds.into();
    told
}
