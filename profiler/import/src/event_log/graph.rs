//! The graph of a plan's operators, as Spark's pages and REST API number and join them.
//!
//! In: the tree of an event ([`Info`]). Out: a [`SparkPlan`] with the numbers that Spark gives
//! (`SparkPlanGraph.scala` of sql/core, 3.5 and 4.x): a codegen stage has a number before its operators, an `InputAdapter`
//! and a query stage have none, and an exchange or subquery that is used again is one operator. Recursion is as deep as
//! the tree, which its reader bounds.

use super::plan_text::{Info, infos};
use emberscope_model::{PlanNode, SparkPlan};
use std::collections::HashMap;

/// What stands for a codegen stage: `WholeStageCodegen (3)`.
const CODEGEN: &str = "WholeStageCodegen";

/// The plan of an event.
///
/// # Errors
/// A sentence: the event has none that can be read, or one that is not kept.
pub fn plan(event: &[u8]) -> Result<SparkPlan, String> {
    let infos = infos(event).ok_or("its operators cannot be read, or are too many or too deep")?;
    let mut graph = Graph { infos: &infos, ..Graph::default() };
    graph.add(0, None, None);
    SparkPlan::new(graph.nodes, graph.edges).map_err(|problem| problem.to_string())
}

#[derive(Default)]
struct Graph<'a> {
    infos: &'a [Info],
    nodes: Vec<PlanNode>,
    edges: Vec<(u32, u32)>,
    /// Numbers of exchanges and subqueries, by what they are.
    again: HashMap<u64, u32>,
    next: u32,
}

/// The codegen stage that an operator is in: its number where it has one.
type Codegen = Option<Option<u32>>;

impl Graph<'_> {
    fn add(&mut self, at: usize, parent: Option<u32>, codegen: Codegen) {
        let infos = self.infos;
        let Some(info) = infos.get(at) else { return };
        let child = info.children.first().copied();
        let is_known = |graph: &Self, at: Option<usize>| graph.again.get(&infos.get(at?)?.digest).copied();
        match info.name.as_str() {
            name if name.starts_with(CODEGEN) => {
                // Its operators say which codegen stage they are of.
                self.next += 1;
                let number = name.split(['(', ')']).nth(1).and_then(|number| number.trim().parse().ok());
                self.child(child, parent, Some(number));
            }
            "InputAdapter" => self.child(child, parent, None),
            "BroadcastQueryStage" | "ResultQueryStage" | "ShuffleQueryStage" | "TableCacheQueryStage" => {
                match is_known(self, child) {
                    Some(known) => self.edge(known, parent),
                    None => self.child(child, parent, None),
                }
            }
            "Subquery" | "SubqueryBroadcast" if codegen.is_some() => self.add(at, parent, None),
            "Subquery" if is_known(self, Some(at)).is_some() => {
                let known = is_known(self, Some(at)).unwrap_or_default();
                self.edge(known, parent);
            }
            "ReusedSubquery" => self.child(child, parent, codegen),
            "ReusedExchange" if is_known(self, child).is_some() => {
                let known = is_known(self, child).unwrap_or_default();
                self.edge(known, parent);
            }
            name => {
                let id = self.node(name, codegen.flatten());
                if name.contains("Exchange") || name == "Subquery" {
                    self.again.insert(info.digest, id);
                }
                self.edge(id, parent);
                for child in &info.children {
                    self.add(*child, Some(id), codegen);
                }
            }
        }
    }

    fn child(&mut self, child: Option<usize>, parent: Option<u32>, codegen: Codegen) {
        if let Some(child) = child {
            self.add(child, parent, codegen);
        }
    }

    fn edge(&mut self, from: u32, to: Option<u32>) {
        self.edges.extend(to.map(|to| (from, to)));
    }

    fn node(&mut self, name: &str, codegen: Option<u32>) -> u32 {
        let id = self.next;
        self.next += 1;
        self.nodes.push(PlanNode { id, name: name.trim().into(), codegen });
        id
    }
}
