//! Samples put to the operators of a plan: what frames tell, and what the plan tells where they do not.
//!
//! In: a [`SparkPlan`], an [`Operator`] that frames told, and the codegen stage whose code stands nearest to the leaf. Out:
//! a [`Placed`]. What several operators share is told of all of them together ([`loops`]).

use super::nodes::PYTHON;
use super::rules::RESULT;
use super::{ITERATED, Operator};
use crate::{PlanNode, SparkPlan};
use std::collections::{BTreeMap, BTreeSet};

mod loops;

/// What sends rows from one Spark stage to the next.
const EXCHANGE: &str = "Exchange";
/// Names that classes have together which several operators use: readers of files, tables of hashed rows.
const KINDS: [&str; 2] = ["HashJoin", "Scan"];
/// What sends its rows to all executors by way of the driver.
const BROADCAST: &str = "BroadcastExchange";
/// Nodes of version 2 sinks, which write as `WriteToDataSourceV2` (V2TableWriteExec, WriteToDataSourceV2Exec.scala).
const SINKS: [&str; 10] = [
    "AppendData",
    "AtomicCreateTableAsSelect",
    "AtomicReplaceTableAsSelect",
    "CreateTableAsSelect",
    "OverwriteByExpression",
    "OverwritePartitionsDynamic",
    "ReplaceData",
    "ReplaceTableAsSelect",
    "WriteDelta",
    "WriteToDataSourceV2",
];

/// What kind of thing samples are put to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlacedAs {
    /// One operator.
    Operator,
    /// Some operators of a plan in one loop.
    Fused,
    /// Generated code of which the plan does not tell the operators, or too many.
    Codegen,
    /// Spark's work around operators.
    Around,
    /// Nothing.
    Unknown,
}

impl PlacedAs {
    /// Stable name.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Fused => "fused",
            Self::Codegen => "codegen",
            Self::Around => "around",
            Self::Unknown => "unknown",
        }
    }
}

/// What samples are put to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placed {
    /// What it is.
    pub of: PlacedAs,
    /// Name of the operator, or of all in the loop, in the order in which rows go through: `Range+Project (codegen 1)`.
    pub name: String,
    /// Numbers of the plan's nodes that it may be, or that it is together.
    pub nodes: Vec<u32>,
}

impl Placed {
    /// What frames alone tell.
    pub fn by_frames(operator: Operator) -> Self {
        let of = match operator {
            Operator::Named(_) => PlacedAs::Operator,
            Operator::Codegen(_) => PlacedAs::Codegen,
            Operator::Around(_) => PlacedAs::Around,
            Operator::Unknown => PlacedAs::Unknown,
        };
        Self { of, name: operator.name().into_owned(), nodes: Vec::new() }
    }
}

/// A plan whose operators are looked for.
#[derive(Debug)]
pub struct PlanOperators<'p> {
    plan: &'p SparkPlan,
    /// The part between exchanges in which a node is, by the number of one of its nodes.
    parts: BTreeMap<u32, u32>,
}

/// The operator of a node, without its table: `Scan parquet` of `Scan parquet db.sales`.
fn operator_of(node: &PlanNode) -> &str {
    let words = if node.name.starts_with("Scan ") { 2 } else { 1 };
    let end = node.name.match_indices(' ').nth(words - 1).map(|(end, _)| end);
    end.and_then(|end| node.name.get(..end)).unwrap_or(&node.name)
}

/// Whether rows leave a Spark stage here.
fn is_exchange(node: &PlanNode) -> bool {
    operator_of(node).ends_with("Exchange")
}

/// Whether samples that are put to an operator of this name may be of the node.
fn is_of(node: &PlanNode, operator: &str) -> bool {
    let begins = |word: &str| {
        node.name.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    match operator {
        "Exchange (write)" | "Exchange (read)" => &*node.name == EXCHANGE,
        "HashJoin" => begins("BroadcastHashJoin") || begins("ShuffledHashJoin"),
        "WriteToDataSourceV2" => SINKS.into_iter().any(begins),
        operator => begins(operator),
    }
}

impl<'p> PlanOperators<'p> {
    /// The operators of a plan.
    pub fn new(plan: &'p SparkPlan) -> Self {
        let mut parts = BTreeMap::new();
        for node in plan.nodes() {
            let mut todo = vec![node.id];
            while let Some(id) = todo.pop() {
                if parts.contains_key(&id) {
                    continue;
                }
                parts.insert(id, node.id);
                let ends_here = |id: u32| plan.node(id).is_some_and(is_exchange);
                todo.extend(plan.children(id).filter(|child| !ends_here(*child)));
                todo.extend(plan.parents(id).filter(|_| !ends_here(id)));
            }
        }
        Self { plan, parts }
    }

    /// The part of the plan that a Spark stage runs whose samples are of these codegen stages. None: that is not told.
    pub fn part(&self, codegen: &BTreeSet<u32>) -> Option<u32> {
        let is_there = |node: &&PlanNode| node.codegen.is_some_and(|stage| codegen.contains(&stage));
        let mut parts = self.plan.nodes().iter().filter(is_there).filter_map(|node| self.parts.get(&node.id));
        let first = parts.next()?;
        parts.all(|part| part == first).then_some(*first)
    }

    /// The operator of a part, or of the plan, that sends rows to Python workers, where it is one alone.
    pub fn python(&self, part: Option<u32>) -> Option<&'static str> {
        let is_in = |node: &&PlanNode| part.is_none() || self.parts.get(&node.id).copied() == part;
        let names = self.plan.nodes().iter().filter(is_in);
        let mut names = names.filter_map(|node| PYTHON.iter().find(|name| **name == operator_of(node)));
        let first = names.next()?;
        names.all(|name| name == first).then_some(first)
    }

    /// What samples are put to of which frames tell `operator`, with code of this codegen stage next to the leaf, in this
    /// part of the plan.
    pub fn place(&self, operator: Operator, codegen: Option<u32>, part: Option<u32>) -> Placed {
        let told = Placed::by_frames(operator);
        match operator {
            Operator::Named(name) => {
                let nodes = self.nodes_of(name, codegen, part);
                let name = self.closer(name, &nodes).map_or(told.name, str::to_owned);
                Placed { of: told.of, name, nodes }
            }
            Operator::Codegen(stage) => self.in_loop(stage, part).unwrap_or(told),
            Operator::Around(RESULT) => self.broadcast(part).unwrap_or(told),
            Operator::Around(ITERATED) => self.in_iterators(part).unwrap_or(told),
            Operator::Around(_) | Operator::Unknown => told,
        }
    }

    /// The exchange for whose broadcast a part's rows are collected, where it is one alone.
    fn broadcast(&self, part: Option<u32>) -> Option<Placed> {
        let is_it = |node: &&PlanNode| {
            part.is_some() && self.parts.get(&node.id).copied() == part && operator_of(node) == BROADCAST
        };
        let mut nodes = self.plan.nodes().iter().filter(is_it).map(|node| node.id);
        let node = nodes.next().filter(|_| nodes.next().is_none())?;
        Some(Placed { of: PlacedAs::Operator, name: BROADCAST.to_owned(), nodes: vec![node] })
    }

    /// The name that the plan has for an operator of which frames tell the kind alone, where it has one.
    fn closer(&self, operator: &str, nodes: &[u32]) -> Option<&str> {
        let mut names = nodes.iter().filter_map(|id| self.plan.node(*id)).map(operator_of);
        let first = names.next().filter(|_| KINDS.contains(&operator))?;
        names.all(|name| name == first).then_some(first)
    }

    /// Nodes that an operator may be: those of the codegen stage and of the part, where there are any.
    fn nodes_of(&self, operator: &str, codegen: Option<u32>, part: Option<u32>) -> Vec<u32> {
        let nodes = self.plan.nodes().iter().filter(|node| is_of(node, operator));
        let mut found: Vec<u32> = nodes.map(|node| node.id).collect();
        let of = |id: u32| self.parts.get(&id).copied();
        narrow(&mut found, |id| match (part, operator) {
            (None, _) => false,
            // AQE reads it by a node of its own, which is in the part.
            (part, "Exchange (read)") => self.plan.parents(id).any(|parent| of(parent) == part),
            (part, _) => of(id) == part,
        });
        if codegen.is_some() {
            narrow(&mut found, |id| self.plan.node(id).is_some_and(|node| node.codegen == codegen));
        }
        found
    }
}

/// Those of the nodes that are so, where any is.
fn narrow(nodes: &mut Vec<u32>, is_so: impl Fn(u32) -> bool) {
    if nodes.iter().any(|id| is_so(*id)) {
        nodes.retain(|id| is_so(*id));
    }
}

#[cfg(test)]
mod tests;
