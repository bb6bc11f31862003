//! The table of a block that has what Spark says of its applications.

use super::super::super::part::Part;
use super::super::table::{Column, How};
use super::super::*;
use super::Files;
use emberscope_model::{SparkFact, WallTime};

/// Writes the table, where Spark said anything.
pub(super) fn facts(part: &Part, files: &mut Files<'_>) -> Result<(), BlockError> {
    let all: Vec<&SparkFact> = part.spark.iter().collect();
    if all.is_empty() {
        return Ok(());
    }
    let refs = |fact: &SparkFact| fact.refs.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let refs: Vec<String> = all.iter().map(|fact| refs(fact)).collect();
    let text = |name, of: fn(&SparkFact) -> &str| {
        Column::text(name, How::Dictionary, all.iter().map(move |fact| of(fact)))
    };
    let number = |name, of: fn(&SparkFact) -> u64| {
        Column::long(name, How::Delta, all.iter().map(move |fact| of(fact)))
    };
    let time = |time: Option<WallTime>| time.map_or(0, |time| time.0);
    files.table(
        SPARK,
        &[
            text("app", |fact| &fact.app),
            text("kind", |fact| fact.kind.slug()),
            text("id", |fact| &fact.id),
            number("attempt", |fact| fact.attempt.into()),
            text("name", |fact| &fact.name),
            Column::maybe("description", How::Dictionary, all.iter().map(|fact| fact.description.as_deref())),
            text("status", |fact| &fact.status),
            Column::text("refs", How::Dictionary, refs.iter().map(String::as_str)),
            number("count", |fact| fact.count),
            number("executor_cpu_ns", |fact| fact.executor_cpu_ns),
            number("deserialize_cpu_ns", |fact| fact.deserialize_cpu_ns),
            number("run_time_ms", |fact| fact.run_time_ms),
            Column::long("begun_ns", How::Delta, all.iter().map(|fact| time(fact.begun))),
            Column::long("ended_ns", How::Delta, all.iter().map(|fact| time(fact.ended))),
            text("source", |fact| &fact.source),
            number("fetched_ns", |fact| fact.fetched.0),
        ],
    )
}
