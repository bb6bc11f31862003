//! The routes, their parameters and the fields of their answers, for the OpenAPI document. Facts only: `tests` asks
//! the routes whether it is so.

/// A route that is asked by `GET`.
pub struct Route {
    /// Path of the route, as the router has it.
    pub path: &'static str,
    /// Name of the operation, for generated clients.
    pub id: &'static str,
    /// A sentence that says what it is for.
    pub says: &'static str,
    /// Which of the common parameters the route takes.
    pub selects: Selects,
    /// Parameters of the route alone.
    pub own: &'static [Own],
    /// The body of a 200.
    pub answers: Answers,
}

/// Which of the common parameters a route takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Selects {
    /// No common parameter.
    Nothing,
    /// Every label, times, `query` and `type`.
    Samples,
    /// Those of [`Self::Samples`], and each but `type` for either side.
    TwoSides,
}

/// A route's own parameter.
pub struct Own {
    /// Name of the parameter.
    pub name: &'static str,
    /// A sentence that says what it is for.
    pub says: &'static str,
    /// Values that the parameter may have.
    pub kind: Kind,
}

/// Values of a parameter.
pub enum Kind {
    /// One of these.
    Words(&'static [&'static str]),
    /// One of the export formats.
    Formats,
    /// A whole number from 1 to this; what it is when absent.
    Number(u64, Option<u64>),
    /// 1, true, 0 or false.
    Flag,
    /// Free text.
    Text,
    /// Names of labels.
    Labels,
}

/// The body of a 200.
pub enum Answers {
    /// Text of this content type.
    Text(&'static str),
    /// A JSON object with at least these fields.
    Json(&'static [&'static str]),
    /// By `format`: these types, and JSON with these fields.
    Formats(&'static [&'static str], &'static [&'static str]),
}

const fn own(name: &'static str, says: &'static str, kind: Kind) -> Own {
    Own { name, says, kind }
}

const SELF_OR_TOTAL: Kind = Kind::Words(&["self", "total"]);
const JOIN: Own =
    own("join", "Whether Spark is asked for its names and figures.", Kind::Words(&["auto", "no"]));

/// A tree's or table's answer begins with these.
macro_rules! headed {
    ($($field:literal),*) => { &["range", "windows", "type", "window_seconds", "span", "quality", $($field),*] };
}

/// All routes of `GET`, in the order of the index.
pub const ROUTES: &[Route] = &[
    plain("/", "page", "The page.", Answers::Text("text/html")),
    plain("/healthz", "healthz", "200 while the daemon answers.", Answers::Text("text/plain")),
    plain("/readyz", "readyz", "200 once sampling has begun.", Answers::Text("text/plain")),
    plain("/metrics", "metrics", "Prometheus metrics.", Answers::Text("text/plain")),
    plain(
        "/api/v1/openapi.json",
        "openapi",
        "This document.",
        Answers::Json(&["openapi", "info", "servers", "security", "paths", "components"]),
    ),
    plain(
        "/api/v1/status",
        "status",
        "Version, host, JVMs and counters.",
        Answers::Json(&["version", "node", "time", "ready", "waiting_for", "store"]),
    ),
    samples("/api/v1/apps", "apps", "Spark applications.", &[], headed!("apps")),
    samples("/api/v1/executors", "executors", "Their executors.", &[], headed!("executors")),
    samples(
        "/api/v1/stages",
        "stages",
        "Stages: what they used, exactly and by samples.",
        &[JOIN],
        headed!("count", "stages", "spark"),
    ),
    samples(
        "/api/v1/tasks",
        "tasks",
        "The same of each task.",
        &[
            own("sort", "The largest first.", Kind::Words(&["cpu", "run_delay", "blocked", "wall", "task"])),
            own("limit", "Most rows.", Kind::Number(100_000, Some(1000))),
            JOIN,
        ],
        headed!("count", "cut", "sort", "tasks", "spark"),
    ),
    samples(
        "/api/v1/ledger",
        "ledger",
        "Exact sums by any labels.",
        &[own("by", "Labels to split by.", Kind::Labels)],
        headed!("by", "count", "ledger"),
    ),
    samples(
        "/api/v1/tax",
        "tax",
        "CPU of JVMs by thread class.",
        &[],
        headed!("source", "stage", "total", "classes", "processes", "beside"),
    ),
    Route {
        path: "/api/v1/diff",
        id: "diff",
        says: "Two selections compared, or slow tasks with usual ones.",
        selects: Selects::TwoSides,
        own: &[
            own("format", "Form of the answer.", Kind::Words(&["svg", "folded", "json"])),
            own("group", "Labels as prefix frames.", Kind::Labels),
            own(
                "scale",
                "What makes the sides comparable; task only with slow.",
                Kind::Words(&["equal", "absolute", "task"]),
            ),
            own("slow", "A stage's slow tasks against those around the median.", Kind::Flag),
            own("sort", "Methods by the size of this difference.", SELF_OR_TOTAL),
            own("limit", "Most methods.", Kind::Number(100_000, Some(100))),
            own("nodes", "The merged tree too.", Kind::Flag),
        ],
        answers: Answers::Formats(
            &["image/svg+xml", "text/plain"],
            &[
                "scale",
                "window_seconds",
                "span",
                "left",
                "right",
                "slow",
                "total",
                "cause",
                "sort",
                "methods",
                "cut",
                "diff",
            ],
        ),
    },
    samples("/api/v1/labels", "labels", "Names to select by.", &[], headed!("labels")),
    samples(
        "/api/v1/labels/{name}/values",
        "labelValues",
        "Values of one name, most sampled first.",
        &[own("limit", "Most values.", Kind::Number(100_000, Some(1000)))],
        headed!("label", "values", "cut"),
    ),
    Route {
        path: "/api/v1/flamegraph",
        id: "flamegraph",
        says: "Merged stacks.",
        selects: Selects::Samples,
        own: &[
            own("format", "Form of the answer.", Kind::Formats),
            own("unit", "What values count.", Kind::Words(&["samples", "ns"])),
            own("annotate", "Kinds of code apart, as suffixes in folded.", Kind::Flag),
            own("lines", "Source lines apart.", Kind::Flag),
            own("group", "Labels as prefix frames.", Kind::Labels),
            own("max_nodes", "The largest nodes only.", Kind::Number(10_000_000, None)),
            own("columns", "JSON by columns, for large trees.", Kind::Flag),
        ],
        answers: Answers::Formats(
            &[
                "image/svg+xml",
                "text/plain",
                "application/vnd.google.protobuf+gzip",
                "application/vnd.apache.parquet",
                "application/octet-stream",
            ],
            headed!("cut_nodes", "nodes", "total", "unit"),
        ),
    },
    samples(
        "/api/v1/top",
        "top",
        "Methods by self and total.",
        &[
            own("limit", "Most rows.", Kind::Number(100_000, Some(50))),
            own("sort", "The largest first.", SELF_OR_TOTAL),
            own("lines", "Source lines apart.", Kind::Flag),
        ],
        headed!("sort", "methods", "top"),
    ),
    samples("/api/v1/processes", "processes", "Who ran on the node.", &[], headed!("processes")),
    samples(
        "/api/v1/series",
        "series",
        "A selection over time.",
        &[
            own("step", "Length of a step, as 30s or 5m; rounded up to whole windows.", Kind::Text),
            own("by", "A series for each combination of these labels' values.", Kind::Labels),
        ],
        headed!("step_seconds", "series"),
    ),
];

const fn plain(path: &'static str, id: &'static str, says: &'static str, answers: Answers) -> Route {
    Route { path, id, says, selects: Selects::Nothing, own: &[], answers }
}

const fn samples(
    path: &'static str,
    id: &'static str,
    says: &'static str,
    own: &'static [Own],
    fields: &'static [&'static str],
) -> Route {
    Route { path, id, says, selects: Selects::Samples, own, answers: Answers::Json(fields) }
}

/// Pyroscope's older way to compare; parameters that are not known are passed over.
pub const RENDER_DIFF: Route = Route {
    path: "/pyroscope/render-diff",
    id: "renderDiff",
    says: "Two flame graphs in one layout, as Pyroscope's flamebearer.",
    selects: Selects::Nothing,
    own: &[
        own("leftQuery", "Profile type and selector.", Kind::Text),
        own("leftFrom", "A time.", Kind::Text),
        own("leftUntil", "A time.", Kind::Text),
        own("rightQuery", "Profile type and selector.", Kind::Text),
        own("rightFrom", "A time.", Kind::Text),
        own("rightUntil", "A time.", Kind::Text),
        own("maxNodes", "The largest nodes only.", Kind::Number(1 << 20, Some(8192))),
    ],
    answers: Answers::Json(&[
        "version",
        "flamebearer",
        "metadata",
        "timeline",
        "groups",
        "heatmap",
        "leftTicks",
        "rightTicks",
    ]),
};

/// Pyroscope's calls, asked by `POST`: docs/grafana.md.
pub const CALLS: &[(&str, &str)] = &[
    ("/querier.v1.QuerierService/ProfileTypes", "Profile types of a time."),
    ("/querier.v1.QuerierService/LabelNames", "Names of labels."),
    ("/querier.v1.QuerierService/LabelValues", "Values of a label."),
    ("/querier.v1.QuerierService/Series", "Label sets."),
    ("/querier.v1.QuerierService/GetProfileStats", "Since when there is something."),
    ("/querier.v1.QuerierService/SelectMergeStacktraces", "A flame graph, Pyroscope's tree form, or pprof."),
    ("/querier.v1.QuerierService/SelectMergeSpanProfile", "The same for spans: none is known."),
    ("/querier.v1.QuerierService/SelectMergeProfile", "pprof."),
    ("/querier.v1.QuerierService/SelectSeries", "Sums over time."),
    ("/querier.v1.QuerierService/Diff", "Two flame graphs in one layout."),
    ("/settings.v1.SettingsService/Get", "Settings: there are none."),
];
