//! `/api/v1/flamegraph` as JSON, and `emberscope record --format json`. A tree is some megabytes: names are borrowed where
//! one is written, and its nodes are written one by one.

use crate::{Answer, Held, Quality, Range};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The schema of merged stacks: a list of nodes, or columns.
pub(crate) fn schema(schemas: &mut SchemaGenerator) -> Schema {
    let nodes = schemas.subschema_for::<Answer<Tree<Vec<Node<'_>>>, TreeHead>>();
    let columns = schemas.subschema_for::<Answer<TreeColumns<'_, Vec<u64>>, TreeHead>>();
    json_schema!({ "anyOf": [nodes, columns] })
}

/// What an answer has beside a tree.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TreeHead {
    /// What there is to be asked for.
    #[serde(flatten)]
    pub held: Held,
    /// Why the tree is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How many nodes `max_nodes` left out.
    pub cut_nodes: u64,
}

/// A tree as a list of nodes, a caller before its callees.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Tree")]
pub struct Tree<N> {
    /// What it holds, in whole windows.
    pub range: Range,
    /// How many windows.
    pub windows: u64,
    /// Kind of samples.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// What values count: `samples`, or the kind's unit.
    pub unit: Cow<'static, str>,
    /// Value of the root.
    pub total: u64,
    /// What it rests on.
    pub quality: Quality,
    /// Its nodes.
    pub nodes: N,
}

/// What a node says of its frame.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Frame<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Kind of code.
    pub kind: Cow<'static, str>,
    /// Library or file that it is of, where it is known.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub module: Cow<'a, str>,
    /// Signature of a method, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<Cow<'a, str>>,
    /// Source line, if lines are separate frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Of code that Spark SQL generated, the operator that its method is for: a value of the label `operator`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Cow<'static, str>>,
    /// It rests on borrowed debug info.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approximate: bool,
}

/// A node of a tree.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Node<'a> {
    /// Place of its caller; null of the root.
    pub parent: Option<u32>,
    /// Its frame.
    #[serde(flatten)]
    pub frame: Frame<'a>,
    /// Value of the stacks that end in it.
    #[serde(rename = "self")]
    pub own: u64,
    /// Value of the stacks that go through it.
    pub total: u64,
}

/// The same tree as columns of numbers, each frame written once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TreeColumns")]
pub struct TreeColumns<'a, C> {
    /// What it holds, in whole windows.
    pub range: Range,
    /// How many windows.
    pub windows: u64,
    /// Kind of samples.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// What values count: `samples`, or the kind's unit.
    pub unit: Cow<'static, str>,
    /// Value of the root.
    pub total: u64,
    /// What it rests on.
    pub quality: Quality,
    /// The frames.
    pub frames: Vec<Frame<'a>>,
    /// A number of every node in each.
    pub columns: Columns<C>,
}

/// Columns of a tree, a caller before its callees.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Columns")]
pub struct Columns<C> {
    /// Place of its caller; the root is its own.
    pub parent: C,
    /// Place in the frames.
    pub frame: Vec<u32>,
    /// Value of the stacks that end in it.
    #[serde(rename = "self")]
    pub own: C,
    /// Value of the stacks that go through it.
    pub total: C,
    /// Samples of the stacks that end in it.
    pub self_samples: C,
    /// Samples of the stacks that go through it.
    pub total_samples: C,
}
