//! The route of a job's runs.

use super::{Answers, Kind, Own, Route, Selects, limit, own, param, samples};
use crate::Runs;

const JOB: Own = own(param::JOB, "Runs of this job alone: the name of its applications.", Kind::Text);

/// Runs of jobs.
pub static RUNS: Route = samples::<Runs>(
    "/api/v1/runs",
    "runs",
    "Runs of jobs, and where their CPU time changed. Without times: all that are kept.",
    &[JOB, limit("Most runs, the last ones.", 1000)],
);

/// The last run of each job beside what is usual.
pub static JOB_METRICS: Route = Route {
    path: "/api/v1/runs/metrics",
    id: "job_metrics",
    says: "The last run of each job beside what is usual, as Prometheus metrics.",
    selects: Selects::Samples,
    own: &[JOB],
    answers: Answers::Text("text/plain"),
};
