//! The physical plans of SQL executions, each asked for by itself: a page of executions with their metrics would be
//! megabytes, each time.
//!
//! In: the executions that were told beside stages, and the answer before. Out: a fact for each plan. A plan of an
//! execution that has ended is asked for once; AQE changes that of one that runs. An execution without jobs has no tasks,
//! and none is asked. A driver takes 6 to 20 ms for one (Spark 3.5.9 and 4.3.0), so at most [`MAX_ASKED`] are asked at a time, for [`TIME`], the newest
//! first; the others come with the next answers. [`MAX_BYTES`] of them are in an answer. What is no plan, or too large, is a fact
//! that says why.

use super::beside::Beside;
use super::client::{AskError, Client};
use super::wire::{First, Plan};
use emberscope_model::{PlanNode, PlanProblem, SparkFact, SparkFactKind, SparkPlan, SparkStages, SparkUrl};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Plans that are asked for in one answer.
const MAX_ASKED: usize = 64;
/// Time for the plans of one answer: people wait for its stages.
const TIME: Duration = Duration::from_secs(2);
/// Bytes of plans in one answer, estimated: a plan of 12 operators is 600.
const MAX_BYTES: usize = 512 << 10;

/// Adds the plans of the executions that were told. `before`: the answer before. Out: what is missing, a sentence.
pub fn read(
    client: &Client,
    base: &SparkUrl,
    path: &str,
    before: Option<&SparkStages>,
    beside: &mut Beside,
) -> Option<String> {
    let known = before.into_iter().flat_map(|told| &told.beside);
    let known: HashMap<&str, &SparkFact> =
        known.filter(|fact| fact.kind == SparkFactKind::Plan).map(|fact| (&*fact.id, fact)).collect();
    let mut executions: Vec<SparkFact> = (beside.facts.iter())
        .filter(|fact| fact.kind == SparkFactKind::Sql && !fact.refs.is_empty())
        .cloned()
        .collect();
    executions.sort_by_key(|fact| Reverse(fact.id.parse::<u64>().ok()));
    let (until, mut asked, mut missing, mut bytes) = (Instant::now() + TIME, 0, 0_usize, 0);
    for execution in executions {
        let known = known.get(&*execution.id).copied();
        let is_final = |known: &&SparkFact| known.ended.is_some() && known.ended == execution.ended;
        let plan = match known.filter(is_final) {
            Some(known) => Some(known.clone()),
            None if asked < MAX_ASKED && Instant::now() < until => {
                asked += 1;
                // One that ran when it was read stands in where it cannot be read again.
                one(client, base, path, &execution).or_else(|| known.cloned())
            }
            None => known.cloned(),
        };
        match plan.filter(|plan| bytes + plan.bytes() <= MAX_BYTES) {
            Some(plan) => {
                bytes += plan.bytes();
                beside.push(plan);
            }
            None => missing += 1,
        }
    }
    (missing > 0).then(|| format!("Of {missing} SQL executions the plan is not read, or not yet."))
}

/// The plan of an execution. None: it could not be asked for.
fn one(client: &Client, base: &SparkUrl, path: &str, execution: &SparkFact) -> Option<SparkFact> {
    let path = format!("{path}/sql/{}?details=true&planDescription=false", execution.id);
    let plan = match client.get::<Plan>(base, &path) {
        Ok(told) => plan(told).map_err(|problem| problem.to_string()),
        Err(error @ (AskError::TooLarge | AskError::LongText | AskError::NotSpark(_))) => {
            Err(error.to_string())
        }
        Err(_) => return None,
    };
    Some(SparkPlan::fact(plan.as_ref().map_err(Clone::clone), execution))
}

/// The plan that was told.
///
/// # Errors
/// It is over a limit, or no plan.
pub fn plan(told: Plan) -> Result<SparkPlan, PlanProblem> {
    fn all<T, const N: usize>(list: First<T, N>) -> Result<Vec<T>, PlanProblem> {
        if list.left_off > 0 { Err(PlanProblem::TooLarge) } else { Ok(list.items) }
    }
    let nodes = all(told.nodes)?.into_iter().map(|node| PlanNode {
        id: node.node_id,
        name: node.node_name.0.into(),
        codegen: node.whole_stage_codegen_id.and_then(|id| id.as_u64()?.try_into().ok()),
    });
    let edges = all(told.edges)?.into_iter().map(|edge| (edge.from_id, edge.to_id));
    SparkPlan::new(nodes.collect(), edges.collect())
}
