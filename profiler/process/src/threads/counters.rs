//! What the table of threads counts.

use std::collections::VecDeque;

/// Unknown formats that are kept as text, and their length.
const SAMPLES: usize = 8;
const SAMPLE_CHARS: usize = 120;

/// Counts since the start, and `threads`, `label_sets`, which are there now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounters {
    /// Threads in the table.
    pub threads: u64,
    /// Label sets in use.
    pub label_sets: u64,
    /// Names that came from the kernel.
    pub named: u64,
    /// Names learned otherwise: from a JVM's memory, or a comm.
    pub learned: u64,
    /// Names that begin like Spark's and go on otherwise: their stage is `unknown`.
    pub unknown_formats: u64,
    /// Names that a thread took while it ran a task, and that are not Spark's: it stays the task's.
    pub renamed_in_task: u64,
    /// Threads whose name changed without a record of it.
    pub names_lost: u64,
    /// Samples whose thread's name is not known.
    pub samples_nameless: u64,
    /// Lines booked to stage `unknown` because a record was lost before.
    pub bookings_unknown: u64,
    /// Tasks that became `other` because their process named too many a minute, or labels because there
    /// were too many.
    pub folded: u64,
    /// Threads that left the table because it was full. Their accounts until they are heard of again are
    /// lost.
    pub threads_evicted: u64,
    /// Threads made by a task's thread and named as its helper.
    pub inherited: u64,
    /// Records that were overtaken by a later one.
    pub stale_records: u64,
    /// Times that a PySpark worker was bound to a task.
    pub bound: u64,
    /// Samples of PySpark workers whose task is not known.
    pub samples_unbound: u64,
}

impl ThreadCounters {
    /// What became of names, lines and records, each with a stable short name.
    pub const fn results(&self) -> [(&'static str, u64); 11] {
        [
            ("named", self.named),
            ("learned", self.learned),
            ("inherited", self.inherited),
            ("unknown_format", self.unknown_formats),
            ("renamed_in_task", self.renamed_in_task),
            ("lost", self.names_lost),
            ("nameless_sample", self.samples_nameless),
            ("booked_unknown", self.bookings_unknown),
            ("stale_record", self.stale_records),
            ("bound", self.bound),
            ("unbound_sample", self.samples_unbound),
        ]
    }
}

/// The last few different texts of an unknown format, escaped and cut, for people to look at.
#[derive(Debug, Default)]
pub(super) struct UnknownFormats(VecDeque<String>);

impl UnknownFormats {
    pub fn note(&mut self, name: &[u8]) {
        let text = String::from_utf8_lossy(name.get(..SAMPLE_CHARS).unwrap_or(name));
        let text: String = text.escape_debug().take(SAMPLE_CHARS).collect();
        if self.0.contains(&text) {
            return;
        }
        if self.0.len() >= SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back(text);
    }
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_kept_escaped_and_cut() {
        let mut formats = UnknownFormats::default();
        for i in 0..100 {
            formats.note(format!("{}\n<b>{i}", "x".repeat(i % 10)).as_bytes());
        }
        formats.note(&[0xff; 10_000]);
        formats.note(&[0xff; 10_000]);
        let kept: Vec<&str> = formats.iter().collect();
        assert_eq!(kept.len(), SAMPLES);
        assert!(kept.iter().all(|t| t.chars().count() <= SAMPLE_CHARS && !t.contains('\n')));
        assert!(kept.iter().filter(|t| t.starts_with('\u{fffd}')).count() == 1);
    }
}
