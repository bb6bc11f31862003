//! Sampling that is not kept, until the code of the processes that run can be walked.
//!
//! A daemon runs for weeks, and its first seconds count for little; a recording of ten seconds would consist of them: on a
//! machine that is busy most stacks end at the first frame, since the table of its library is not read yet.

use super::{STUCK, Worker};
use crate::PipelineError;
use emberscope_aggregate::ClockReading;
use emberscope_model::WallTime;
use emberscope_supervise::{Weight, attempt};
use std::time::{Duration, Instant};

/// Longest wait for tables: on a machine that starts a program every moment there is always one to be read.
const LONGEST: Duration = Duration::from_secs(10);
/// Shortest: runtimes are looked for every 150 ms, and tables are told every 200 ms.
const SHORTEST: Duration = Duration::from_secs(1);

impl Worker {
    /// Samples until every process has its tables, [`LONGEST`] at most, or until `stopped` says so; these samples are in windows
    /// that end before the instant that is the answer.
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub fn warm_up(&mut self, stopped: impl Fn() -> bool) -> Result<WallTime, PipelineError> {
        let begun = Instant::now();
        let ready = |worker: &Self| begun.elapsed() >= SHORTEST && worker.tables.are_all_told();
        let beat = emberscope_supervise::beat("sampler", STUCK, Weight::Vital);
        attempt(|| self.sample(&beat, |worker| stopped() || begun.elapsed() >= LONGEST || ready(worker)))??;
        tracing::info!(took = ?begun.elapsed(), complete = ready(self), "read the unwind tables of what runs");
        let now = ClockReading::take();
        let closed = self.windows.begin_anew(now);
        self.close(closed);
        Ok(now.wall)
    }
}
