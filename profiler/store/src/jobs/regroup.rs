//! Labels that are asked of the store in place of those that it does not have, or not of every process.

use super::known::Known;
use super::{Labels, runs::ByApp};
use emberscope_model::{FastMap, LabelKey};
use std::sync::Arc;

/// What labels are asked of the store in place of others.
pub struct Regroup {
    /// As they were asked for.
    outer: Vec<LabelKey>,
    /// Those that the store has, with the application, and the stage where one tells.
    pub inner: Vec<LabelKey>,
    /// What is kept of each application's stages.
    pub known: FastMap<Arc<str>, Known>,
    /// What each application is a run of.
    pub runs: ByApp,
}

impl Regroup {
    /// For these labels; what is known is for the caller to fill in.
    pub fn new(outer: &[LabelKey]) -> Self {
        let mut inner: Vec<LabelKey> = outer.iter().copied().filter(|key| !key.is_joined()).collect();
        let by_stage = outer.iter().any(|key| key.is_told_by_stage());
        for (key, wanted) in [(LabelKey::App, true), (LabelKey::Stage, by_stage)] {
            if wanted && !inner.contains(&key) {
                inner.push(key);
            }
        }
        Self { outer: outer.to_vec(), inner, known: FastMap::default(), runs: ByApp::default() }
    }

    /// Whether a label is among them that stages tell.
    pub fn is_by_stage(&self) -> bool {
        self.outer.iter().any(|key| key.is_told_by_stage())
    }

    /// The labels of a path, by those that the store has, in their order.
    pub fn labels(&self, inner: &[Arc<str>]) -> Labels {
        let of = |key: LabelKey| {
            let values = self.inner.iter().zip(inner);
            values
                .filter(|(known, _)| **known == key)
                .map(|(_, value)| value.clone())
                .next()
                .unwrap_or_default()
        };
        let told = |key| match self.known.get(&of(LabelKey::App)) {
            Some(known) => known.value(key, &of(LabelKey::Stage)),
            None => Known::default().value(key, &of(LabelKey::Stage)),
        };
        let value = |key: LabelKey| match key {
            LabelKey::AppRun => self.runs.get(&of(LabelKey::App)).cloned().unwrap_or_default(),
            _ if key.is_told_by_stage() => told(key),
            _ => of(key),
        };
        self.outer.iter().map(|key| (*key, value(*key))).collect()
    }
}
