//! The route of a job's runs.

use super::{Kind, Route, limit, own, param, samples};
use crate::Runs;

/// Runs of jobs.
pub static RUNS: Route = samples::<Runs>(
    "/api/v1/runs",
    "runs",
    "Runs of jobs, and where their CPU time changed. Without times: all that are kept.",
    &[
        own(param::JOB, "Runs of this job alone: the name of its applications.", Kind::Text),
        limit("Most runs, the last ones.", 1000),
    ],
);
