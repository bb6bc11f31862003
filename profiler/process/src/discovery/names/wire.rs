//! The shapes of Spark's REST answers, as little of them as is kept.
//!
//! Fields by core/src/main/scala/org/apache/spark/status/api/v1/api.scala and sql/core's
//! status/api/v1/sql/api.scala; the same in 3.5.9 and 4.3.0, seen on both. Lists and texts are cut while
//! they are read; what an older Spark does not say is 0 or empty.

use emberscope_target::spark_words::{Words, count};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// At most `N` of a list, the first; how many were left off is counted.
#[derive(Debug)]
pub struct First<T, const N: usize> {
    /// The first of the list.
    pub items: Vec<T>,
    /// How many came after them.
    pub left_off: usize,
}

impl<T, const N: usize> Default for First<T, N> {
    fn default() -> Self {
        Self { items: Vec::new(), left_off: 0 }
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for First<T, N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct List<T, const N: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for List<T, N> {
            type Value = First<T, N>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<First<T, N>, A::Error> {
                let mut list = First::default();
                while list.items.len() < N {
                    match seq.next_element()? {
                        Some(item) => list.items.push(item),
                        None => return Ok(list),
                    }
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    list.left_off += 1;
                }
                Ok(list)
            }
        }
        from.deserialize_seq(List(PhantomData))
    }
}

/// `ApplicationInfo`.
#[derive(Debug, Deserialize)]
pub struct App {
    pub id: String,
    #[serde(default)]
    pub attempts: First<AppAttempt, 64>,
}

/// `ApplicationAttemptInfo`; newest first (ApplicationListResource, HistoryServer).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppAttempt {
    #[serde(default)]
    pub attempt_id: Option<String>,
    #[serde(default)]
    pub completed: bool,
    #[serde(default)]
    pub start_time: Words,
}

/// `StageData`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    pub stage_id: u32,
    pub attempt_id: u32,
    pub status: Words,
    #[serde(default, deserialize_with = "count")]
    pub num_tasks: u64,
    #[serde(default)]
    pub submission_time: Words,
    #[serde(default)]
    pub completion_time: Words,
    #[serde(default, deserialize_with = "count")]
    pub executor_cpu_time: u64,
    #[serde(default, deserialize_with = "count")]
    pub executor_deserialize_cpu_time: u64,
    #[serde(default, deserialize_with = "count")]
    pub executor_run_time: u64,
    #[serde(default)]
    pub name: Words,
    #[serde(default)]
    pub description: Words,
}

/// `JobData`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub job_id: u32,
    #[serde(default)]
    pub name: Words,
    #[serde(default)]
    pub description: Words,
    #[serde(default)]
    pub status: Words,
    #[serde(default, deserialize_with = "count")]
    pub num_tasks: u64,
    #[serde(default)]
    pub submission_time: Words,
    #[serde(default)]
    pub completion_time: Words,
    #[serde(default)]
    pub stage_ids: First<u32, 1000>,
}

/// `ExecutionData`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    pub id: u64,
    #[serde(default)]
    pub description: Words,
    #[serde(default)]
    pub status: Words,
    #[serde(default)]
    pub submission_time: Words,
    #[serde(default, deserialize_with = "count")]
    pub duration: u64,
    #[serde(default)]
    pub running_job_ids: First<u32, 1000>,
    #[serde(default)]
    pub success_job_ids: First<u32, 1000>,
    #[serde(default)]
    pub failed_job_ids: First<u32, 1000>,
}

/// `ApplicationEnvironmentInfo`, of which Spark's own properties are read: each is a list of its name and its value.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    #[serde(default)]
    pub spark_properties: First<(Words, Words), 2000>,
}

/// `ExecutionData` with details, as its plan: metrics, and Spark 4's `desc` with columns and conditions, are not read.
#[derive(Debug, Deserialize)]
pub struct Plan {
    #[serde(default)]
    pub nodes: First<Node, 1000>,
    #[serde(default)]
    pub edges: First<Edge, 1000>,
}

/// `Node`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    pub node_id: u32,
    #[serde(default)]
    pub node_name: Words,
    /// Any number: one that is none of a codegen stage is no reason to have no plan.
    #[serde(default)]
    pub whole_stage_codegen_id: Option<serde_json::Number>,
}

/// `SparkPlanGraphEdge`: from who gives rows to who takes them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    pub from_id: u32,
    pub to_id: u32,
}

/// `ExecutorSummary`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Executor {
    pub id: Words,
    #[serde(default)]
    pub host_port: Words,
    #[serde(default)]
    pub is_active: bool,
    #[serde(default, deserialize_with = "count")]
    pub total_cores: u64,
    #[serde(default)]
    pub add_time: Words,
    #[serde(default)]
    pub remove_time: Words,
    #[serde(default)]
    pub remove_reason: Words,
}

/// `TaskData`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub task_id: u64,
    pub index: u32,
    #[serde(default)]
    pub attempt: u32,
    #[serde(default)]
    pub launch_time: Words,
    #[serde(default)]
    pub duration: Option<i64>,
    #[serde(default)]
    pub executor_id: Words,
    #[serde(default)]
    pub host: Words,
    #[serde(default)]
    pub status: Words,
    #[serde(default)]
    pub speculative: bool,
    #[serde(default)]
    pub task_metrics: Option<TaskMetrics>,
}

/// `TaskMetrics`; absent until the first heartbeat.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskMetrics {
    #[serde(default, deserialize_with = "count")]
    pub executor_cpu_time: u64,
    #[serde(default, deserialize_with = "count")]
    pub executor_deserialize_cpu_time: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_numbers_are_bounded() {
        let list: First<u32, 3> = serde_json::from_str("[1,2,3,4,{}]").unwrap();
        assert_eq!((list.items, list.left_off), (vec![1, 2, 3], 2));
        let metrics = r#"{"executorCpuTime": -1, "executorDeserializeCpuTime": null}"#;
        let metrics: TaskMetrics = serde_json::from_str(metrics).unwrap();
        assert_eq!((metrics.executor_cpu_time, metrics.executor_deserialize_cpu_time), (0, 0));
        assert!(serde_json::from_str::<TaskMetrics>(r#"{"executorCpuTime": "1"}"#).is_err());
    }
}
