//! `/api/v1/top`. Names are borrowed where an answer is made.

use crate::Amount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Methods by the samples in them and below them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Top<'a> {
    /// What they are sorted by: `self` or `total`.
    #[serde(default)]
    pub sort: Cow<'static, str>,
    /// How many methods there are.
    #[serde(default)]
    pub methods: u64,
    /// The largest first, up to the limit.
    pub top: Vec<Method<'a>>,
}

/// A method; a recursive one counts once for each stack.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Method<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Library or file that it is of; empty where it is not known.
    #[serde(default)]
    pub module: Cow<'a, str>,
    /// Kinds of code that it ran as.
    #[serde(default)]
    pub kinds: BTreeSet<Cow<'static, str>>,
    /// Samples that ended in it.
    #[serde(rename = "self")]
    pub own: Cost,
    /// Samples with it anywhere in their stacks.
    pub total: Cost,
}

/// Samples and their part of all.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cost {
    /// The samples.
    #[serde(flatten)]
    pub amount: Amount,
    /// Their part of all samples of the answer; null of nothing.
    pub share: Option<f64>,
    /// Standard error of the share, in the share's own unit.
    pub share_error: Option<f64>,
}
