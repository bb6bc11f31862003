//! `/api/v1/sql`. What is not known is null.

use crate::{Cost, Exact, Instant, SparkOrigin, Waited};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Queries of Spark SQL, and the operators of one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Sql {
    /// How many queries.
    #[serde(default)]
    pub count: u64,
    /// How many of them the limit left out.
    #[serde(default)]
    pub cut: u64,
    /// The largest first; what tasks did whose query is not known is one, too.
    pub queries: Vec<SqlQuery>,
    /// With `execution`: the query's operators, the largest first. Null without.
    pub operators: Option<Vec<SqlOperator>>,
    /// With `execution`: the query's physical plan, with what its operators cost. Null without.
    #[serde(default)]
    pub plan: Option<SqlPlan>,
    /// Whom the names are from.
    pub spark: Option<SparkOrigin>,
}

/// A query: an execution of Spark SQL, by what its tasks did.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SqlQuery {
    /// The application's id.
    pub app: Option<String>,
    /// The application's name.
    pub app_name: Option<String>,
    /// Spark's id of the execution; null for stages with no known query.
    pub execution: Option<u64>,
    /// Its description: what was set for people, else the call site.
    pub description: Option<String>,
    /// Its jobs whose tasks were sampled.
    pub jobs: Vec<u32>,
    /// Its stages whose tasks were sampled.
    pub stages: Vec<u32>,
    /// When the first of these stages was submitted.
    pub begun: Option<Instant>,
    /// When the last of these stages ended; null while one runs.
    pub ended: Option<Instant>,
    /// What its tasks' samples weigh, and their part of all tasks'.
    #[serde(flatten)]
    pub cost: Cost,
    /// What its tasks' own threads used, by the kernel's accounts; null where it has none of them.
    pub exact: Option<Exact>,
    /// What its tasks' own threads waited for; null where waits are not sampled.
    pub waited: Option<Waited>,
}

/// What of a query is put to one operator, or to some in one loop.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SqlOperator {
    /// The operator, or those in one loop in the order in which rows go through: `Range+Project (codegen 1)`.
    pub operator: String,
    /// `operator`; `fused`: some operators of the plan in one loop; `codegen`: generated code of which the plan does not
    /// tell the operators, or too many; `around`: Spark's own work; `unknown`.
    pub of: Cow<'static, str>,
    /// Stages in which it has samples.
    pub stages: Vec<u32>,
    /// Operators of the plan that it may be, or that it is together: `id` of `plan.nodes`.
    pub nodes: Vec<u32>,
    /// Values of the label `operator` that its samples have in these stages: flame graphs are chosen by them.
    pub labels: Vec<String>,
    /// What its samples weigh, and their part of the query's.
    #[serde(flatten)]
    pub cost: Cost,
    /// Time in which its threads stood still, where that was sampled.
    pub waited_seconds: Option<f64>,
}

/// The physical plan of a query: with AQE the last that Spark reported.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SqlPlan {
    /// Its operators, by number.
    pub nodes: Vec<SqlPlanNode>,
    /// Who takes rows of whom.
    pub edges: Vec<SqlPlanEdge>,
    /// Why there are no operators; empty where there are.
    pub says: String,
}

/// An operator of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SqlPlanNode {
    /// Its number in the plan.
    pub id: u32,
    /// Its name in Spark's plans, with its table where it has one.
    pub name: String,
    /// The codegen stage that it is compiled into; null of one that is not.
    pub codegen: Option<u32>,
    /// The operator in whose generated method its code stands, and with it its samples, but for those in methods of its own.
    pub in_method_of: Option<u32>,
    /// What the samples weigh that are its alone.
    #[serde(flatten)]
    pub cost: Cost,
    /// What the samples weigh that are its or those of others: of one loop, or of one name. Each of them has all of it.
    pub shared: Cost,
    /// Time in which threads stood still for it alone, where that was sampled.
    pub waited_seconds: Option<f64>,
}

/// Rows go from one operator of a plan to another.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SqlPlanEdge {
    /// Number of the operator that gives rows.
    pub from: u32,
    /// Number of the operator that takes them.
    pub to: u32,
}
