//! google.v1.Profile (pprof), by hand: field numbers are those of `google/v1/profile.proto`.
//!
//! The fields that we write, and those that an import reads of others' profiles: the latter have their default values in
//! what we write, and are not in its JSON. JSON is written in camelCase with 64-bit integers as text. Texts are indices into `string_table`, whose first entry is
//! empty; ids start at 1.

use super::numbers;
use serde::Serialize;

/// A profile.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// What each of a sample's values is.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// The samples.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// The files that code came from.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// The places in code.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// The functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// The texts.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// Begin, nanoseconds since the Unix epoch.
    #[prost(int64, tag = "9")]
    #[serde(serialize_with = "numbers::as_text")]
    pub time_nanos: i64,
    /// Length in nanoseconds.
    #[prost(int64, tag = "10")]
    #[serde(serialize_with = "numbers::as_text")]
    pub duration_nanos: i64,
    /// What a sample was taken every so much of.
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_type: Option<ValueType>,
    /// So much of it; read only.
    #[prost(int64, tag = "12")]
    #[serde(skip)]
    pub period: i64,
}

/// What a value is.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ValueType {
    /// What it counts.
    #[prost(int64, tag = "1")]
    #[serde(serialize_with = "numbers::as_text")]
    pub r#type: i64,
    /// In which unit.
    #[prost(int64, tag = "2")]
    #[serde(serialize_with = "numbers::as_text")]
    pub unit: i64,
}

/// A stack and its values.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// Leaf first.
    #[prost(uint64, repeated, tag = "1")]
    #[serde(serialize_with = "numbers::as_texts")]
    pub location_id: Vec<u64>,
    /// One for each sample type.
    #[prost(int64, repeated, tag = "2")]
    #[serde(serialize_with = "numbers::as_texts")]
    pub value: Vec<i64>,
    /// What else is told of it; counted only.
    #[prost(message, repeated, tag = "3")]
    #[serde(skip)]
    pub label: Vec<Label>,
}

/// A label of a sample.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Label {}

/// A file that code came from.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mapping {
    /// Its id.
    #[prost(uint64, tag = "1")]
    #[serde(serialize_with = "numbers::as_text")]
    pub id: u64,
    /// Its name.
    #[prost(int64, tag = "5")]
    #[serde(serialize_with = "numbers::as_text")]
    pub filename: i64,
    /// Functions are named: nothing is left to look up.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
}

/// A place in code.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// Its id.
    #[prost(uint64, tag = "1")]
    #[serde(serialize_with = "numbers::as_text")]
    pub id: u64,
    /// The file; 0 when not known.
    #[prost(uint64, tag = "2")]
    #[serde(serialize_with = "numbers::as_text")]
    pub mapping_id: u64,
    /// Its address; read only.
    #[prost(uint64, tag = "3")]
    #[serde(skip)]
    pub address: u64,
    /// Function and line.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// The function.
    #[prost(uint64, tag = "1")]
    #[serde(serialize_with = "numbers::as_text")]
    pub function_id: u64,
    /// The line; 0 when not known.
    #[prost(int64, tag = "2")]
    #[serde(serialize_with = "numbers::as_text")]
    pub line: i64,
}

/// A function.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Function {
    /// Its id.
    #[prost(uint64, tag = "1")]
    #[serde(serialize_with = "numbers::as_text")]
    pub id: u64,
    /// Its name.
    #[prost(int64, tag = "2")]
    #[serde(serialize_with = "numbers::as_text")]
    pub name: i64,
    /// Its name with the signature, where there is one.
    #[prost(int64, tag = "3")]
    #[serde(serialize_with = "numbers::as_text")]
    pub system_name: i64,
    /// Its source file; read only.
    #[prost(int64, tag = "4")]
    #[serde(skip)]
    pub filename: i64,
}
