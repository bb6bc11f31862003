//! The door of the fuzz target `driver_rest` to the readers of Spark's answers. Fuzz targets are compiled with debug
//! assertions, as tests are; the daemon is not, and has none of this.

use super::beside::MAX_EXECUTORS;
use super::fetch::{MAX_JOBS, MAX_STAGES};
use super::plans::plan;
use super::wire::{App, Execution, Executor, First, Job, Plan, Stage, Task};
use crate::discovery::rest::{MAX_APPS, Server, parse};
use emberscope_target::spark_words::{MAX_WORDS, Words};
use serde::de::DeserializeOwned;

/// What is read, by the number that [`read`] takes.
pub const KINDS: [&str; 9] =
    ["applications", "worker", "app", "stages", "jobs", "sql", "tasks", "executors", "plan"];

/// Reads a body as one of [`KINDS`]; what is kept of it is within the limits.
pub fn read(kind: usize, body: &[u8]) {
    match kind {
        0 => assert!(parse(Server::Driver, body).len() <= MAX_APPS),
        1 => assert!(parse(Server::Worker, body).len() <= MAX_APPS),
        2 => {
            if let Ok(app) = serde_json::from_slice::<App>(body) {
                app.attempts.items.iter().for_each(|attempt| short(&attempt.start_time));
            }
        }
        3 => each::<Stage, MAX_STAGES>(body, |stage| {
            let kept = [&stage.name, &stage.description, &stage.status, &stage.submission_time];
            kept.into_iter().for_each(short);
        }),
        4 => each::<Job, MAX_JOBS>(body, |job| {
            assert!(job.stage_ids.items.len() <= 1000);
            [&job.name, &job.description, &job.status].into_iter().for_each(short);
        }),
        5 => each::<Execution, 500>(body, |execution| short(&execution.description)),
        6 => each::<Task, 1000>(body, |task| {
            [&task.host, &task.executor_id, &task.launch_time].into_iter().for_each(short);
        }),
        7 => each::<Executor, MAX_EXECUTORS>(body, |executor| {
            let kept = [&executor.id, &executor.host_port, &executor.remove_reason];
            kept.into_iter().for_each(short);
        }),
        _ => {
            if let Some(plan) = serde_json::from_slice::<Plan>(body).ok().and_then(|told| plan(told).ok()) {
                assert!(plan.nodes().iter().all(|node| node.name.len() <= MAX_WORDS));
                assert!(plan.nodes().len() <= 400 && plan.edges().len() <= 500);
            }
        }
    }
}

fn each<T: DeserializeOwned, const N: usize>(body: &[u8], look: impl Fn(&T)) {
    if let Ok(list) = serde_json::from_slice::<First<T, N>>(body) {
        assert!(list.items.len() <= N);
        list.items.iter().for_each(look);
    }
}

fn short(words: &Words) {
    assert!(words.0.len() <= MAX_WORDS);
    let _ = (words.some(), words.time());
}
