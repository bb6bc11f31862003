//! Label sets put right, each once.
//!
//! Rows are compared by the address of their labels, so equal sets that come out must be one. In: sets and a
//! rule. Out: what they become. Lives as long as one pass over windows; as large as the sets that pass by.

use super::LabelSet;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What sets have become so far.
#[derive(Debug, Default)]
pub struct LabelRewrite {
    /// By address. The set is held beside its answer, so that its address stays its own.
    known: HashMap<*const LabelSet, (Arc<LabelSet>, Option<Arc<LabelSet>>)>,
    /// The sets, one of each that are equal.
    distinct: HashSet<Arc<LabelSet>>,
}

impl LabelRewrite {
    /// What `labels` become by `rule`, which is asked once for each set; None: they go.
    pub fn of(
        &mut self,
        labels: &Arc<LabelSet>,
        rule: impl FnOnce(&Arc<LabelSet>) -> Option<Arc<LabelSet>>,
    ) -> Option<Arc<LabelSet>> {
        let distinct = &mut self.distinct;
        let (_, one) = self.known.entry(Arc::as_ptr(labels)).or_insert_with(|| {
            let one = rule(labels).map(|new| match distinct.get(&new) {
                Some(one) => one.clone(),
                None => {
                    distinct.insert(new.clone());
                    new
                }
            });
            (labels.clone(), one)
        });
        one.clone()
    }
}
