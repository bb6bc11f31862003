//! The requests about what there is, of querier.v1.QuerierService, by hand: field numbers and names are
//! those of Pyroscope's `querier/v1/querier.proto` and `types/v1/types.proto` (module
//! github.com/grafana/pyroscope/api v1.6.0).
//!
//! In JSON a field may be spelt as in the proto file or in camelCase, and unknown fields are passed
//! over, as protobuf's JSON mapping wants.

use super::json;
use serde::Deserialize;

/// Asks for the profile types there are.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct ProfileTypesRequest {
    /// First millisecond since the Unix epoch; 0 in both: all that is kept.
    #[prost(int64, tag = "1")]
    #[serde(deserialize_with = "json::int64")]
    pub start: i64,
    /// Last millisecond since the Unix epoch.
    #[prost(int64, tag = "2")]
    #[serde(deserialize_with = "json::int64")]
    pub end: i64,
}

/// Asks for the labels' names.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct LabelNamesRequest {
    /// Selectors, of which one must match; none: everything.
    #[prost(string, repeated, tag = "1")]
    #[serde(deserialize_with = "json::or_null")]
    pub matchers: Vec<String>,
    /// First millisecond since the Unix epoch; 0 in both: all that is kept.
    #[prost(int64, tag = "2")]
    #[serde(deserialize_with = "json::int64")]
    pub start: i64,
    /// Last millisecond since the Unix epoch.
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::int64")]
    pub end: i64,
}

/// Asks for a label's values.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct LabelValuesRequest {
    /// Name of the label.
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::or_null")]
    pub name: String,
    /// Selectors, of which one must match; none: everything.
    #[prost(string, repeated, tag = "2")]
    #[serde(deserialize_with = "json::or_null")]
    pub matchers: Vec<String>,
    /// First millisecond since the Unix epoch; 0 in both: all that is kept.
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::int64")]
    pub start: i64,
    /// Last millisecond since the Unix epoch.
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::int64")]
    pub end: i64,
}

/// Asks for the label sets there are.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct SeriesRequest {
    /// Selectors, of which one must match; none: everything.
    #[prost(string, repeated, tag = "1")]
    #[serde(deserialize_with = "json::or_null")]
    pub matchers: Vec<String>,
    /// The labels to keep; none: all.
    #[prost(string, repeated, tag = "2")]
    #[serde(alias = "labelNames", deserialize_with = "json::or_null")]
    pub label_names: Vec<String>,
    /// First millisecond since the Unix epoch; 0 in both: all that is kept.
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::int64")]
    pub start: i64,
    /// Last millisecond since the Unix epoch.
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::int64")]
    pub end: i64,
}

/// Asks whether anything is kept, and of when.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct GetProfileStatsRequest {}

/// Asks for a user's settings.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub struct GetSettingsRequest {}
