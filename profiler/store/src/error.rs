//! Why a query has no answer.

use emberscope_model::LabelKey;
use std::time::Duration;

/// Why a query cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The answer would be larger than the limit.
    #[error("the answer has more than {limit} {what}: narrow the time range or the selection")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many of it there may be.
        limit: usize,
    },
    /// The work took longer than it may.
    #[error("the query took longer than {} s (query-time): narrow the time range or the selection", limit.as_secs())]
    TooLong {
        /// How long the work may take.
        limit: Duration,
    },
    /// The query read more of the store than it may.
    #[error("the query reads more than {limit} bytes of the store (query-bytes): narrow the time range")]
    TooMuch {
        /// How many bytes a query may read.
        limit: u64,
    },
    /// The question names operators, which stacks tell, and is answered without these.
    #[error(
        "`operator` needs stacks: flame graphs, top, diff, series and the values of labels can select by it, this cannot"
    )]
    WithoutStacks,
    /// Numbers of jobs and executions, which each application has of its own, were asked for without its name.
    #[error("`{}` is a number within an application, and there are several here: name one (`app`)", key.name())]
    OfWhichApp {
        /// The label.
        key: LabelKey,
    },
    /// The client left, or its time was up: the work was not finished.
    #[error("nobody waits for the answer any more")]
    Unwanted,
    /// Files of the store cannot be read, or are not as they were written. The store answers again
    /// without them.
    #[error("{} cannot be read: {says}", path.display())]
    Unreadable {
        /// The file, or the directory of the block; empty: it is no longer there to be set aside.
        path: std::path::PathBuf,
        /// What is wrong with it.
        says: String,
    },
    /// Where the files come from does not answer now. Nothing is wrong with them.
    #[error("{says}")]
    Away {
        /// Who does not answer, and how.
        says: String,
    },
}
