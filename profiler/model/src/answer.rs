//! What the store answers.

use super::{Frame, FrameKind, LabelKey, LabelSet, LedgerSums, LostCounts, Missing, SampleKind, TimeRange};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Index of a node in [`Tree::nodes`].
pub type NodeId = u32;

/// One function in one calling context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The frame. A prefix frame of `group` is named `key=value` and, as the root, of kind Label.
    pub frame: Arc<Frame>,
    /// The caller; the root is its own parent.
    pub parent: NodeId,
    /// Samples that ended here.
    pub self_count: u64,
    /// Weight of the samples that ended here, in the unit of the sample kind.
    pub self_weight: u64,
    /// Samples that ended here or below.
    pub total_count: u64,
    /// Weight of the samples that ended here or below, in the unit of the sample kind.
    pub total_weight: u64,
}

impl Node {
    /// A frame below a caller, without samples yet.
    pub const fn below(parent: NodeId, frame: Arc<Frame>) -> Self {
        Self { frame, parent, self_count: 0, self_weight: 0, total_count: 0, total_weight: 0 }
    }
}

/// A merged call tree. `nodes[0]` is the root (name `total`); a parent stands before its children.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The nodes, the root first.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// A tree of nodes whose totals hold only what is their own so far; a parent stands before its children.
    pub fn with_totals(mut nodes: Vec<Node>) -> Self {
        for at in (1..nodes.len()).rev() {
            let (before, rest) = nodes.split_at_mut(at);
            if let Some(node) = rest.first()
                && let Some(parent) = before.get_mut(node.parent as usize)
            {
                parent.total_count = parent.total_count.saturating_add(node.total_count);
                parent.total_weight = parent.total_weight.saturating_add(node.total_weight);
            }
        }
        Self { nodes }
    }
}

/// What an answer rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// What the samples count.
    pub kind: SampleKind,
    /// Samples in the answer.
    pub samples: u64,
    /// Samples whose user stack does not reach the thread's first frame; by reason below.
    pub truncated: u64,
    /// How walks ended: [`super::StackEnd`] slug -> samples, for every sample of the answer.
    pub ends: BTreeMap<&'static str, u64>,
    /// Frames of all samples (a stack sampled twice counts twice).
    pub frames: u64,
    /// Frames of all samples that have no name.
    pub unnamed_frames: u64,
    /// Why frames have no name: [`super::UnknownReason`] slug -> frames.
    pub unnamed: BTreeMap<&'static str, u64>,
    /// Samples with a frame that rests on borrowed debug info ([`super::Frame::approximate`]).
    pub approximate: u64,
    /// What the node lost during the answer's windows. Not attributable to a selection.
    pub lost: LostCounts,
    /// What was set aside of the answer's range. Not attributable to a selection.
    pub missing: Missing,
}

impl Quality {
    /// Relative standard error of what the samples weigh together; None when there are none.
    pub fn sampling_error(&self) -> Option<f64> {
        (self.kind.facts().error)(self.samples)
    }
}

/// Relative standard error of a time that rests on this many samples: 1/sqrt(n), as each is one of a
/// Poisson process; None when there are none. What runs in step with the sampling clock is not in it.
pub fn sampling_error(samples: u64) -> Option<f64> {
    (samples > 0).then(|| 1.0 / (samples as f64).sqrt())
}

/// The answer to a [`super::Query`].
#[derive(Clone, Debug)]
pub struct Answer {
    /// The call tree of all selected samples.
    pub tree: Tree,
    /// The span of the windows that the answer holds: `from` rounded down, `until` up to whole windows.
    pub range: TimeRange,
    /// How many windows the answer holds.
    pub windows: usize,
    /// What the answer rests on.
    pub quality: Quality,
}

/// An [`Answer`] without its tree: which windows it holds and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// As [`Answer::range`].
    pub range: TimeRange,
    /// As [`Answer::windows`].
    pub windows: usize,
    /// As [`Answer::quality`].
    pub quality: Quality,
}

/// A method, over all ways to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodSum {
    /// Name of the method; with lines told apart `name:line`.
    pub name: Arc<str>,
    /// Library, executable or kernel module.
    pub module: Arc<str>,
    /// Kinds of code that the method ran as, sorted.
    pub kinds: Vec<FrameKind>,
    /// Samples that ended in the method.
    pub self_count: u64,
    /// Weight of the samples that ended in the method, in the unit of the sample kind.
    pub self_weight: u64,
    /// Samples that ended in the method or below: one in which it calls itself counts once.
    pub total_count: u64,
    /// Weight of the samples that ended in the method or below, in the unit of the sample kind.
    pub total_weight: u64,
}

/// An [`Answer`] with methods in place of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodAnswer {
    /// The methods, sorted by name and module.
    pub methods: Vec<MethodSum>,
    /// As [`Answer::range`].
    pub range: TimeRange,
    /// As [`Answer::windows`].
    pub windows: usize,
    /// As [`Answer::quality`].
    pub quality: Quality,
}

/// Sum over all samples with the same labels.
#[derive(Clone, Debug)]
pub struct LabelTotal {
    /// The labels that the samples have.
    pub labels: Arc<LabelSet>,
    /// How many samples.
    pub count: u64,
    /// Weight of the samples, in the unit of the sample kind.
    pub weight: u64,
    /// From the first window's start to the last window's end that has such samples.
    pub seen: TimeRange,
}

/// One step of a time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesPoint {
    /// Start of the step, milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Samples in the step.
    pub count: u64,
    /// Weight of the samples, in the unit of the sample kind.
    pub weight: u64,
}

/// Exact sums over all threads' stretches whose labels are equal in the keys that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerTotal {
    /// The keys asked for, in their order; the empty text where a key is not set.
    pub labels: Vec<(LabelKey, Arc<str>)>,
    /// What the threads used.
    pub sums: LedgerSums,
    /// From the first stretch's start to the last one's end.
    pub seen: TimeRange,
}

impl LedgerTotal {
    /// A label's value; None where that key was not asked for.
    pub fn label(&self, key: LabelKey) -> Option<&Arc<str>> {
        self.labels.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}
