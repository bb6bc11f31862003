//! The route that compares two runs.

use super::{Answers, JOIN, Kind, Route, Selects, limit, own, param};
use crate::Compare;
use schemars::SchemaGenerator;

/// Two runs compared.
pub static COMPARE: Route = Route {
    path: "/api/v1/compare",
    id: "compare",
    says: "Two runs of a job compared: queries, stages, operators and methods, put side by side by what they are.",
    selects: Selects::TwoSides,
    own: &[
        own(param::FAIL_OVER, "Judge what grew by more than so many percent: 10 or 10%.", Kind::Text),
        limit("Most rows of each table.", 100),
        JOIN,
    ],
    answers: Answers::Json(SchemaGenerator::subschema_for::<Compare<'_>>),
};
