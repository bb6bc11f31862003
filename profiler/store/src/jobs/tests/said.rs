//! What Spark said last, and is not kept yet.

use super::*;
use emberscope_model::{Joined, SparkStages, SparkTasks};

/// A driver that has said more than is kept: stage 9 is of query 13, and stage 5 is of that query, too.
struct Said;

impl SparkSource for Said {
    fn stages(&self, _: &str, _: Duration) -> Joined<SparkStages> {
        panic!("a condition asks nobody")
    }
    fn told_stages(&self, app: &str) -> Option<Arc<SparkStages>> {
        let of_a = |id, refs: &[u32]| fact("a", SparkFactKind::Stage, id, refs, WallTime(1));
        // Of stage 1 it did not say which job it is of.
        let facts = vec![
            of_a("1", &[]),
            of_a("5", &[6]),
            of_a("9", &[7]),
            fact("a", SparkFactKind::Sql, "13", &[6, 7], WallTime(1)),
        ];
        SparkStages::of_facts(app, SparkFacts { facts, left_out: 0 }).filter(|_| app == "a").map(Arc::new)
    }
    fn tasks(&self, _: &str, _: u32, _: u32, _: Duration) -> Joined<SparkTasks> {
        panic!("a condition asks nobody")
    }
}

#[test]
fn what_spark_said_last_counts_before_it_is_kept() {
    let store = store();
    let samples = |store: &dyn Store, value: &str| {
        let conditions = [is(A.0, A.1), is(LabelKey::Sql, &[value])];
        store.summary(&query(&[], &conditions)).unwrap().quality.samples
    };
    let values = ["12", "13", "", "unknown"];
    let (kept, said) = (ByJob::new(&store, None), ByJob::new(&store, Some(&Said)));
    assert_eq!(values.map(|value| samples(&kept, value)), [9, 0, 14, 1]);
    assert_eq!(values.map(|value| samples(&said, value)), [9, 7, 8, 0]);
    let group = query(&[LabelKey::Sql], &[is(A.0, A.1)]);
    let labels = |store: &ByJob<'_>| -> Vec<String> {
        drawn(&store.merge(&group).unwrap().tree).into_iter().filter(|line| line.contains('=')).collect()
    };
    assert_eq!(labels(&said), ["1 sql=(none) 0/8", "1 sql=12 0/9", "1 sql=13 0/7"]);
    // Of another application it said nothing.
    let of_b = query(&[], &[is(LabelKey::App, &["b"]), is(LabelKey::Sql, &["7"])]);
    assert_eq!(said.summary(&of_b).unwrap().quality.samples, 16);
}
