//! Why a query has no answer.

use std::time::Duration;

/// Why a query cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The answer would be larger than the limit.
    #[error("the answer has more than {limit} {what}: narrow the time range or the selection")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The work took longer than it may.
    #[error("the query took longer than {} s (query-time): narrow the time range or the selection", limit.as_secs())]
    TooLong {
        /// The limit.
        limit: Duration,
    },
    /// It read more than it may.
    #[error("the query reads more than {limit} bytes of the store (query-bytes): narrow the time range")]
    TooMuch {
        /// The limit.
        limit: u64,
    },
    /// The client left, or its time was up: the work was not finished.
    #[error("nobody waits for the answer any more")]
    Unwanted,
    /// Files of the store cannot be read, or are not as they were written. The store answers again
    /// without them.
    #[error("{} cannot be read: {says}", path.display())]
    Unreadable {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        says: String,
    },
    /// Where the files come from does not answer now. Nothing is wrong with them.
    #[error("{says}")]
    Away {
        /// Who does not answer, and how.
        says: String,
    },
}
