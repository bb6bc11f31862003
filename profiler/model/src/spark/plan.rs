//! The physical plan of a Spark SQL execution: which operators it has, and who takes rows of whom.
//!
//! In: nodes and edges as a driver told them, or a fact of a store. Out: a [`SparkPlan`], or why there is none; a plan is
//! whole or not there at all, for a part of one would put samples to the wrong operator. A driver is any program: what is
//! accepted has one node an id, no edge to a node that is not there and no circle, and is within [`MAX_NODES`],
//! [`MAX_EDGES`] and [`MAX_NAME`]; a fact is looked at again. Metrics, conditions and columns are not kept.

use super::{SparkFact, SparkFactKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// Nodes of a plan that is kept.
const MAX_NODES: usize = 400;
/// Edges of a plan that is kept: a tree has one less than nodes, and exchanges that are used again some more. Twice as
/// many numbers are the refs of a fact.
const MAX_EDGES: usize = 500;
/// Bytes of a node's name: `Scan parquet spark_catalog.default.sales`.
const MAX_NAME: usize = 64;
/// Highest number of a codegen stage: a plan has tens.
const MAX_CODEGEN: u32 = 999;
/// What nodes are called that stand for a whole codegen stage; it has operators of its own.
const CLUSTER: &str = "WholeStageCodegen (";

/// An operator of a physical plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNode {
    /// Number of the node, unique in its plan.
    pub id: u32,
    /// Name of the node in Spark's plans, with its table where it has one: `Project`, `Scan parquet db.sales`.
    pub name: Arc<str>,
    /// Number of the codegen stage that the operator is compiled into; None: it is not compiled.
    pub codegen: Option<u32>,
}

/// Why a plan is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanProblem {
    /// It has more nodes or edges than are kept.
    #[error("it has more than {MAX_NODES} operators or {MAX_EDGES} edges")]
    TooLarge,
    /// Two nodes have one number.
    #[error("two of its operators have the same number")]
    SameId,
    /// An edge leads from or to a node that is not there.
    #[error("an edge of it has no operator at an end")]
    LooseEdge,
    /// Rows of an operator come from itself in the end.
    #[error("its edges go in a circle")]
    Circle,
}

/// A physical plan: a graph without circles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparkPlan {
    nodes: Vec<PlanNode>,
    edges: Vec<(u32, u32)>,
}

impl SparkPlan {
    /// The plan of these nodes, and of edges from whom rows come to who takes them. Nodes that stand for a codegen stage
    /// are left out, with their edges; names are cut, and numbers of codegen stages that are none are dropped.
    ///
    /// # Errors
    /// A [`PlanProblem`]: the plan is over a limit, or no graph without circles.
    pub fn new(nodes: Vec<PlanNode>, edges: Vec<(u32, u32)>) -> Result<Self, PlanProblem> {
        let (clusters, mut nodes): (Vec<_>, Vec<_>) =
            nodes.into_iter().partition(|node| node.codegen.is_none() && node.name.starts_with(CLUSTER));
        let clusters: BTreeSet<u32> = clusters.iter().map(|node| node.id).collect();
        let mut edges: Vec<(u32, u32)> = edges
            .into_iter()
            .filter(|(from, to)| !clusters.contains(from) && !clusters.contains(to))
            .collect();
        edges.sort_unstable();
        edges.dedup();
        if nodes.len() > MAX_NODES || edges.len() > MAX_EDGES {
            return Err(PlanProblem::TooLarge);
        }
        for node in &mut nodes {
            let name = one_line(&node.name);
            if *name != *node.name {
                node.name = name.into();
            }
            node.codegen = node.codegen.filter(|stage| *stage <= MAX_CODEGEN);
        }
        nodes.sort_by_key(|node| node.id);
        if nodes.windows(2).any(|pair| matches!(pair, [a, b] if a.id == b.id)) {
            return Err(PlanProblem::SameId);
        }
        let plan = Self { nodes, edges };
        if plan.edges.iter().any(|(from, to)| plan.node(*from).is_none() || plan.node(*to).is_none()) {
            return Err(PlanProblem::LooseEdge);
        }
        if plan.has_circle() { Err(PlanProblem::Circle) } else { Ok(plan) }
    }

    /// Takes away nodes from which no rows come any more, until none is left but those in a circle.
    fn has_circle(&self) -> bool {
        let mut sources: BTreeMap<u32, usize> = BTreeMap::new();
        self.edges.iter().for_each(|(_, to)| *sources.entry(*to).or_default() += 1);
        let leaves = self.nodes.iter().map(|node| node.id).filter(|id| !sources.contains_key(id));
        let mut free: Vec<u32> = leaves.collect();
        let mut left = self.nodes.len();
        while let Some(id) = free.pop() {
            left -= 1;
            for to in self.parents(id) {
                if let Some(count) = sources.get_mut(&to) {
                    *count -= 1;
                    free.extend((*count == 0).then_some(to));
                }
            }
        }
        left > 0
    }

    /// The operators, by number.
    pub fn nodes(&self) -> &[PlanNode] {
        &self.nodes
    }

    /// From whose number rows come, and to whose, in order.
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// The operator with this number.
    pub fn node(&self, id: u32) -> Option<&PlanNode> {
        self.nodes.get(self.nodes.binary_search_by_key(&id, |node| node.id).ok()?)
    }

    /// Numbers of the operators that take rows of this one.
    pub fn parents(&self, id: u32) -> impl Iterator<Item = u32> {
        self.edges.iter().filter(move |(from, _)| *from == id).map(|(_, to)| *to)
    }

    /// Numbers of the operators whose rows this one takes.
    pub fn children(&self, id: u32) -> impl Iterator<Item = u32> {
        self.edges.iter().filter(move |(_, to)| *to == id).map(|(from, _)| *from)
    }

    /// The plan as text, a line an operator: number, codegen stage or `-`, name.
    fn text(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let codegen = node.codegen.map_or_else(|| "-".to_owned(), |stage| stage.to_string());
            let _ = writeln!(text, "{} {codegen} {}", node.id, node.name);
        }
        text
    }

    /// The plan of a fact, and the number of its execution. None: the fact is none of a plan, or has none that is kept.
    pub fn of_fact(fact: &SparkFact) -> Option<(u64, Self)> {
        if fact.kind != SparkFactKind::Plan {
            return None;
        }
        let node = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let (id, codegen) = (words.next()?.parse().ok()?, words.next()?.parse().ok());
            Some(PlanNode { id, codegen, name: words.next()?.into() })
        };
        let nodes = fact.description.as_deref()?.lines().map(node).collect::<Option<_>>()?;
        let edge = |ends: &[u32]| Some((*ends.first()?, *ends.get(1)?));
        let edges = fact.refs.chunks(2).map(edge).collect::<Option<_>>()?;
        Some((fact.id.parse().ok()?, Self::new(nodes, edges).ok()?))
    }

    /// The fact of the plan, of what else `execution`'s says; of None, why, which is kept in its place.
    pub fn fact(plan: Result<&Self, String>, execution: &SparkFact) -> SparkFact {
        let fact = SparkFact {
            kind: SparkFactKind::Plan,
            name: Arc::default(),
            refs: Box::default(),
            ..execution.clone()
        };
        match plan {
            Ok(plan) => SparkFact {
                description: Some(plan.text().into()),
                refs: plan.edges.iter().flat_map(|(from, to)| [*from, *to]).collect(),
                count: plan.nodes.len() as u64,
                ..fact
            },
            Err(why) => SparkFact { name: why.into(), description: None, ..fact },
        }
    }
}

/// A name on one line, cut.
fn one_line(name: &str) -> String {
    let mut name = name.trim().replace(char::is_control, "\u{fffd}");
    let end = (0..=MAX_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or(0));
    name.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WallTime;

    fn node(id: u32, codegen: Option<u32>, name: &str) -> PlanNode {
        PlanNode { id, name: name.into(), codegen }
    }

    fn execution() -> SparkFact {
        SparkFact {
            app: "app-1".into(),
            kind: SparkFactKind::Sql,
            id: "7".into(),
            attempt: 0,
            name: "select 1".into(),
            description: None,
            status: "COMPLETED".into(),
            refs: [3].into(),
            count: 0,
            executor_cpu_ns: 0,
            deserialize_cpu_ns: 0,
            run_time_ms: 0,
            begun: Some(WallTime(5)),
            ended: Some(WallTime(6)),
            source: "http://driver:4040".into(),
            fetched: WallTime(9),
        }
    }

    #[test]
    fn a_plan_becomes_a_fact_and_a_plan_again() {
        let nodes = vec![
            node(4, Some(1), "Scan parquet db.sales "),
            node(3, Some(1), "Project"),
            node(2, None, "WholeStageCodegen (1)"),
            node(0, None, "Exchange"),
        ];
        let plan = SparkPlan::new(nodes, vec![(4, 3), (3, 0), (3, 0), (2, 0)]).expect("it is one");
        assert_eq!(plan.nodes().iter().map(|node| node.id).collect::<Vec<_>>(), [0, 3, 4]);
        assert_eq!(plan.edges(), [(3, 0), (4, 3)]);
        assert_eq!((plan.parents(4).collect(), plan.children(0).collect()), (vec![3], vec![3]));
        let fact = SparkPlan::fact(Ok(&plan), &execution());
        assert_eq!(
            fact.description.as_deref(),
            Some("0 - Exchange\n3 1 Project\n4 1 Scan parquet db.sales\n")
        );
        assert!(fact.is_bounded() && fact.ended.is_some());
        assert_eq!(SparkPlan::of_fact(&fact), Some((7, plan)));
        assert_eq!(SparkPlan::of_fact(&execution()), None);
        let none = SparkPlan::fact(Err("HTTP 500".into()), &execution());
        assert_eq!((SparkPlan::of_fact(&none), &*none.name), (None, "HTTP 500"));
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        let two = || vec![node(1, None, "Sort"), node(2, None, "Exchange")];
        let problem = |nodes, edges| SparkPlan::new(nodes, edges).expect_err("it is none");
        assert_eq!(problem([two(), two()].concat(), vec![]), PlanProblem::SameId);
        assert_eq!(problem(two(), vec![(1, 3)]), PlanProblem::LooseEdge);
        for circle in [vec![(1, 1)], vec![(1, 2), (2, 1)]] {
            assert_eq!(problem(two(), circle), PlanProblem::Circle);
        }
        let many = (0..=MAX_NODES as u32).map(|id| node(id, None, "x")).collect();
        assert_eq!(problem(many, vec![]), PlanProblem::TooLarge);
        let ends = (0..40).flat_map(|from| (0..40).map(move |to| (from, 100 + to))).collect();
        assert_eq!(problem(two(), ends), PlanProblem::TooLarge);
        let odd = SparkPlan::new(vec![node(1, Some(4_000_000), &"é\n".repeat(100))], vec![]).expect("cut");
        assert_eq!((odd.nodes()[0].codegen, odd.nodes()[0].name.contains('\n')), (None, false));
        assert!(odd.nodes()[0].name.len() <= MAX_NAME);
    }

    #[test]
    fn the_largest_plan_fits_into_a_fact_and_a_spoilt_fact_has_none() {
        let nodes = (0..MAX_NODES as u32).map(|id| node(id, Some(999), &"x".repeat(MAX_NAME))).collect();
        let plan = SparkPlan::new(nodes, (1..MAX_NODES as u32).map(|id| (id, id - 1)).collect()).unwrap();
        let fact = SparkPlan::fact(Ok(&plan), &execution());
        assert!(fact.is_bounded(), "{}", fact.bytes());
        for text in ["1", "x 1 Sort", "1 1", "1 - A\n1 - B"] {
            let spoilt = SparkFact { description: Some(text.into()), ..fact.clone() };
            assert_eq!(SparkPlan::of_fact(&spoilt), None, "{text}");
        }
        let odd = SparkFact { refs: [1, 0, 2].into(), ..fact };
        assert_eq!(SparkPlan::of_fact(&odd), None);
    }
}
