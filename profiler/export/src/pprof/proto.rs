//! google.v1.Profile (pprof), by hand: field numbers are those of `google/v1/profile.proto`.
//!
//! The fields that we write, and those that an import reads of others' profiles: the latter have their default values in
//! what we write, and are not in its JSON. JSON is written in camelCase with 64-bit integers as text. Texts are indices into `string_table`, whose first entry is
//! empty; ids start at 1.

use super::numbers;
use serde::Serialize;

/// google.v1.Profile.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// What each of a sample's values is.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// Stacks with their values.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// Files that code came from.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Places in code, of which a stack is a list.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions that places in code are in.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// Texts, each once, the first one empty.
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
    /// How much of it lies between two samples; read only.
    #[prost(int64, tag = "12")]
    #[serde(skip)]
    pub period: i64,
}

/// What a value is: two indices into the table of texts.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ValueType {
    /// What the value counts: `cpu`, `samples`.
    #[prost(int64, tag = "1")]
    #[serde(serialize_with = "numbers::as_text")]
    pub r#type: i64,
    /// In which unit: `nanoseconds`, `count`.
    #[prost(int64, tag = "2")]
    #[serde(serialize_with = "numbers::as_text")]
    pub unit: i64,
}

/// A stack and its values.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// Numbers of the stack's locations, leaf first.
    #[prost(uint64, repeated, tag = "1")]
    #[serde(serialize_with = "numbers::as_texts")]
    pub location_id: Vec<u64>,
    /// Values, one for each sample type.
    #[prost(int64, repeated, tag = "2")]
    #[serde(serialize_with = "numbers::as_texts")]
    pub value: Vec<i64>,
    /// What else is told of the sample; counted only.
    #[prost(message, repeated, tag = "3")]
    #[serde(skip)]
    pub label: Vec<Label>,
}

/// A label of a sample.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Label {}

/// A file that code came from, by its name alone.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mapping {
    /// The mapping's number, from 1.
    #[prost(uint64, tag = "1")]
    #[serde(serialize_with = "numbers::as_text")]
    pub id: u64,
    /// Index of the file's name.
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
    /// The location's number, from 1.
    #[prost(uint64, tag = "1")]
    #[serde(serialize_with = "numbers::as_text")]
    pub id: u64,
    /// Number of the mapping that it is in; 0 when not known.
    #[prost(uint64, tag = "2")]
    #[serde(serialize_with = "numbers::as_text")]
    pub mapping_id: u64,
    /// Address in the process; read only.
    #[prost(uint64, tag = "3")]
    #[serde(skip)]
    pub address: u64,
    /// Function and line; where calls were inlined several, the innermost first.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A function and a line of it.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Number of the function.
    #[prost(uint64, tag = "1")]
    #[serde(serialize_with = "numbers::as_text")]
    pub function_id: u64,
    /// Line of the source file, from 1; 0 when not known.
    #[prost(int64, tag = "2")]
    #[serde(serialize_with = "numbers::as_text")]
    pub line: i64,
}

/// A function, by indices into the table of texts.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Function {
    /// The function's number, from 1.
    #[prost(uint64, tag = "1")]
    #[serde(serialize_with = "numbers::as_text")]
    pub id: u64,
    /// Index of the function's name.
    #[prost(int64, tag = "2")]
    #[serde(serialize_with = "numbers::as_text")]
    pub name: i64,
    /// Index of the name with the signature, where there is one.
    #[prost(int64, tag = "3")]
    #[serde(serialize_with = "numbers::as_text")]
    pub system_name: i64,
    /// Index of the source file's name; read only.
    #[prost(int64, tag = "4")]
    #[serde(skip)]
    pub filename: i64,
}
