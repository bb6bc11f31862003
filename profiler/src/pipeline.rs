//! The only place that knows every stage.

use crate::cli::Lifecycle;
use crate::config::{DaemonConfig, RecordConfig, SelectError};
use crate::model::Answer;

/// Why sampling cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The choice of a recording fits nothing.
    #[error(transparent)]
    Select(#[from] SelectError),
}

/// Samples and answers until the end is asked for.
pub fn run_daemon(config: DaemonConfig, life: Lifecycle) -> Result<(), PipelineError> {
    tracing::info!(hz = config.hz.get(), listen = %config.listen, "started");
    life.ready();
    life.sleep(std::time::Duration::MAX);
    Ok(())
}

/// Samples for a while, at most until the end is asked for.
pub fn record(config: RecordConfig, life: Lifecycle) -> Result<Answer, PipelineError> {
    life.sleep(config.duration);
    config.selection([])?;
    Ok(Answer {
        tree: crate::model::Tree { nodes: Vec::new() },
        range: crate::model::TimeRange { from: crate::model::WallTime(0), until: crate::model::WallTime(0) },
        windows: 0,
        quality: crate::model::Quality::default(),
    })
}
