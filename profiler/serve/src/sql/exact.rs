//! What the tasks of each stage used and waited for, exactly and by samples of waits.
//!
//! In: the query of the stages. Out: by application, stage and attempt the kernel's accounts of the tasks' own threads, and
//! their waits by reason.

use crate::error::ApiError;
use crate::figures::Figures;
use crate::waits::Waits;
use emberscope_model::{LabelKey, Query, SampleKind, ThreadClass};
use emberscope_store::Store;
use std::collections::BTreeMap;

/// What tells attempts of stages apart.
const KEYS: [LabelKey; 3] = [LabelKey::App, LabelKey::Stage, LabelKey::StageAttempt];

/// Of the own threads of some tasks.
#[derive(Clone, Copy, Default)]
pub struct Used {
    /// The kernel's accounts.
    pub figures: Figures,
    /// What they waited for.
    pub waits: Waits,
}

impl Used {
    /// Adds those of other tasks.
    pub fn add(&mut self, other: &Self) {
        self.figures.add(&other.figures);
        self.waits.add_all(&other.waits);
    }
}

/// By application, stage and attempt.
pub type ByStage = BTreeMap<[String; KEYS.len()], Used>;

/// Of the stages of a query; empty where its samples are not of CPU time.
///
/// # Errors
/// What the store fails with.
pub fn by_stage(store: &dyn Store, query: &Query) -> Result<ByStage, ApiError> {
    let mut out = ByStage::new();
    if query.kind != SampleKind::Cpu {
        return Ok(out);
    }
    let by = [KEYS[0], KEYS[1], KEYS[2], LabelKey::ThreadClass];
    for line in store.ledger(query.range, &query.selection, &by)? {
        let value = |key| line.label(key).map_or("", |value| value);
        if value(LabelKey::ThreadClass) == ThreadClass::Task.slug() {
            out.entry(KEYS.map(|key| value(key).to_owned())).or_default().figures.add_exact(&line);
        }
    }
    for total in store.totals(&Query { kind: SampleKind::OffCpu, ..query.clone() })? {
        if total.labels.get(LabelKey::ThreadClass) == ThreadClass::Task.slug() {
            let key = KEYS.map(|key| total.labels.get(key).to_owned());
            out.entry(key).or_default().waits.add(total.labels.get(LabelKey::Wait), total.weight);
        }
    }
    Ok(out)
}
