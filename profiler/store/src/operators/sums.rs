//! Sums of a call tree's samples by what their frames tell of operators.

use super::tree::walk;
use crate::values::prefix_value;
use emberscope_model::{LabelKey, NodeId, Operator, OperatorWalk, Tree};
use std::collections::BTreeMap;

/// Samples that one value of a label has and whose frames tell the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorSum {
    /// The value of the label.
    pub value: String,
    /// What they work for.
    pub operator: Operator,
    /// The codegen stage whose code stands nearest to the leaf.
    pub codegen: Option<u32>,
    /// How many.
    pub count: u64,
    /// Their weight, in the unit of the tree's kind.
    pub weight: u64,
}

/// The sums of a tree whose first frames are values of one label.
pub fn operator_sums(tree: &Tree, key: LabelKey) -> Vec<OperatorSum> {
    let mut sums: BTreeMap<(NodeId, Operator, Option<u32>), (u64, u64)> = BTreeMap::new();
    for (node, (walk, below)) in tree.nodes.iter().zip(walk(tree, 1, 1)) {
        if (node.self_count, node.self_weight) != (0, 0) {
            let (operator, codegen) = (OperatorWalk::operator(walk), walk.codegen());
            let (count, weight) = sums.entry((below, operator, codegen)).or_default();
            *count = count.saturating_add(node.self_count);
            *weight = weight.saturating_add(node.self_weight);
        }
    }
    let sum = |((below, operator, codegen), (count, weight))| {
        let value = prefix_value(&tree.nodes.get(below as usize)?.frame, key)?.to_owned();
        Some(OperatorSum { value, operator, codegen, count, weight })
    };
    sums.into_iter().filter_map(sum).collect()
}
