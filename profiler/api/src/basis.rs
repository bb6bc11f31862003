//! What every answer about samples begins with: which windows it holds and what it rests on; and what samples weigh.

use emberscope_model as model;
use emberscope_model::{DropReason, SampleKind, TimeRange, WallTime};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// RFC 3339, in UTC; empty where a daemon does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, extend("format" = "date-time"))]
pub struct Instant(pub String);

impl From<WallTime> for Instant {
    fn from(time: WallTime) -> Self {
        Self(time.to_string())
    }
}

/// A range of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Range {
    /// First instant that is in.
    pub from: Instant,
    /// First instant that is out.
    pub until: Instant,
}

impl From<TimeRange> for Range {
    fn from(range: TimeRange) -> Self {
        Self { from: range.from.into(), until: range.until.into() }
    }
}

/// An answer: what every answer has, and what was asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}")]
pub struct Answer<T, H = Head> {
    /// What it rests on.
    #[serde(flatten)]
    pub head: H,
    /// What was asked for.
    #[serde(flatten)]
    pub content: T,
}

/// What an answer holds, what there is, and why there is nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Head {
    /// What the answer holds.
    #[serde(flatten)]
    pub basis: Basis,
    /// What there is to be asked for.
    #[serde(flatten)]
    pub held: Held,
    /// Why the answer is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What an answer holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Basis {
    /// What the answer holds, in whole windows.
    pub range: Range,
    /// How many windows.
    pub windows: u64,
    /// Kind of samples.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// What the answer rests on.
    pub quality: Quality,
}

/// The windows that there are.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Held {
    /// Length of a window.
    pub window_seconds: f64,
    /// From the first window until the last; null where there is none.
    pub span: Option<Range>,
}

/// What an answer rests on. Reasons that did not occur are left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Quality {
    /// Samples in the answer.
    pub samples: u64,
    /// Samples that the node lost in that time, of any process.
    pub lost: u64,
    /// Samples whose user stack does not reach the thread's first frame.
    pub truncated: u64,
    /// Frames of all samples.
    pub frames: u64,
    /// Of these, without a name.
    pub unnamed_frames: u64,
    /// Samples with a frame that rests on borrowed debug info.
    pub approximate: u64,
    /// Relative standard error of their sum; null of nothing.
    pub sampling_error: Option<f64>,
    /// Samples by how their user stack ended.
    pub ends: BTreeMap<Cow<'static, str>, u64>,
    /// Frames without a name, by reason.
    pub unnamed: BTreeMap<Cow<'static, str>, u64>,
    /// All that the node lost meanwhile, by reason.
    pub lost_by_reason: BTreeMap<Cow<'static, str>, u64>,
    /// Blocks, journals and objects of an archive of this time that were set aside as bad, whatever samples they held.
    pub missing: u64,
    /// The first of them.
    pub missing_parts: Vec<MissingPart>,
}

/// Something that was set aside.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MissingPart {
    /// Name of the block, journal or object.
    pub name: String,
    /// When its windows are, as far as that is known.
    #[serde(flatten)]
    pub range: Range,
    /// What is wrong with it.
    pub says: String,
}

impl From<&model::MissingPart> for MissingPart {
    fn from(part: &model::MissingPart) -> Self {
        Self { name: part.name.clone(), range: part.range.into(), says: part.says.clone() }
    }
}

impl From<&model::Quality> for Quality {
    fn from(quality: &model::Quality) -> Self {
        let by = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(reason, count)| ((*reason).into(), *count)).collect()
        };
        let lost = DropReason::ALL.iter().map(|reason| (reason.slug().into(), quality.lost.get(*reason)));
        Self {
            samples: quality.samples,
            lost: quality.lost.samples(),
            truncated: quality.truncated,
            frames: quality.frames,
            unnamed_frames: quality.unnamed_frames,
            sampling_error: quality.sampling_error(),
            approximate: quality.approximate,
            ends: by(&quality.ends),
            unnamed: by(&quality.unnamed),
            lost_by_reason: lost.filter(|(_, count)| *count > 0).collect(),
            missing: quality.missing.count,
            missing_parts: quality.missing.parts.iter().map(MissingPart::from).collect(),
        }
    }
}

/// Samples, what they weigh together, and how sure that is. `N` is a number, or one that may be null.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Amount<N = u64> {
    /// How many samples.
    pub samples: N,
    /// Relative standard error of what they weigh; null of nothing.
    #[serde(default)]
    pub sampling_error: Option<f64>,
    /// What they weigh.
    #[serde(flatten)]
    pub weight: Weight,
}

impl Amount {
    /// Of samples of a kind, which weigh `weight` together in the kind's unit.
    pub fn new(kind: SampleKind, samples: u64, weight: u64) -> Self {
        let model::Amount { key, of } = kind.facts().amount;
        let weight = if of == 1 { weight.into() } else { (weight as f64 / of as f64).into() };
        Self {
            samples,
            sampling_error: (kind.facts().error)(samples),
            weight: Weight(Map::from_iter([(key.to_owned(), weight)])),
        }
    }
}

impl Amount<Option<u64>> {
    /// Of what cannot be told apart: all null.
    pub fn unknown(kind: SampleKind) -> Self {
        let key = kind.facts().amount.key.to_owned();
        Self { samples: None, sampling_error: None, weight: Weight(Map::from_iter([(key, Value::Null)])) }
    }
}

impl From<Amount> for Amount<Option<u64>> {
    fn from(amount: Amount) -> Self {
        let Amount { samples, sampling_error, weight } = amount;
        Self { samples: Some(samples), sampling_error, weight }
    }
}

/// The sum of samples' weights, under the name that their kind has for it: `cpu_seconds`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weight(Map<String, Value>);

impl Weight {
    /// The sum, of a kind; None where the answer does not say.
    pub fn of(&self, kind: SampleKind) -> Option<&Value> {
        self.0.get(kind.facts().amount.key)
    }
}

impl JsonSchema for Weight {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Weight".into()
    }
    /// One of these is there: that of the kind that was asked for.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let of = |kind: &SampleKind| {
            let facts = kind.facts();
            let number = if facts.amount.of == 1 { "integer" } else { "number" };
            let says = format!("With `type={}`: what the samples weigh together.", facts.slug);
            (
                facts.amount.key.to_owned(),
                json_schema!({ "type": [number, "null"], "description": says }).into(),
            )
        };
        let properties: Map<String, Value> = SampleKind::ASKED.iter().map(of).collect();
        json_schema!({ "type": "object", "properties": properties })
    }
}
