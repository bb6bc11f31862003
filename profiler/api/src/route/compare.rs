//! The routes that compare: two runs, and two selections.

use super::{Answers, FOLD, GROUP, JOIN, Kind, METHOD_ORDER, ONLY, Route, Selects, limit, own, param};
use crate::{Compare, Diff, Format, Scale, SlowBy, Word as _};
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

/// Two selections, or slow tasks and usual ones.
pub static DIFF: Route = Route {
    path: "/api/v1/diff",
    id: "diff",
    says: "Two selections compared, or slow tasks with usual ones.",
    selects: Selects::TwoSides,
    own: &[
        own(param::FORMAT, "Form of the answer.", Kind::Formats(Format::COMPARED)),
        GROUP,
        FOLD,
        ONLY,
        own(param::SCALE, "What makes the sides comparable; task only with slow.", Kind::Words(Scale::WORDS)),
        own(param::SLOW, "A stage's slow tasks against those around the median.", Kind::Flag),
        own(param::BY, "What makes tasks slow; only with slow.", Kind::Words(SlowBy::WORDS)),
        own(param::SORT, "Methods by the size of this difference.", METHOD_ORDER),
        limit("Most methods.", 100),
        own(param::NODES, "The merged tree too.", Kind::Flag),
    ],
    answers: Answers::Formats(&["image/svg+xml", "text/plain"], SchemaGenerator::subschema_for::<Diff<'_>>),
};
