//! A question that names the label `operator`, taken apart: what label sets answer, and what stacks do.

use emberscope_model::{LabelKey, Matcher, Operator, Query, Selection};

/// A question in two parts: what the store is asked, and what is made of it.
pub(crate) struct Parted<'q> {
    /// The question without the operator.
    pub query: Query,
    /// How many labels stand before the operator in a path; None: it is not grouped by.
    pub place: Option<usize>,
    /// Conditions on the operator.
    pub matchers: Vec<&'q Matcher>,
}

impl<'q> Parted<'q> {
    /// None: the question does not name operators.
    pub fn of(query: &'q Query) -> Option<Self> {
        let is = |key: LabelKey| key == LabelKey::Operator;
        let place = query.group.iter().position(|key| is(*key));
        let (matchers, others): (Vec<_>, Vec<_>) =
            query.selection.matchers.iter().partition(|matcher| is(matcher.key));
        if place.is_none() && matchers.is_empty() {
            return None;
        }
        let query = Query {
            selection: Selection { matchers: others.into_iter().cloned().collect() },
            group: query.group.iter().copied().filter(|key| !is(*key)).collect(),
            ..query.clone()
        };
        Some(Self { query, place, matchers })
    }
    /// Whether the conditions hold for an operator.
    pub fn accepts(&self, operator: Operator) -> bool {
        self.matchers.iter().all(|matcher| matcher.accepts(&operator.name()))
    }
}
