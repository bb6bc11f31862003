//! What a query asks for.

use super::{LabelKey, LabelSet, SampleKind, TimeRange, WaitReason};
use regex::Regex;

/// How a matcher compares. As in PromQL, an absent label is the empty text and a regular expression is
/// anchored at both ends.
#[derive(Clone, Debug)]
pub enum MatchOp {
    /// The value is one of these.
    In(Vec<String>),
    /// The value is none of these.
    NotIn(Vec<String>),
    /// The whole value matches.
    Regex(Regex),
    /// The value does not match as a whole.
    NotRegex(Regex),
}

/// A condition on one label.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// The label whose value is compared.
    pub key: LabelKey,
    /// How the value is compared, and with what.
    pub op: MatchOp,
}

impl Matcher {
    /// Whether a set of labels fulfils the condition.
    pub fn matches(&self, labels: &LabelSet) -> bool {
        self.accepts(labels.get(self.key))
    }
    /// Whether a value of the label fulfils the condition; the empty text is a label that is not set.
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
    /// The conditions, all of which must hold.
    pub matchers: Vec<Matcher>,
}

impl Selection {
    /// A selection of everything.
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
    /// Whose samples are asked for.
    pub selection: Selection,
    /// Which kind of samples is asked for.
    pub kind: SampleKind,
    /// Labels that become prefix frames `stage=3` before each stack, in this order.
    pub group: Vec<LabelKey>,
    /// How finely frames are told apart.
    pub detail: Detail,
}

/// How finely a tree tells frames apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Apart by source line: each is a frame of its own, `package.Class.method:123`.
    pub lines: bool,
    /// Apart by how Java was run: a method that was compiled, inlined and interpreted is three frames, else one.
    pub kinds: bool,
}

/// What an answer of a kind is grouped by: as asked, and named events by their names where none is chosen. A sum of block
/// requests and cache misses is none.
pub fn grouped(kind: SampleKind, matchers: &[Matcher], mut group: Vec<LabelKey>) -> Vec<LabelKey> {
    let told =
        group.contains(&LabelKey::Event) || matchers.iter().any(|matcher| matcher.key == LabelKey::Event);
    if kind == SampleKind::Event && !told {
        group.insert(0, LabelKey::Event);
    }
    group
}

/// What a kind means beside what is chosen: some are waits for one reason. Of all waits those of threads that wait for their
/// next task are left out, unless reasons are chosen: a pool's would be most of all.
pub fn implied(kind: SampleKind, matchers: &[Matcher]) -> Option<Matcher> {
    if let Some(reason) = kind.facts().reason {
        return Some(Matcher { key: LabelKey::Wait, op: MatchOp::In(vec![reason.slug().to_owned()]) });
    }
    let chosen = matchers.iter().any(|matcher| matcher.key == LabelKey::Wait);
    let idle = || vec![WaitReason::Idle.slug().to_owned()];
    (kind.holds(SampleKind::OffCpu) && !chosen)
        .then(|| Matcher { key: LabelKey::Wait, op: MatchOp::NotIn(idle()) })
}
