//! The routes, their parameters and the types of their answers: the router, the command line and the OpenAPI document
//! take them from here. Tests of `serve` ask the routes whether it is so.

use crate::{
    Apps, Executors, Format, Join, LabelValues, Labels, Ledger, LoginLink, MethodOrder, Pauses, Processes,
    Series, StageOrder, Stages, Status, TaskOrder, Tasks, Tax, Top, Word,
};
use emberscope_model::{COUNT, SampleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

mod compare;
mod making;
pub mod param;
mod pyroscope;
mod runs;
mod sql;

pub use compare::{COMPARE, DIFF};
use making::{plain, samples, text};
pub use pyroscope::{CALLS, RENDER_DIFF};
pub use runs::{JOB_METRICS, RUNS};
pub use sql::SQL;

/// A route that is asked by `GET`.
pub struct Route {
    /// As the router has it.
    pub path: &'static str,
    /// For generated clients.
    pub id: &'static str,
    /// A sentence.
    pub says: &'static str,
    /// Which of the common parameters it takes.
    pub selects: Selects,
    /// Its own parameters.
    pub own: &'static [Own],
    /// What 200 carries.
    pub answers: Answers,
}

/// The common parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Selects {
    /// None.
    Nothing,
    /// Every label, times, `query` and `type`.
    Samples,
    /// The same, and each but `type` for either side.
    TwoSides,
}

/// A route's own parameter.
pub struct Own {
    /// Its name.
    pub name: &'static str,
    /// A sentence.
    pub says: &'static str,
    /// Its values.
    pub kind: Kind,
}

/// Values of a parameter.
pub enum Kind {
    /// One of these.
    Words(&'static [&'static str]),
    /// One of these formats.
    Formats(&'static [Format]),
    /// A whole number from 1 to this; what it is when absent.
    Number(u64, Option<u64>),
    /// 1, true, 0 or false.
    Flag,
    /// Free text.
    Text,
    /// Names of labels.
    Labels,
}

/// The schema of an answer's type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The body of a 200.
pub enum Answers {
    /// Text of this type.
    Text(&'static str),
    /// A JSON object of this type.
    Json(SchemaOf),
    /// By `format`: these types, and JSON.
    Formats(&'static [&'static str], SchemaOf),
}

impl Answers {
    const fn json<T: JsonSchema>() -> Self {
        Self::Json(SchemaGenerator::subschema_for::<T>)
    }
}

impl Route {
    /// The largest number that a parameter takes, and what it is when absent; None where it takes no number.
    pub fn number(&self, name: &str) -> Option<(u64, Option<u64>)> {
        self.own.iter().filter(|own| own.name == name).find_map(|own| match own.kind {
            Kind::Number(most, usual) => Some((most, usual)),
            _ => None,
        })
    }
}

const fn own(name: &'static str, says: &'static str, kind: Kind) -> Own {
    Own { name, says, kind }
}

/// Of CPU time; other kinds of samples have their own for its nanoseconds.
const UNITS: &[&str] = &[COUNT.name, SampleKind::Cpu.facts().unit];
const METHOD_ORDER: Kind = Kind::Words(MethodOrder::WORDS);
const JOIN: Own =
    own(param::JOIN, "Whether Spark is asked for its names and figures.", Kind::Words(Join::WORDS));
const LINES: Own = own(param::LINES, "Source lines apart.", Kind::Flag);
const GROUP: Own = own(param::GROUP, "Labels as prefix frames.", Kind::Labels);

const FOLD: Own = own(param::FOLD, "The frames that all tasks share, down to Task.run, as one.", Kind::Flag);
const ONLY: Own =
    own(param::ONLY, "Frames whose names begin with one of these alone, with commas between.", Kind::Text);

const fn limit(says: &'static str, usual: u64) -> Own {
    own(param::LIMIT, says, Kind::Number(100_000, Some(usual)))
}

/// The page.
pub static PAGE: Route = text("/", "page", "The page.", "text/html");
/// Whether sampling goes on.
pub static HEALTHZ: Route = text("/healthz", "healthz", "200 while the daemon answers.", "text/plain");
/// Whether sampling has begun.
pub static READYZ: Route = text("/readyz", "readyz", "200 once sampling has begun.", "text/plain");
/// For Prometheus.
pub static METRICS: Route = text("/metrics", "metrics", "Prometheus metrics.", "text/plain");
/// The document that this table is in.
pub static OPENAPI: Route =
    plain("/api/v1/openapi.json", "openapi", "This document.", Answers::Json(document));
/// The daemon's state.
pub static STATUS: Route =
    plain("/api/v1/status", "status", "Version, host, JVMs and counters.", Answers::json::<Status>());
/// Spark applications.
pub static APPS: Route = samples::<Apps>("/api/v1/apps", "apps", "Spark applications.", &[]);
/// Executors.
pub static EXECUTORS: Route = samples::<Executors>("/api/v1/executors", "executors", "Their executors.", &[]);
/// Stages.
pub static STAGES: Route = samples::<Stages>(
    "/api/v1/stages",
    "stages",
    "Stages: what they used, exactly and by samples.",
    &[
        own(param::SORT, "The largest first.", Kind::Words(StageOrder::WORDS)),
        own(param::LIMIT, "Most rows; all when absent.", Kind::Number(100_000, None)),
        JOIN,
    ],
);
/// Tasks.
pub static TASKS: Route = samples::<Tasks>(
    "/api/v1/tasks",
    "tasks",
    "The same of each task.",
    &[own(param::SORT, "The largest first.", Kind::Words(TaskOrder::WORDS)), limit("Most rows.", 1000), JOIN],
);
/// Exact sums.
pub static LEDGER: Route = samples::<Ledger>(
    "/api/v1/ledger",
    "ledger",
    "Exact sums by any labels.",
    &[own(param::BY, "Labels to split by.", Kind::Labels)],
);
/// The tax of JVMs.
pub static TAX: Route = samples::<Tax>("/api/v1/tax", "tax", "CPU of JVMs by thread class.", &[]);
/// Names of labels.
pub static LABELS: Route = samples::<Labels>("/api/v1/labels", "labels", "Names to select by.", &[]);
/// Values of a label.
pub static LABEL_VALUES: Route = samples::<LabelValues>(
    "/api/v1/labels/{name}/values",
    "labelValues",
    "Values of one name, most sampled first.",
    &[limit("Most values.", 1000)],
);
/// Merged stacks.
pub static FLAMEGRAPH: Route = Route {
    path: "/api/v1/flamegraph",
    id: "flamegraph",
    says: "Merged stacks.",
    selects: Selects::Samples,
    own: &[
        own(param::FORMAT, "Form of the answer.", Kind::Formats(Format::ALL)),
        own(param::UNIT, "What values count.", Kind::Words(UNITS)),
        own(
            param::ANNOTATE,
            "Kinds of code apart, as suffixes in folded; and calls that only hand on.",
            Kind::Flag,
        ),
        LINES,
        GROUP,
        FOLD,
        ONLY,
        own(param::MAX_NODES, "The largest nodes only.", Kind::Number(10_000_000, None)),
        own(param::COLUMNS, "JSON by columns, for large trees.", Kind::Flag),
    ],
    answers: Answers::Formats(
        &[
            "image/svg+xml",
            "text/plain",
            "application/vnd.google.protobuf+gzip",
            "application/vnd.apache.parquet",
            "application/octet-stream",
        ],
        crate::tree::schema,
    ),
};
/// Methods.
pub static TOP: Route = samples::<Top<'_>>(
    "/api/v1/top",
    "top",
    "Methods by self and total.",
    &[limit("Most rows.", 50), own(param::SORT, "The largest first.", METHOD_ORDER), LINES],
);
/// Processes.
pub static PROCESSES: Route =
    samples::<Processes>("/api/v1/processes", "processes", "Who ran on the node.", &[]);
const LONGEST: &[Own] = &[limit("Most pauses, the longest.", 1000)];
/// Pauses of JVMs.
pub static PAUSES: Route = samples::<Pauses>("/api/v1/pauses", "pauses", "When JVMs stood still.", LONGEST);
/// Samples over time.
pub static SERIES: Route = samples::<Series>(
    "/api/v1/series",
    "series",
    "A selection over time.",
    &[
        own(param::STEP, "Length of a step, as 30s or 5m; rounded up to whole windows.", Kind::Text),
        own(param::BY, "A series for each combination of these labels' values.", Kind::Labels),
    ],
);

/// All routes of `GET`, in the order of the index.
pub static ROUTES: [&Route; 24] = [
    &PAGE,
    &HEALTHZ,
    &READYZ,
    &METRICS,
    &OPENAPI,
    &STATUS,
    &APPS,
    &EXECUTORS,
    &STAGES,
    &TASKS,
    &SQL,
    &LEDGER,
    &TAX,
    &DIFF,
    &LABELS,
    &LABEL_VALUES,
    &FLAMEGRAPH,
    &TOP,
    &PROCESSES,
    &SERIES,
    &PAUSES,
    &RUNS,
    &JOB_METRICS,
    &COMPARE,
];

/// What makes a link that logs a browser in, asked by `POST`.
pub static LOGIN: Route = plain(
    "/api/v1/login",
    "login_link",
    "Makes such a code; wants the full token, or the Unix socket.",
    Answers::json::<LoginLink>(),
);

fn document(_: &mut SchemaGenerator) -> Schema {
    object(&["openapi", "info", "servers", "security", "paths", "components"])
}

/// An object with these fields, of which no more is said.
fn object(fields: &[&str]) -> Schema {
    let properties: Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({}))).collect();
    json_schema!({ "type": "object", "required": fields, "properties": properties })
}
