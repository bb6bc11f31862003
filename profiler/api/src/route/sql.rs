//! The route of queries of Spark SQL.

use super::{JOIN, Kind, Route, limit, own, param, samples};
use crate::Sql;

/// Queries of Spark SQL, and the operators and the plan of one.
pub static SQL: Route = samples::<Sql>(
    "/api/v1/sql",
    "sql",
    "Queries of Spark SQL by what their tasks did, and the operators and the plan of one.",
    &[
        own(param::EXECUTION, "The query of this number, with its operators and its plan.", Kind::Text),
        limit("Most queries.", 100),
        JOIN,
    ],
);
