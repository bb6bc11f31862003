//! The requests for samples, of querier.v1.QuerierService, by hand: field numbers and names are those of
//! Pyroscope's `querier/v1/querier.proto` and `types/v1/types.proto` (module
//! github.com/grafana/pyroscope/api v1.6.0).
//!
//! In JSON a field may be spelt as in the proto file or in camelCase, and unknown fields are passed
//! over, as protobuf's JSON mapping wants. Fields that change nothing here (exemplars) are left out:
//! the decoders skip them.

use super::json;
use serde::Deserialize;

/// Asks for one merged profile.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct SelectMergeStacktracesRequest {
    /// Id of the profile type: `process_cpu:cpu:nanoseconds:cpu:nanoseconds`.
    #[prost(string, tag = "1")]
    #[serde(rename = "profile_typeID", alias = "profileTypeID", deserialize_with = "json::or_null")]
    pub profile_type_id: String,
    /// Selector of the series: `{service_name="a"}`.
    #[prost(string, tag = "2")]
    #[serde(alias = "labelSelector", deserialize_with = "json::or_null")]
    pub label_selector: String,
    /// First millisecond since the Unix epoch.
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::int64")]
    pub start: i64,
    /// Last millisecond since the Unix epoch.
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::int64")]
    pub end: i64,
    /// Most nodes to answer with.
    #[prost(int64, optional, tag = "5")]
    #[serde(alias = "maxNodes", deserialize_with = "json::opt_int64")]
    pub max_nodes: Option<i64>,
    /// Form of the answer: the number of a querier.v1.ProfileFormat.
    #[prost(int32, tag = "6")]
    #[serde(deserialize_with = "json::profile_format")]
    pub format: i32,
    /// Stacks that are wanted; None: all.
    #[prost(message, optional, tag = "7")]
    #[serde(alias = "stackTraceSelector")]
    pub stack_trace_selector: Option<StackTraceSelector>,
    /// Ids of single profiles that are wanted: none are kept, so one finds nothing.
    #[prost(string, repeated, tag = "8")]
    #[serde(alias = "profileIdSelector", deserialize_with = "json::or_null")]
    pub profile_id_selector: Vec<String>,
    /// Asks for the answer later: refused.
    #[prost(message, optional, tag = "9")]
    pub r#async: Option<AsyncQueryRequest>,
    /// Ids of traces that are wanted: none are kept, so one finds nothing.
    #[prost(string, repeated, tag = "10")]
    #[serde(alias = "traceIdSelector", deserialize_with = "json::or_null")]
    pub trace_id_selector: Vec<String>,
    /// Ids of spans that are wanted: none are kept, so one finds nothing.
    #[prost(string, repeated, tag = "11")]
    #[serde(alias = "spanSelector", deserialize_with = "json::or_null")]
    pub span_selector: Vec<String>,
}

/// Asks for two profiles compared. The format of each side means nothing.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct DiffRequest {
    /// The side that is compared with.
    #[prost(message, optional, tag = "1")]
    pub left: Option<SelectMergeStacktracesRequest>,
    /// The side that is compared.
    #[prost(message, optional, tag = "2")]
    pub right: Option<SelectMergeStacktracesRequest>,
}

/// The older way to ask for spans.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct SelectMergeSpanProfileRequest {
    /// Id of the profile type: `process_cpu:cpu:nanoseconds:cpu:nanoseconds`.
    #[prost(string, tag = "1")]
    #[serde(rename = "profile_typeID", alias = "profileTypeID", deserialize_with = "json::or_null")]
    pub profile_type_id: String,
    /// Selector of the series: `{service_name="a"}`.
    #[prost(string, tag = "2")]
    #[serde(alias = "labelSelector", deserialize_with = "json::or_null")]
    pub label_selector: String,
    /// Ids of spans that are wanted: none are kept, so one finds nothing.
    #[prost(string, repeated, tag = "3")]
    #[serde(alias = "spanSelector", deserialize_with = "json::or_null")]
    pub span_selector: Vec<String>,
    /// First millisecond since the Unix epoch.
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::int64")]
    pub start: i64,
    /// Last millisecond since the Unix epoch.
    #[prost(int64, tag = "5")]
    #[serde(deserialize_with = "json::int64")]
    pub end: i64,
    /// Most nodes to answer with.
    #[prost(int64, optional, tag = "6")]
    #[serde(alias = "maxNodes", deserialize_with = "json::opt_int64")]
    pub max_nodes: Option<i64>,
    /// Form of the answer: the number of a querier.v1.ProfileFormat.
    #[prost(int32, tag = "7")]
    #[serde(deserialize_with = "json::profile_format")]
    pub format: i32,
}

/// Asks for a profile in pprof's form.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct SelectMergeProfileRequest {
    /// Id of the profile type: `process_cpu:cpu:nanoseconds:cpu:nanoseconds`.
    #[prost(string, tag = "1")]
    #[serde(rename = "profile_typeID", alias = "profileTypeID", deserialize_with = "json::or_null")]
    pub profile_type_id: String,
    /// Selector of the series: `{service_name="a"}`.
    #[prost(string, tag = "2")]
    #[serde(alias = "labelSelector", deserialize_with = "json::or_null")]
    pub label_selector: String,
    /// First millisecond since the Unix epoch.
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::int64")]
    pub start: i64,
    /// Last millisecond since the Unix epoch.
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::int64")]
    pub end: i64,
    /// Most nodes to answer with.
    #[prost(int64, optional, tag = "5")]
    #[serde(alias = "maxNodes", deserialize_with = "json::opt_int64")]
    pub max_nodes: Option<i64>,
    /// Stacks that are wanted; None: all.
    #[prost(message, optional, tag = "6")]
    #[serde(alias = "stackTraceSelector")]
    pub stack_trace_selector: Option<StackTraceSelector>,
    /// Ids of single profiles that are wanted: none are kept, so one finds nothing.
    #[prost(string, repeated, tag = "7")]
    #[serde(alias = "profileIdSelector", deserialize_with = "json::or_null")]
    pub profile_id_selector: Vec<String>,
    /// Ids of traces that are wanted: none are kept, so one finds nothing.
    #[prost(string, repeated, tag = "8")]
    #[serde(alias = "traceIdSelector", deserialize_with = "json::or_null")]
    pub trace_id_selector: Vec<String>,
}

/// Asks for sums over time.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct SelectSeriesRequest {
    /// Id of the profile type: `process_cpu:cpu:nanoseconds:cpu:nanoseconds`.
    #[prost(string, tag = "1")]
    #[serde(rename = "profile_typeID", alias = "profileTypeID", deserialize_with = "json::or_null")]
    pub profile_type_id: String,
    /// Selector of the series: `{service_name="a"}`.
    #[prost(string, tag = "2")]
    #[serde(alias = "labelSelector", deserialize_with = "json::or_null")]
    pub label_selector: String,
    /// First millisecond since the Unix epoch.
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::int64")]
    pub start: i64,
    /// Last millisecond since the Unix epoch.
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::int64")]
    pub end: i64,
    /// A series for each combination of these labels' values.
    #[prost(string, repeated, tag = "5")]
    #[serde(alias = "groupBy", deserialize_with = "json::or_null")]
    pub group_by: Vec<String>,
    /// Length of a step in seconds.
    #[prost(double, tag = "6")]
    #[serde(deserialize_with = "json::double")]
    pub step: f64,
    /// How samples of a step are put together: the number of a types.v1.TimeSeriesAggregationType.
    #[prost(int32, optional, tag = "7")]
    #[serde(deserialize_with = "json::aggregation")]
    pub aggregation: Option<i32>,
    /// Stacks that are wanted; None: all.
    #[prost(message, optional, tag = "8")]
    #[serde(alias = "stackTraceSelector")]
    pub stack_trace_selector: Option<StackTraceSelector>,
    /// Only this many series: those with the largest sums.
    #[prost(int64, optional, tag = "9")]
    #[serde(deserialize_with = "json::opt_int64")]
    pub limit: Option<i64>,
}

/// Restricts an answer to stacks below a call site.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct StackTraceSelector {
    /// Functions with which the stacks begin, from the root.
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "callSite", deserialize_with = "json::or_null")]
    pub call_site: Vec<Location>,
    /// What Go's profile-guided optimisation wants.
    #[prost(message, optional, tag = "2")]
    #[serde(alias = "goPgo")]
    pub go_pgo: Option<GoPgo>,
}

/// A function by name.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct Location {
    /// Name of the function.
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::or_null")]
    pub name: String,
}

/// What Go's profile-guided optimisation wants; only its presence counts here.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct GoPgo {}

/// Asks for an answer later, or for the answer of an earlier request.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct AsyncQueryRequest {
    /// Id of the earlier request.
    #[prost(string, tag = "1")]
    #[serde(alias = "requestId", deserialize_with = "json::or_null")]
    pub request_id: String,
    /// Whether to answer later: the number of a querier.v1.AsyncQueryType.
    #[prost(int32, tag = "2")]
    #[serde(deserialize_with = "json::async_type")]
    pub r#type: i32,
}
