//! What grew by more than it may.
//!
//! In: figures of two runs and the growth that is allowed. Out: the whole, where CPU time grew by more and the growth is
//! significant; and each query and stage of both runs that is a twentieth of either, where it grew by more even when twice the
//! error is taken off: they are many, and one of many grows by chance. What has no error is not judged.

use emberscope_api::{Change, Checked, ComparedQuery, ComparedStage, ComparedWhole, Judged};
use emberscope_export::SIGNIFICANT;

/// The part of a run below which a query or a stage is not judged.
const LEAST_SHARE: f64 = 0.05;

/// Judges the growth of CPU time; `allowed` is a part, as 0.1.
pub fn judge(
    allowed: f64,
    whole: &ComparedWhole,
    queries: &[ComparedQuery],
    stages: &[ComparedStage],
) -> Judged {
    let is_large = |cpu: &Change| {
        let shares = [cpu.left_share, cpu.right_share];
        shares.into_iter().flatten().any(|share| share >= LEAST_SHARE)
    };
    let queries = queries.iter().filter(|query| query.only.is_none() && is_large(&query.cpu));
    let stages = stages.iter().filter(|stage| stage.only.is_none() && is_large(&stage.cpu));
    let all: Vec<(&'static str, String, &Change)> =
        std::iter::once(("whole", "all tasks".to_owned(), &whole.cpu))
            .chain(queries.map(|query| ("query", query.description.clone(), &query.cpu)))
            .chain(stages.map(|stage| ("stage", name(stage), &stage.cpu)))
            .collect();
    let checked = all.into_iter().map(|(of, name, cpu)| {
        let [growth, error] = [cpu.pair.difference, cpu.pair.difference_error].map(|of| cpu.pair.of_left(of));
        let grew = growth.zip(error).is_some_and(|(growth, error)| {
            let noise = SIGNIFICANT * error;
            if of == "whole" { growth > allowed.max(noise) } else { growth - noise > allowed }
        });
        Checked { of: of.into(), name, growth, error, failed: grew }
    });
    let checked: Vec<Checked> = checked.collect();
    let failed = checked.iter().filter(|checked| checked.failed).count() as u64;
    Judged { fail_over: allowed, failed, checked }
}

fn name(stage: &ComparedStage) -> String {
    let number = |stage: &Option<String>| stage.clone().unwrap_or_default();
    let name = stage.name.clone().unwrap_or_else(|| "a stage without a name".to_owned());
    format!("{name} (stage {}, was {})", number(&stage.right_stage), number(&stage.left_stage))
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_api::Pair;

    fn change(left: f64, right: f64, error: Option<f64>, share: f64) -> Change {
        let pair = Pair {
            left_seconds: Some(left),
            right_seconds: Some(right),
            difference: Some(right - left),
            difference_error: error,
            ..Pair::default()
        };
        Change { pair, left_share: Some(share), ..Change::default() }
    }

    #[test]
    fn the_whole_counts_when_it_is_significant_and_a_part_with_twice_its_error_off() {
        let judged = |right: f64, error| {
            let cpu = change(100.0, right, error, 1.0);
            let whole = ComparedWhole { cpu: cpu.clone(), ..ComparedWhole::default() };
            let stage = ComparedStage { cpu, ..ComparedStage::default() };
            let judged = judge(0.1, &whole, &[], &[stage]);
            judged.checked.iter().map(|checked| checked.failed).collect::<Vec<_>>()
        };
        assert_eq!(judged(115.0, Some(2.0)), [true, true]);
        assert_eq!(judged(115.0, Some(3.0)), [true, false]);
        for within in
            [judged(115.0, Some(8.0)), judged(109.0, Some(0.0)), judged(200.0, None), judged(80.0, Some(0.1))]
        {
            assert_eq!(within, [false, false]);
        }
    }

    #[test]
    fn what_is_small_or_of_one_run_is_not_judged() {
        let query = |share, only: Option<&'static str>| ComparedQuery {
            description: "q".to_owned(),
            only: only.map(Into::into),
            cpu: change(1.0, 2.0, Some(0.1), share),
            ..ComparedQuery::default()
        };
        let stage = ComparedStage { cpu: change(1.0, 2.0, Some(0.1), 0.5), ..ComparedStage::default() };
        let queries = [query(0.5, None), query(0.04, None), query(0.5, Some("right"))];
        let judged = judge(0.1, &ComparedWhole::default(), &queries, &[stage]);
        let of: Vec<(&str, bool)> =
            judged.checked.iter().map(|checked| (&*checked.of, checked.failed)).collect();
        assert_eq!((of, judged.failed), (vec![("whole", false), ("query", true), ("stage", true)], 2));
        assert_eq!(judged.checked.get(1).and_then(|query| query.growth), Some(1.0));
    }
}
