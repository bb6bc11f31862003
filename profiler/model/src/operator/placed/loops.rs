//! Code of which several operators have a part: a codegen stage's loop, and iterators of Scala's.
//!
//! The loop of a codegen stage is in `processNext`; by Spark's code generation it holds the operators from
//! the one that gives the stage's rows away down to the first that takes in all rows before it gives one (its input has
//! a method of its own, which frames tell), or to the stage's inputs. One operator there has the loop's samples;
//! up to [`MAX_FUSED`] are told together, since no frame and no plan can part them. So it is with what stands in iterators of
//! Scala's: it is of those operators of the stage that run as such, without code of their own. What is more, and a number that two
//! different stages of a plan have (subqueries and cached tables count anew), is not told.

use super::{EXCHANGE, Placed, PlacedAs, PlanOperators, narrow, operator_of};
use crate::PlanNode;
use crate::operator::ITERATED;

/// Operators of one loop that are told together: of more it is not said any more what a sample works for.
const MAX_FUSED: usize = 4;
/// Operators that take in all rows before they give one, in a method of their own: `doAggregateWithKeys`,
/// `doAggregateWithoutKey` (AggregateCodegenSupport.scala), `addToSorter` (SortExec.scala).
const BLOCKING: [&str; 3] = ["HashAggregate", "Sort", "SortAggregate"];
/// Operators that are an iterator of Scala's over their input's where they are not compiled (`doExecute` of each: `map`,
/// `filter`, `flatMap`; Spark 3.1 to 4.3), sorted.
const OF_ITERATORS: [&str; 13] = [
    "AppendColumns",
    "BroadcastHashJoin",
    "BroadcastNestedLoopJoin",
    "ColumnarToRow",
    "DeserializeToObject",
    "Filter",
    "Generate",
    "MapElements",
    "MapPartitions",
    "Project",
    "Sample",
    "SerializeFromObject",
    "ShuffledHashJoin",
];

impl PlanOperators<'_> {
    /// What has the samples of a codegen stage's loop.
    pub(super) fn in_loop(&self, stage: u32, part: Option<u32>) -> Option<Placed> {
        let is_in = |id: u32| self.plan.node(id).is_some_and(|node| node.codegen == Some(stage));
        let nodes = self.plan.nodes().iter().map(|node| node.id).filter(|id| is_in(*id));
        let mut tops: Vec<u32> = nodes.filter(|id| !self.plan.parents(*id).any(is_in)).collect();
        narrow(&mut tops, |id| part.is_some() && self.parts.get(&id).copied() == part);
        let mut loops: Vec<(Vec<&str>, Vec<u32>)> = Vec::new();
        for top in tops {
            let nodes = self.loop_below(top);
            let names = self.names_of(&nodes);
            match loops.first_mut() {
                Some((other, all)) if *other == names => all.extend(nodes),
                _ => loops.push((names, nodes)),
            }
        }
        let (names, nodes) = loops.pop().filter(|_| loops.is_empty())?;
        together(&names, &format!("(codegen {stage})"), nodes)
    }

    /// What has the samples in iterators of Scala's of a part, or of the plan: its operators that are such, and exchanges,
    /// whose rows are read and partitioned by them (BlockStoreShuffleReader, ShuffleExchangeExec).
    pub(super) fn in_iterators(&self, part: Option<u32>) -> Option<Placed> {
        let is_in = |id: u32| part.is_none() || self.parts.get(&id).copied() == part;
        let is_one = |node: &&PlanNode| match &*node.name {
            EXCHANGE => is_in(node.id) || self.plan.parents(node.id).any(is_in),
            _ => node.codegen.is_none() && OF_ITERATORS.contains(&operator_of(node)) && is_in(node.id),
        };
        // Who takes rows has the lower number.
        let nodes: Vec<u32> = self.plan.nodes().iter().rev().filter(is_one).map(|node| node.id).collect();
        together(&self.names_of(&nodes), ITERATED, nodes)
    }

    /// The operators of nodes, each once.
    fn names_of(&self, nodes: &[u32]) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in nodes.iter().filter_map(|id| self.plan.node(*id)).map(operator_of) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The operators of a loop, those that give rows first: from its top down.
    fn loop_below(&self, top: u32) -> Vec<u32> {
        let codegen = self.plan.node(top).and_then(|node| node.codegen);
        let (mut found, mut todo) = (Vec::new(), vec![top]);
        while let Some(node) = todo.pop().and_then(|id| self.plan.node(id)) {
            if node.codegen != codegen || found.contains(&node.id) {
                continue;
            }
            found.push(node.id);
            if !BLOCKING.contains(&&*node.name) {
                todo.extend(self.plan.children(node.id));
            }
        }
        found.reverse();
        found
    }

    /// The operator that takes in all rows in whose method a compiled node's code stands. None: it stands in a loop of the
    /// stage, or is not compiled.
    pub fn method_of(&self, id: u32) -> Option<u32> {
        let codegen = self.plan.node(id)?.codegen?;
        let mut at = id;
        loop {
            let mut above = self.plan.parents(at).filter_map(|parent| self.plan.node(parent));
            let above = above.find(|node| node.codegen == Some(codegen))?;
            if BLOCKING.contains(&&*above.name) {
                return Some(above.id);
            }
            at = above.id;
        }
    }
}

/// One operator, or a few that nothing parts; `what` says what they are in together.
fn together(names: &[&str], what: &str, nodes: Vec<u32>) -> Option<Placed> {
    match names {
        [] => None,
        [name] => Some(Placed { of: PlacedAs::Operator, name: (*name).to_owned(), nodes }),
        names if names.len() > MAX_FUSED => None,
        names => Some(Placed { of: PlacedAs::Fused, name: format!("{} {what}", names.join("+")), nodes }),
    }
}
