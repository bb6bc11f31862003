//! Routes that Grafana asks as it asks Pyroscope: docs/grafana.md. Their messages are Pyroscope's.

use super::{Answers, Kind, Route, Selects, object, own};
use schemars::{Schema, SchemaGenerator};

/// Pyroscope's older way to compare; parameters that are not known are passed over.
pub static RENDER_DIFF: Route = Route {
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
    answers: Answers::Json(flamebearer),
};

/// Pyroscope's calls, asked by `POST`: docs/grafana.md.
pub static CALLS: &[(&str, &str)] = &[
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

fn flamebearer(_: &mut SchemaGenerator) -> Schema {
    object(&[
        "version",
        "flamebearer",
        "metadata",
        "timeline",
        "groups",
        "heatmap",
        "leftTicks",
        "rightTicks",
    ])
}
