//! The answers of querier.v1.QuerierService, by hand: field numbers and names are those of
//! Pyroscope's `querier/v1/querier.proto` and `types/v1/types.proto` (module
//! github.com/grafana/pyroscope/api v1.6.0).
//!
//! JSON is written in camelCase with 64-bit integers as text and default values left out, as
//! protobuf's JSON mapping does.

use super::json;
use emberscope_export::pprof::Profile;
use serde::Serialize;

/// The profile types there are.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileTypesResponse {
    /// The profile types.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile_types: Vec<ProfileType>,
}

/// A profile type, by its id and by parts.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileType {
    /// The id: `name:sample_type:sample_unit:period_type:period_unit`.
    #[prost(string, tag = "1")]
    #[serde(rename = "ID")]
    pub id: String,
    /// What was measured: `process_cpu`.
    #[prost(string, tag = "2")]
    pub name: String,
    /// What a value counts: `cpu`.
    #[prost(string, tag = "4")]
    pub sample_type: String,
    /// Unit of a value: `nanoseconds`.
    #[prost(string, tag = "5")]
    pub sample_unit: String,
    /// What a sample was taken every so much of.
    #[prost(string, tag = "6")]
    pub period_type: String,
    /// Unit of that: `nanoseconds`.
    #[prost(string, tag = "7")]
    pub period_unit: String,
}

/// LabelNamesResponse and LabelValuesResponse, which are alike.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamesResponse {
    /// Names, or values, in order.
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// The label sets there are.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeriesResponse {
    /// The label sets, in order.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels_set: Vec<Labels>,
}

/// A label set of a series.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Labels {
    /// The labels, sorted by name.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<LabelPair>,
}

/// A label: a name and a value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelPair {
    /// Name of the label.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Value of the label.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// One merged profile, in the form that was asked for.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectMergeStacktracesResponse {
    /// The profile as a flame graph; left out when there is no sample.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flamegraph: Option<FlameGraph>,
    /// The profile as Pyroscope's tree.
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "json::as_base64", skip_serializing_if = "Vec::is_empty")]
    pub tree: Vec<u8>,
    /// The profile as pprof.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pprof: Option<PprofProfile>,
}

/// One merged profile of spans.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectMergeSpanProfileResponse {
    /// The profile as a flame graph; left out when there is no sample.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flamegraph: Option<FlameGraph>,
    /// The profile as Pyroscope's tree.
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "json::as_base64", skip_serializing_if = "Vec::is_empty")]
    pub tree: Vec<u8>,
}

/// Two profiles compared, as one graph.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffResponse {
    /// The comparison as a flame graph.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flamegraph: Option<FlameGraphDiff>,
}

/// Two call trees laid out as bars.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlameGraphDiff {
    /// Functions; the first is `total`.
    #[prost(string, repeated, tag = "1")]
    pub names: Vec<String>,
    /// Rows of bars, the root's first: seven numbers a bar, gap, total and self of the left side, the same of
    /// the right, index of the name.
    #[prost(message, repeated, tag = "2")]
    pub levels: Vec<Level>,
    /// The values of both roots together.
    #[prost(int64, tag = "3")]
    #[serde(serialize_with = "json::as_text", skip_serializing_if = "json::is_default")]
    pub total: i64,
    /// The largest value of a function by itself, on either side.
    #[prost(int64, tag = "4")]
    #[serde(serialize_with = "json::as_text", skip_serializing_if = "json::is_default")]
    pub max_self: i64,
    /// The value of the left root, in the type's unit.
    #[prost(int64, tag = "5")]
    #[serde(serialize_with = "json::as_text", skip_serializing_if = "json::is_default")]
    pub left_ticks: i64,
    /// The value of the right root, in the type's unit.
    #[prost(int64, tag = "6")]
    #[serde(serialize_with = "json::as_text", skip_serializing_if = "json::is_default")]
    pub right_ticks: i64,
}

/// Settings that a user stored: none are kept here.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub struct GetSettingsResponse {}

/// A pprof profile in a message of its own.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PprofProfile {
    /// The profile that is wrapped.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// A call tree laid out as bars.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlameGraph {
    /// Functions; the first is `total`.
    #[prost(string, repeated, tag = "1")]
    pub names: Vec<String>,
    /// Rows of bars, the root's first.
    #[prost(message, repeated, tag = "2")]
    pub levels: Vec<Level>,
    /// The value of the root, in the type's unit.
    #[prost(int64, tag = "3")]
    #[serde(serialize_with = "json::as_text", skip_serializing_if = "json::is_default")]
    pub total: i64,
    /// The largest value of a function by itself.
    #[prost(int64, tag = "4")]
    #[serde(serialize_with = "json::as_text", skip_serializing_if = "json::is_default")]
    pub max_self: i64,
}

/// A row of bars: those of one depth.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Level {
    /// Four numbers a bar: gap to the bar before it, total, self, index of its name.
    #[prost(int64, repeated, tag = "1")]
    #[serde(serialize_with = "json::as_texts")]
    pub values: Vec<i64>,
}

/// The answer to a question for sums over time.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectSeriesResponse {
    /// The series, by their labels, or the largest first where only some are wanted.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
}

/// Sums over time with the same labels.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// The labels that were grouped by.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<LabelPair>,
    /// The steps that have samples, in order.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Point>,
}

/// The sum of one step.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// Sum, in the type's unit.
    #[prost(double, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub value: f64,
    /// The step's first millisecond that was asked for.
    #[prost(int64, tag = "2")]
    #[serde(serialize_with = "json::as_text", skip_serializing_if = "json::is_default")]
    pub timestamp: i64,
}

/// Whether anything is kept, and of when.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GetProfileStatsResponse {
    /// Whether anything is kept.
    #[prost(bool, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub data_ingested: bool,
    /// First millisecond of what is kept, since the Unix epoch.
    #[prost(int64, tag = "2")]
    #[serde(serialize_with = "json::as_text", skip_serializing_if = "json::is_default")]
    pub oldest_profile_time: i64,
    /// Last millisecond of what is kept, since the Unix epoch.
    #[prost(int64, tag = "3")]
    #[serde(serialize_with = "json::as_text", skip_serializing_if = "json::is_default")]
    pub newest_profile_time: i64,
}
