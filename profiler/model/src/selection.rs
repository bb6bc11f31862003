//! What a query asks for.

use super::{LabelKey, LabelSet, SampleKind, TimeRange};
use regex::Regex;

/// How a matcher compares. As in PromQL, an absent label is the empty text and a regular expression is
/// anchored at both ends.
#[derive(Clone, Debug)]
pub enum MatchOp {
    /// Equal to one of these.
    In(Vec<String>),
    /// Equal to none of these.
    NotIn(Vec<String>),
    /// Matches.
    Regex(Regex),
    /// Does not match.
    NotRegex(Regex),
}

/// A condition on one label.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// Which label.
    pub key: LabelKey,
    /// The condition.
    pub op: MatchOp,
}

impl Matcher {
    /// Whether a set of labels fulfils it.
    pub fn matches(&self, labels: &LabelSet) -> bool {
        self.accepts(labels.get(self.key))
    }
    /// Whether a value of its label fulfils it; the empty text is a label that is not set.
    pub fn accepts(&self, value: &str) -> bool {
        match &self.op {
            MatchOp::In(values) => values.iter().any(|v| v == value),
            MatchOp::NotIn(values) => values.iter().all(|v| v != value),
            MatchOp::Regex(re) => re.is_match(value),
            MatchOp::NotRegex(re) => !re.is_match(value),
        }
    }
}

/// All conditions must hold; none means everything.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The conditions.
    pub matchers: Vec<Matcher>,
}

impl Selection {
    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }
    /// Whether a set of labels is selected.
    pub fn matches(&self, labels: &LabelSet) -> bool {
        self.matchers.iter().all(|m| m.matches(labels))
    }
}

/// A question to the store.
#[derive(Clone, Debug)]
pub struct Query {
    /// `[from, until)` as asked; the answer says to which windows it was widened.
    pub range: TimeRange,
    /// Which samples.
    pub selection: Selection,
    /// Which kind of samples.
    pub kind: SampleKind,
    /// Labels that become prefix frames `stage=3` before each stack, in this order.
    pub group: Vec<LabelKey>,
    /// How finely frames are told apart.
    pub detail: Detail,
}

/// How finely a tree tells frames apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// By source line: each is a frame of its own, `package.Class.method:123`.
    pub lines: bool,
    /// By how Java was run: a method that was compiled, inlined and interpreted is three frames, else one.
    pub kinds: bool,
}
