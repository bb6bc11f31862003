//! What is made of a file.

use super::Format;
use super::gather::Sampled;
use emberscope_model::{LabelKey, LabelSet, LabelSetBuilder, SampleKind, TimeRange, Window};
use std::collections::HashMap;
use std::sync::Arc;

/// What was sampled, where it is not one of the kinds that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// What: an event's or a value's name, and why.
    pub what: String,
    /// How many: samples, lines or values.
    pub count: u64,
}

/// What a file had.
#[derive(Debug)]
pub struct Imported {
    /// As which format the file was read.
    pub format: Format,
    /// Who sampled, in words: `async-profiler 4.5, event cpu every 10 ms`.
    pub by: String,
    /// The kind of all its samples.
    pub kind: SampleKind,
    /// In order of time; labels are those that the file tells.
    pub windows: Vec<Window>,
    /// From the first window to the last.
    pub range: TimeRange,
    /// The times are of the file's last change: it has none.
    pub guessed: bool,
    /// Sum of all windows.
    pub sampled: Sampled,
    /// Samples whose stack was cut by who sampled.
    pub truncated: u64,
    /// Samples without a stack.
    pub stackless: u64,
    /// What was not taken, by name.
    pub left_out: Vec<LeftOut>,
    /// What else a reader should know.
    pub remarks: Vec<String>,
}

impl Imported {
    /// Adds labels to all samples; those that a sample has itself stay.
    pub fn label(&mut self, labels: &[(LabelKey, String)]) {
        let mut known: HashMap<Arc<LabelSet>, Arc<LabelSet>> = HashMap::new();
        for row in self.windows.iter_mut().flat_map(|window| &mut window.rows) {
            let set = known.entry(row.labels.clone()).or_insert_with(|| {
                let missing = labels.iter().filter(|(key, _)| row.labels.get(*key).is_empty());
                let all = LabelSetBuilder::from_set(&row.labels);
                Arc::new(missing.fold(all, |all, (key, value)| all.set(*key, value.as_str())).build())
            });
            row.labels = set.clone();
        }
    }
}
