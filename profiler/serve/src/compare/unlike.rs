//! How unlike two queries, or two stages, of two runs are: what is the same thing differs least.
//!
//! In: queries and stages of one key (`rows`). Out: a number; two that are unlike by 1 are not one. The line in a call site
//! (`count at Job.scala:33`) moves when code above it changes, but it tells apart what else is equal. Stages that Spark begins from a
//! thread of its own have that pool's call site for a name (with adaptive execution all but a query's last): within their query they go
//! with any.

use super::side::{RunQuery, Stage};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Samples of a stage from which on their operators tell what it is.
const ENOUGH: u64 = 30;
/// How unlike things are whose line, plan or number of tasks is another. Two that are unlike by 1 are not one.
const OTHER_LINE: f64 = 0.3;
const OTHER_PLAN: f64 = 0.4;
const OTHER_TASKS: f64 = 0.3;
/// The same where all samples are of other operators.
const OTHER_OPERATORS: f64 = 0.8;
/// The same where one of two stages of a query has the name of a pool's thread.
const NAME_OF_A_POOL: f64 = 0.1;
/// Stages of a query with names that tell them apart.
const OTHER_NAME: f64 = 10.0;

/// Where a call site of a pool's thread is (java.util.concurrent, JDK 8 to 25): no program's own code.
const POOLS: [&str; 4] = [
    " at FutureTask.java",
    " at CompletableFuture.java",
    " at ThreadPoolExecutor.java",
    " at Executors.java",
];

/// A call site without its line, and the line.
pub fn site(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once(':') {
        Some((site, line)) if !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) => {
            (site, Some(line))
        }
        _ => (name, None),
    }
}

fn penalty(is_other: bool, penalty: f64) -> f64 {
    if is_other { penalty } else { 0.0 }
}

/// How unlike two queries are.
pub fn unlike_queries(left: &RunQuery, right: &RunQuery) -> f64 {
    let line = penalty(site(&left.description).1 != site(&right.description).1, OTHER_LINE);
    line + penalty(plan_changed(left, right) == Some(true), OTHER_PLAN)
}

/// Whether the plans of two queries have other operators; None where one is not known.
pub fn plan_changed(left: &RunQuery, right: &RunQuery) -> Option<bool> {
    Some(left.shape.as_ref()? != right.shape.as_ref()?)
}

/// What Spark calls a stage.
pub fn name(stage: &Stage) -> &str {
    stage.told.as_ref().map_or("", |told| &told.name)
}

/// How unlike the call sites of two stages of one query, or of one name, are.
fn unlike_sites(left: &str, right: &str) -> f64 {
    let [(left, line), (right, other)] = [left, right].map(site);
    match [left, right].map(|site| POOLS.iter().any(|pool| site.ends_with(pool))) {
        [false, false] => penalty(left != right, OTHER_NAME) + penalty(line != other, OTHER_LINE),
        [true, true] => 0.0,
        _ => NAME_OF_A_POOL,
    }
}

/// How unlike two stages of one query are, or of one name.
pub fn unlike_stages(left: &Stage, right: &Stage) -> f64 {
    let count = |stage: &Stage| stage.operators.values().map(|samples| samples.count).sum::<u64>();
    let (lefts, rights) = (count(left), count(right));
    let operators = if lefts.min(rights) < ENOUGH {
        0.0
    } else {
        let names: BTreeSet<&Cow<'static, str>> =
            left.operators.keys().chain(right.operators.keys()).collect();
        let share = |stage: &Stage, name: &Cow<'static, str>, all| {
            stage.operators.get(name).map_or(0.0, |samples| samples.count as f64 / all as f64)
        };
        names.iter().map(|name| (share(left, name, lefts) - share(right, name, rights)).abs()).sum::<f64>()
            / 2.0
    };
    unlike_sites(name(left), name(right))
        + penalty(left.tasks.len() != right.tasks.len(), OTHER_TASKS)
        + OTHER_OPERATORS * operators
}

#[cfg(test)]
mod tests {
    use super::super::align::{Pair, align};
    use super::*;
    use emberscope_api::SparkStage;

    fn stages(names: &[&str]) -> Vec<Stage> {
        let stage = |(at, name): (usize, &&str)| Stage {
            id: at.to_string(),
            told: Some(SparkStage { name: (*name).to_owned(), sql_id: Some(0), ..SparkStage::default() }),
            query: Some(0),
            tasks: Vec::new(),
            operators: Default::default(),
        };
        names.iter().enumerate().map(stage).collect()
    }

    fn pairs(left: &[&str], right: &[&str]) -> Vec<Pair> {
        align(&stages(left), &stages(right), |_, _| (), unlike_stages)
    }

    #[test]
    fn with_adaptive_execution_in_one_run_stages_go_by_their_place_in_the_query() {
        let pool = "$anonfun$withThreadLocalCaptured$1 at CompletableFuture.java:1789";
        let older = "$anonfun$withThreadLocalCaptured$1 at FutureTask.java:264";
        let newer = "$anonfun$withThreadLocalCaptured$1 at CompletableFuture.java:1804";
        let (mine, both) = ("collectAsList at Job.java:20", [(Some(0), Some(0)), (Some(1), Some(1))]);
        assert_eq!(pairs(&[mine, mine], &[pool, mine]), both);
        assert_eq!(pairs(&[pool, mine], &[older, mine]), both, "another Spark");
        let many = vec![pool; 4];
        assert_eq!(pairs(&many, &[newer; 4]).len(), 4, "another JDK");
        assert_eq!(
            pairs(&[mine, mine], &[pool, pool, mine]),
            [(Some(0), Some(0)), (Some(1), Some(2)), (None, Some(1))],
            "one more stage has no partner"
        );
        assert_eq!(pairs(&["count at A.java:1"], &[mine]), [(Some(0), None), (None, Some(0))]);
    }
}
