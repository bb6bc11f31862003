//! The operators of one query: what each of them costs, and the plan with these figures.
//!
//! In: the samples of the query's stages by what their frames tell, and its plan, where Spark told one. Out: a row for each operator, or
//! for those in one loop ([`emberscope_model::PlanOperators`]), and the plan's nodes. Which part of the plan a stage runs is told by the codegen
//! stages that it has samples of. What a Python worker did is its stage's Python operator's where the stage has one alone,
//! else the plan's. Time in which threads stood still is told beside CPU time, where it was sampled.

use crate::error::ApiError;
use crate::figures::Samples;
use emberscope_api::{SqlOperator, SqlPlan, SqlPlanEdge, SqlPlanNode, SqlQuery};
use emberscope_model::{
    LabelKey, MatchOp, Matcher, Operator, Placed, PlacedAs, PlanOperators, Query, SampleKind, SparkFact,
    SparkPlan,
};
use emberscope_store::{OperatorSum, Store, operator_sums};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What Spark told of a query's plan.
pub struct PlanTold {
    plan: Option<SparkPlan>,
    says: String,
}

impl PlanTold {
    /// The plan of a fact, or why there is none.
    pub fn of(fact: Option<&SparkFact>) -> Self {
        let plan = fact.and_then(SparkPlan::of_fact).map(|(_, plan)| plan);
        let says = match (&plan, fact) {
            (Some(_), _) => String::new(),
            (None, Some(fact)) if !fact.name.is_empty() => format!("The plan is not kept: {}.", fact.name),
            (None, Some(_)) => "The plan that is kept is none.".to_owned(),
            (None, None) => "Spark gave no plan of this query, or it is not read yet.".to_owned(),
        };
        Self { plan, says }
    }
}

/// What is put to one thing.
#[derive(Default)]
struct Share {
    sum: Samples,
    waited: Samples,
    stages: BTreeSet<u32>,
    labels: BTreeSet<String>,
}

impl Share {
    fn add(&mut self, other: &Self) {
        self.sum.add(other.sum.count, other.sum.weight);
        self.waited.add(other.waited.count, other.waited.weight);
        self.stages.extend(&other.stages);
        self.labels.extend(other.labels.iter().cloned());
    }
}

/// What samples of a query are put to.
struct Shares(BTreeMap<Placed, Share>);

impl Shares {
    /// Puts samples to what they work for, stage by stage.
    fn put(
        &mut self,
        sums: &[OperatorSum],
        plan: Option<&PlanOperators<'_>>,
        of: fn(&mut Share) -> &mut Samples,
    ) {
        let mut stages: BTreeMap<&str, Vec<&OperatorSum>> = BTreeMap::new();
        for sum in sums {
            stages.entry(&sum.value).or_default().push(sum);
        }
        for (stage, sums) in stages {
            let codegen: BTreeSet<u32> = sums.iter().filter_map(|sum| sum.codegen).collect();
            let part = plan.and_then(|plan| plan.part(&codegen));
            let python = python_of(&sums, plan, part);
            for sum in sums {
                let operator = match sum.operator {
                    Operator::Around(Operator::PYTHON) => python.map_or(sum.operator, Operator::Named),
                    operator => operator,
                };
                let placed = match plan {
                    Some(plan) => plan.place(operator, sum.codegen, part),
                    None => Placed::by_frames(operator),
                };
                let share = self.0.entry(placed).or_default();
                of(share).add(sum.count, sum.weight);
                share.stages.extend(stage.parse::<u32>().ok());
                share.labels.insert(sum.operator.name().into_owned());
            }
        }
    }

    /// The rows, the largest first. `unknown` is always told.
    fn rows(&self, kind: SampleKind, all: u64) -> Vec<SqlOperator> {
        let mut named: BTreeMap<(PlacedAs, &str), (Share, BTreeSet<u32>)> = BTreeMap::new();
        named.entry((PlacedAs::Unknown, Operator::UNKNOWN)).or_default();
        for (placed, share) in &self.0 {
            let (sum, nodes) = named.entry((placed.of, &placed.name)).or_default();
            sum.add(share);
            nodes.extend(&placed.nodes);
        }
        let row =
            |((of, operator), (share, nodes)): ((PlacedAs, &str), (Share, BTreeSet<u32>))| SqlOperator {
                operator: operator.to_owned(),
                of: of.slug().into(),
                stages: share.stages.into_iter().collect(),
                nodes: nodes.into_iter().collect(),
                labels: share.labels.into_iter().collect(),
                cost: share.sum.cost(kind, all),
                waited_seconds: seconds(share.waited),
            };
        let mut rows: Vec<SqlOperator> = named.into_iter().map(row).collect();
        rows.sort_by_key(|row| Reverse(row.cost.amount.samples));
        rows
    }

    /// The plan's nodes, with what is put to each.
    fn nodes(
        &self,
        (plan, operators): (&SparkPlan, &PlanOperators<'_>),
        kind: SampleKind,
        all: u64,
    ) -> Vec<SqlPlanNode> {
        let node = |node: &emberscope_model::PlanNode| {
            let (mut own, mut shared) = (Share::default(), Share::default());
            for (placed, share) in self.0.iter().filter(|(placed, _)| placed.nodes.contains(&node.id)) {
                if placed.nodes.len() == 1 { &mut own } else { &mut shared }.add(share);
            }
            SqlPlanNode {
                id: node.id,
                name: (*node.name).to_owned(),
                codegen: node.codegen,
                in_method_of: operators.method_of(node.id),
                cost: own.sum.cost(kind, all),
                shared: shared.sum.cost(kind, all),
                waited_seconds: seconds(own.waited),
            }
        };
        plan.nodes().iter().map(node).collect()
    }
}

/// Of no wait at all nothing is known: waits may not have been sampled.
fn seconds(waited: Samples) -> Option<f64> {
    (waited.weight > 0).then(|| waited.weight as f64 / 1e9)
}

/// The Python operator that a stage's workers work for, where it can be told.
fn python_of(
    sums: &[&OperatorSum],
    plan: Option<&PlanOperators<'_>>,
    part: Option<u32>,
) -> Option<&'static str> {
    let seen: BTreeSet<&'static str> = (sums.iter())
        .filter_map(|sum| match sum.operator {
            Operator::Named(name) if Operator::is_python(name) => Some(name),
            _ => None,
        })
        .collect();
    match seen.len() {
        1 => seen.into_iter().next(),
        _ => plan.and_then(|plan| plan.python(part)),
    }
}

/// The samples of a kind of a query's stages, by what their frames tell.
fn sums(
    store: &dyn Store,
    query: &Query,
    of: &SqlQuery,
    kind: SampleKind,
) -> Result<Vec<OperatorSum>, ApiError> {
    let mut query = Query { group: vec![LabelKey::Stage], kind, ..query.clone() };
    let is = |key, values| Matcher { key, op: MatchOp::In(values) };
    query.selection.matchers.push(is(LabelKey::App, vec![of.app.clone().unwrap_or_default()]));
    query.selection.matchers.push(is(LabelKey::Stage, of.stages.iter().map(u32::to_string).collect()));
    Ok(operator_sums(&store.merge(&query)?.tree, LabelKey::Stage))
}

/// The operators of a query, and its plan.
///
/// # Errors
/// As the store's, for the samples of its stages.
pub fn costs(
    store: &dyn Store,
    query: &Query,
    of: &SqlQuery,
    told: PlanTold,
) -> Result<(Vec<SqlOperator>, SqlPlan), ApiError> {
    let plan = told.plan.as_ref().map(PlanOperators::new);
    let mut shares = Shares(BTreeMap::new());
    shares.put(&sums(store, query, of, query.kind)?, plan.as_ref(), |share| &mut share.sum);
    if query.kind == SampleKind::Cpu {
        shares.put(&sums(store, query, of, SampleKind::OffCpu)?, plan.as_ref(), |share| &mut share.waited);
    }
    let all = shares.0.values().map(|share| share.sum.count).fold(0, u64::saturating_add);
    let edge = |(from, to): &(u32, u32)| SqlPlanEdge { from: *from, to: *to };
    let drawn = SqlPlan {
        nodes: told.plan.iter().zip(&plan).flat_map(|plan| shares.nodes(plan, query.kind, all)).collect(),
        edges: told.plan.iter().flat_map(|plan| plan.edges()).map(edge).collect(),
        says: told.says,
    };
    Ok((shares.rows(query.kind, all), drawn))
}
