//! `/api/v1/sql`. What is not known is null.

use crate::{Cost, Instant, SparkOrigin};
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
    /// Spark's id of the execution; null of stages of which Spark told no query.
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
}

/// What of a query is put to one operator.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SqlOperator {
    /// The value of the label `operator`.
    pub operator: String,
    /// `operator`; `codegen`: generated code that several share; `around`: Spark's own work; `unknown`.
    pub of: Cow<'static, str>,
    /// Stages in which it has samples.
    pub stages: Vec<u32>,
    /// What its samples weigh, and their part of the query's.
    #[serde(flatten)]
    pub cost: Cost,
}
