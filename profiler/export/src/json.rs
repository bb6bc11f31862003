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
use emberscope_model::{Answer, DropReason, Frame, MissingPart, Node, Quality, TimeRange, Tree};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A range of time, RFC 3339.
#[derive(Clone, Debug, Serialize)]
pub struct RangeJson {
    /// First instant that is in the range.
    pub from: String,
    /// First instant that is behind the range.
    pub until: String,
}

impl From<TimeRange> for RangeJson {
    fn from(range: TimeRange) -> Self {
        Self { from: range.from.to_string(), until: range.until.to_string() }
    }
}

/// What an answer rests on. Reasons that did not occur are left out.
#[derive(Clone, Debug, Serialize)]
pub struct QualityJson {
    /// Samples in the answer.
    pub samples: u64,
    /// Samples that the node lost meanwhile, whosever they were.
    pub lost: u64,
    /// Samples whose user stack does not reach the thread's first frame.
    pub truncated: u64,
    /// Frames of all samples.
    pub frames: u64,
    /// Of those frames, the ones without a name.
    pub unnamed_frames: u64,
    /// Samples with a frame that rests on borrowed debug info.
    pub approximate: u64,
    /// Relative standard error of their sum; null of nothing.
    pub sampling_error: Option<f64>,
    /// Samples by how their user stack ended.
    pub ends: BTreeMap<&'static str, u64>,
    /// Frames without a name, by reason.
    pub unnamed: BTreeMap<&'static str, u64>,
    /// All that the node lost meanwhile, by reason.
    pub lost_by_reason: BTreeMap<&'static str, u64>,
    /// Blocks, journals and objects of an archive of this time that were set aside as bad, whosever samples they held.
    pub missing: u64,
    /// The first ten of those parts.
    pub missing_parts: Vec<MissingJson>,
}

/// Something that was set aside.
#[derive(Clone, Debug, Serialize)]
pub struct MissingJson {
    /// Name of its directory, file or object.
    pub name: String,
    /// When its windows are, as far as that is known.
    #[serde(flatten)]
    pub range: RangeJson,
    /// What is wrong with it.
    pub says: String,
}

impl From<&MissingPart> for MissingJson {
    fn from(part: &MissingPart) -> Self {
        Self { name: part.name.clone(), range: part.range.into(), says: part.says.clone() }
    }
}

impl From<&Quality> for QualityJson {
    fn from(quality: &Quality) -> Self {
        let lost = DropReason::ALL.iter().map(|reason| (reason.slug(), quality.lost.get(*reason)));
        Self {
            samples: quality.samples,
            lost: quality.lost.samples(),
            truncated: quality.truncated,
            frames: quality.frames,
            unnamed_frames: quality.unnamed_frames,
            sampling_error: quality.sampling_error(),
            approximate: quality.approximate,
            ends: quality.ends.clone(),
            unnamed: quality.unnamed.clone(),
            lost_by_reason: lost.filter(|(_, count)| *count > 0).collect(),
            missing: quality.missing.count,
            missing_parts: quality.missing.parts.iter().map(MissingJson::from).collect(),
        }
    }
}

#[derive(Serialize)]
struct AnswerJson<'a> {
    range: RangeJson,
    windows: usize,
    #[serde(rename = "type")]
    kind: &'static str,
    unit: &'static str,
    total: u64,
    quality: QualityJson,
    #[serde(serialize_with = "nodes")]
    nodes: (&'a Tree, Unit),
}

/// What a node or a row of frames says of a frame.
#[derive(Serialize)]
pub(super) struct FrameJson<'a> {
    name: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    module: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    approximate: bool,
}

impl<'a> From<&'a Frame> for FrameJson<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self {
            name: &frame.name,
            kind: frame.kind.slug(),
            module: &frame.module,
            signature: frame.signature.as_deref(),
            line: Some(frame.line).filter(|&line| line > 0),
            approximate: frame.approximate,
        }
    }
}

#[derive(Serialize)]
struct NodeJson<'a> {
    parent: Option<u32>,
    #[serde(flatten)]
    frame: FrameJson<'a>,
    #[serde(rename = "self")]
    own: u64,
    total: u64,
}

fn nodes<S: Serializer>(tree: &(&Tree, Unit), serializer: S) -> Result<S::Ok, S::Error> {
    let (tree, unit) = *tree;
    let mut list = serializer.serialize_seq(Some(tree.nodes.len()))?;
    for (id, node) in tree.nodes.iter().enumerate() {
        list.serialize_element(&node_json(id, node, unit))?;
    }
    list.end()
}

fn node_json(id: usize, node: &Node, unit: Unit) -> NodeJson<'_> {
    NodeJson {
        parent: (id > 0).then_some(node.parent),
        frame: (&*node.frame).into(),
        own: unit.own(node),
        total: unit.total(node),
    }
}

pub(super) fn write(answer: &Answer, options: &ExportOptions, out: &mut impl Write) -> io::Result<()> {
    let unit = options.unit;
    let json = AnswerJson {
        range: answer.range.into(),
        windows: answer.windows,
        kind: answer.quality.kind.slug(),
        unit: unit.slug(answer.quality.kind),
        total: answer.tree.nodes.first().map_or(0, |root| unit.total(root)),
        quality: (&answer.quality).into(),
        nodes: (&answer.tree, unit),
    };
    serde_json::to_writer(out, &json).map_err(io::Error::from)
}
