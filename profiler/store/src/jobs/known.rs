//! What Spark said of an application's stages: the job and the execution of each.
//!
//! In: an application and a range. Out: the value of a label for a stage, and a condition on such a label as one on stages,
//! so that the store answers it as it answers every other.

use crate::door::Store;
use crate::error::StoreError;
use emberscope_model::{FastMap, LabelKey, MatchOp, Matcher, SparkStage, SparkStages, TimeRange};
use std::sync::Arc;

/// The value of a stage of which Spark said nothing that is kept.
pub const UNKNOWN: &str = "unknown";

/// The job and the execution of each stage of an application, by the stage's label; empty: it is of none.
#[derive(Debug, Default)]
pub struct Known(FastMap<Arc<str>, [Arc<str>; 2]>);

/// A job, else an execution.
const fn place(key: LabelKey) -> usize {
    matches!(key, LabelKey::Sql) as usize
}

impl Known {
    /// What is kept of an application, and what Spark said of it `later`, which counts where both tell of a stage.
    ///
    /// # Errors
    /// As [`Store::spark_facts`].
    pub fn of(
        store: &dyn Store,
        app: &str,
        range: TimeRange,
        later: Option<&SparkStages>,
    ) -> Result<Self, StoreError> {
        if app.is_empty() {
            return Ok(Self::default());
        }
        let kept = SparkStages::of_facts(app, store.spark_facts(app, range)?);
        let of = |stage: &SparkStage| {
            // The first is the one that made it (`Stage.firstJobId`, Spark 3.5); for later ones it was there.
            let job = stage.job_ids.first().map(u32::to_string).unwrap_or_default();
            let sql = stage.sql.as_ref().map(|sql| sql.id.to_string()).unwrap_or_default();
            (stage.id.to_string().into(), [job.into(), sql.into()])
        };
        let mut all: FastMap<Arc<str>, [Arc<str>; 2]> = FastMap::default();
        for (stage, told) in kept.iter().chain(later).flat_map(|told| &told.stages).map(of) {
            // Spark may have told of its stages and not of their jobs.
            let known = all.entry(stage).or_default();
            for (known, told) in
                known.iter_mut().zip(told).filter(|(_, told): &(_, Arc<str>)| !told.is_empty())
            {
                *known = told;
            }
        }
        Ok(Self(all))
    }

    /// The value of a stage; what is of no stage has none.
    pub fn value(&self, key: LabelKey, stage: &str) -> Arc<str> {
        let told = || self.0.get(stage).and_then(|told| told.get(place(key)));
        match stage {
            "" => Arc::default(),
            _ => told().cloned().unwrap_or_else(|| UNKNOWN.into()),
        }
    }

    /// Whether the condition leaves nothing out.
    pub fn all_fulfil(&self, matcher: &Matcher) -> bool {
        let mut known = self.0.keys().map(|stage| self.value(matcher.key, stage));
        matcher.accepts("") && matcher.accepts(UNKNOWN) && known.all(|value| matcher.accepts(&value))
    }

    /// The condition as one on stages.
    pub fn on_stages(&self, matcher: &Matcher) -> Matcher {
        let fulfil = |wanted: bool| {
            let stages =
                self.0.keys().filter(move |stage| matcher.accepts(&self.value(matcher.key, stage)) == wanted);
            let without = (matcher.accepts("") == wanted).then(String::new);
            stages.map(|stage| stage.to_string()).chain(without).collect()
        };
        let op = match matcher.accepts(UNKNOWN) {
            true => MatchOp::NotIn(fulfil(false)),
            false => MatchOp::In(fulfil(true)),
        };
        Matcher { key: LabelKey::Stage, op }
    }
}
