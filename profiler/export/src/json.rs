//! JSON: what the answer holds, what it rests on, and the tree.
//!
//! ```json
//! {"range": {"from": "2026-11-21T10:00:00.000Z", "until": "2026-11-21T10:05:00.000Z"},
//!  "windows": 30, "unit": "samples", "total": 1234, "quality": {...},
//!  "nodes": [{"parent": null, "name": "total", "kind": "label", "self": 0, "total": 1234},
//!            {"parent": 0, "name": "java.lang.Thread.run", "kind": "java", "self": 1, "total": 1234}]}
//! ```
//!
//! The tree is a flat list, a parent (by its place in the list) before its children: stacks of 512
//! frames would nest deeper than JSON readers go (serde_json stops at 128, jq at 256 before 1.7).
//! `module`, `signature` and `line` are there where they are known. Names are as they are, escaped by
//! JSON's rules.

use super::ExportOptions;
use super::Unit;
use emberscope_api as api;
use emberscope_model::{Answer, Frame, Node, Operator, Tree, operator_of_generated};
use serde::ser::{Serialize, SerializeSeq, Serializer};
use std::io::{self, Write};

/// What a node or a row of frames says of a frame.
pub(super) fn frame_json(frame: &Frame) -> api::Frame<'_> {
    api::Frame {
        name: (&*frame.name).into(),
        kind: frame.kind.slug().into(),
        module: (&*frame.module).into(),
        signature: frame.signature.as_deref().map(Into::into),
        line: Some(frame.line).filter(|&line| line > 0),
        operator: operator_of_generated(frame).map(Operator::name),
        approximate: frame.approximate,
    }
}

/// The nodes of a tree, written one by one.
struct Nodes<'a>(&'a Tree, Unit);

impl Serialize for Nodes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(tree, unit) = *self;
        let mut list = serializer.serialize_seq(Some(tree.nodes.len()))?;
        for (id, node) in tree.nodes.iter().enumerate() {
            list.serialize_element(&node_json(id, node, unit))?;
        }
        list.end()
    }
}

fn node_json(id: usize, node: &Node, unit: Unit) -> api::Node<'_> {
    api::Node {
        parent: (id > 0).then_some(node.parent),
        frame: frame_json(&node.frame),
        own: unit.own(node),
        total: unit.total(node),
    }
}

pub(super) fn write(answer: &Answer, options: &ExportOptions, out: &mut impl Write) -> io::Result<()> {
    let unit = options.unit;
    let json = api::Tree {
        range: answer.range.into(),
        windows: answer.windows as u64,
        kind: answer.quality.kind.slug().into(),
        unit: unit.slug(answer.quality.kind).into(),
        total: answer.tree.nodes.first().map_or(0, |root| unit.total(root)),
        quality: (&answer.quality).into(),
        nodes: Nodes(&answer.tree, unit),
    };
    serde_json::to_writer(out, &json).map_err(io::Error::from)
}
