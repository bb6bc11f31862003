//! What a store answers that is read part by part, whatever brings the parts: this machine's disk, a shelf, or memory.
//!
//! In: the parts that a question touches, one after the other. Out: its answer. A part that turns out to be unreadable
//! is set aside, and the question asked again without it. How call trees are merged is the store's own.

use super::error::StoreError;
use super::limits::AnswerLimits;
use super::operators::Parted;
use super::read::{
    LedgerLines, OperatorSeries, PauseLines, Processes, Quantities, Series, Summing, Totals, Values,
};
use super::spark::{Room, SparkWords};
use super::touch::{Needs, Touch};
use super::values::{LabelValue, LabelledSeries};
use super::view::View;
use emberscope_model::{
    LabelKey, LabelTotal, LedgerTotal, MatchOp, Matcher, Missing, Pauses, ProcessRecord, Query, Selection,
    SparkFacts, Summary, TimeRange,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Files that a query may find unreadable before it gives up: each is set aside first.
const MAX_UNREADABLE: usize = 16;

/// Spark is read a while after a stage has ended, and then the next part may be open.
const READ_LATER: Duration = Duration::from_secs(3600);

/// Takes a part into an answer that is in the making.
pub(super) type Add<'a> = dyn FnMut(&dyn View) -> Result<(), StoreError> + 'a;

/// What has the parts that answers are made of.
pub(super) trait Parts {
    /// The length of a window.
    fn length(&self) -> Duration;
    /// What an answer may have.
    fn limits(&self) -> &AnswerLimits;
    /// Shows `add` what the question touches, the newest first.
    fn each(&self, touch: &Touch<'_>, add: &mut Add<'_>) -> Result<(), StoreError>;
    /// A part cannot be read. An error is one that passes: the question ends with it.
    fn set_aside(&self, path: &Path, says: &str) -> Result<(), StoreError>;
    /// What was set aside of what the question touches.
    fn missing(&self, touch: &Touch<'_>) -> Result<Missing, StoreError>;

    /// Asks again without what turns out to be unreadable.
    fn answer<T>(&self, ask: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        for _ in 0..MAX_UNREADABLE {
            match ask() {
                Err(StoreError::Unreadable { path, says }) => self.set_aside(&path, &says)?,
                other => return other,
            }
        }
        ask()
    }

    /// An answer over all parts, one after the other.
    fn ask_summed<'q, A: Summing<'q>>(
        &self,
        query: &'q Query,
        touch: &Touch<'_>,
    ) -> Result<A::Answer, StoreError> {
        let mut answer = self.answer(|| {
            let mut sum = A::new(query, self.limits());
            self.each(touch, &mut |view| sum.add(view))?;
            Ok(sum.finish(self.length()))
        })?;
        A::quality(&mut answer).missing = self.missing(touch)?;
        Ok(answer)
    }

    /// Answers [`super::Store::summary`].
    fn ask_summary(&self, query: &Query) -> Result<Summary, StoreError> {
        let touch = Touch::of(query, &[], Needs::Facts);
        let mut summary = self.answer(|| {
            let mut quantities = Quantities::new(query);
            self.each(&touch, &mut |view| {
                quantities.add(view.facts());
                Ok(())
            })?;
            Ok(quantities.finish(self.length()))
        })?;
        summary.quality.missing = self.missing(&touch)?;
        Ok(summary)
    }

    /// Answers [`super::Store::totals`].
    fn ask_totals(&self, query: &Query) -> Result<Vec<LabelTotal>, StoreError> {
        self.answer(|| {
            let mut totals = Totals::new(query, self.limits());
            // Who asks for something of threads may read tasks out of the sums.
            let of_tasks = query.selection.matchers.iter().any(|matcher| matcher.key.is_of_thread());
            let touch = Touch { of_tasks, ..Touch::of(query, &[], Needs::Facts) };
            self.each(&touch, &mut |view| totals.add(view))?;
            Ok(totals.finish())
        })
    }

    /// Answers [`super::Store::values`].
    fn ask_values(&self, query: &Query, key: LabelKey) -> Result<Vec<LabelValue>, StoreError> {
        self.answer(|| {
            let mut values = Values::new(query, key, self.limits());
            self.each(&Touch::of(query, &[key], Needs::Facts), &mut |view| values.add(view))?;
            Ok(values.finish())
        })
    }

    /// Answers [`super::Store::series`].
    fn ask_series(
        &self,
        query: &Query,
        step: Duration,
        by: &[LabelKey],
    ) -> Result<Vec<LabelledSeries>, StoreError> {
        let step = step.max(self.length());
        let asked = Query { group: by.to_vec(), ..query.clone() };
        if let Some(asked) = Parted::of(&asked) {
            return self.answer(|| {
                let mut series = OperatorSeries::new(&asked, step, self.limits());
                let touch = Touch::of(&asked.query, &asked.query.group, Needs::Trees);
                self.each(&Touch { step: Some(step), ..touch }, &mut |view| series.add(view))?;
                series.finish()
            });
        }
        self.answer(|| {
            let mut series = Series::new(query, step, by, self.limits());
            let touch = Touch { step: Some(step), ..Touch::of(query, by, Needs::Facts) };
            self.each(&touch, &mut |view| series.add(view))?;
            series.finish()
        })
    }

    /// Answers [`super::Store::ledger`].
    fn ask_ledger(
        &self,
        range: TimeRange,
        selection: &Selection,
        by: &[LabelKey],
    ) -> Result<Vec<LedgerTotal>, StoreError> {
        self.answer(|| {
            let mut lines = LedgerLines::new(range, selection, by, self.limits());
            self.each(&Touch::within(range, selection, by, Needs::Ledger), &mut |view| lines.add(view))?;
            Ok(lines.finish())
        })
    }

    /// Answers [`super::Store::pauses`].
    fn ask_pauses(&self, range: TimeRange, selection: &Selection) -> Result<Pauses, StoreError> {
        self.answer(|| {
            let mut lines = PauseLines::new(range, selection, self.limits().label_sets);
            self.each(&Touch::within(range, selection, &[], Needs::Pauses), &mut |view| lines.add(view))?;
            Ok(lines.finish())
        })
    }

    /// Answers [`super::Store::spark_facts`].
    fn ask_spark_facts(&self, app: &str, range: TimeRange) -> Result<SparkFacts, StoreError> {
        let op = MatchOp::In(vec![app.to_owned()]);
        let selection = Selection { matchers: vec![Matcher { key: LabelKey::App, op }] };
        let range = TimeRange { until: range.until.plus(READ_LATER), ..range };
        self.answer(|| {
            let mut words = SparkWords::default();
            self.each(&Touch::within(range, &selection, &[], Needs::Spark), &mut |view| {
                view.spark()?.of_app(app).for_each(|fact| {
                    words.take(fact, Room::BLOCK);
                });
                Ok(())
            })?;
            Ok(SparkFacts { facts: words.iter().cloned().collect(), left_out: words.refused() })
        })
    }

    /// Answers [`super::Store::processes`].
    fn ask_processes(&self, range: TimeRange, selection: &Selection) -> Vec<Arc<ProcessRecord>> {
        let answer = self.answer(|| {
            let mut processes = Processes::default();
            let touch = Touch { of_tasks: false, ..Touch::within(range, selection, &[], Needs::Facts) };
            self.each(&touch, &mut |view| {
                processes.add(view, &range);
                Ok(())
            })?;
            Ok(processes.finish(selection))
        });
        answer.unwrap_or_else(|error| {
            tracing::warn!(%error, "processes are not told");
            Vec::new()
        })
    }
}

/// The questions of [`super::Store`] that [`Parts`] answers: for a store that implements it, or whose field does
/// (`.field`).
macro_rules! asked_of_parts {
    ($($field:tt)*) => {
        fn window_length(&self) -> Duration {
            self $($field)*.length()
        }
        fn summary(&self, query: &Query) -> Result<Summary, StoreError> {
            self $($field)*.ask_summary(query)
        }
        fn totals(&self, query: &Query) -> Result<Vec<LabelTotal>, StoreError> {
            self $($field)*.ask_totals(query)
        }
        fn values(&self, query: &Query, key: LabelKey) -> Result<Vec<LabelValue>, StoreError> {
            self $($field)*.ask_values(query, key)
        }
        fn series(
            &self,
            query: &Query,
            step: Duration,
            by: &[LabelKey],
        ) -> Result<Vec<LabelledSeries>, StoreError> {
            self $($field)*.ask_series(query, step, by)
        }
        fn ledger(
            &self,
            range: TimeRange,
            selection: &Selection,
            by: &[LabelKey],
        ) -> Result<Vec<LedgerTotal>, StoreError> {
            self $($field)*.ask_ledger(range, selection, by)
        }
        fn pauses(
            &self,
            range: TimeRange,
            selection: &Selection,
        ) -> Result<emberscope_model::Pauses, StoreError> {
            self $($field)*.ask_pauses(range, selection)
        }
        fn processes(&self, range: TimeRange, selection: &Selection) -> Vec<Arc<ProcessRecord>> {
            self $($field)*.ask_processes(range, selection)
        }
        fn spark_facts(
            &self,
            app: &str,
            range: TimeRange,
        ) -> Result<emberscope_model::SparkFacts, StoreError> {
            self $($field)*.ask_spark_facts(app, range)
        }
    };
}
pub(super) use asked_of_parts;
