//! Values of labels, with what samples have them, and series by label.

use emberscope_model::{Frame, LabelKey, SeriesPoint};
use std::sync::Arc;

/// A time series with its labels: those of `by`, in that order.
pub type LabelledSeries = (Vec<(LabelKey, Arc<str>)>, Vec<SeriesPoint>);

/// A value of a label, and the sums of all samples that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelValue {
    /// The text of the value.
    pub value: Arc<str>,
    /// Samples that have the value.
    pub count: u64,
    /// Weight of these samples.
    pub weight: u64,
}

/// What a prefix frame of this label says (see [`crate::Store::merge`]); None: the frame is none.
pub fn prefix_value(frame: &Frame, key: LabelKey) -> Option<&str> {
    frame.name.strip_prefix(key.name())?.strip_prefix('=')
}

/// Most samples first, then by text.
pub(super) fn sort_values(values: &mut [LabelValue]) {
    values.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
}
