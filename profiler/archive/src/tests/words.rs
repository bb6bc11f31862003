//! What Spark says of an application is in the archive with its windows, and answered from there with the driver gone.

use super::*;
use LabelKey::App;
use emberscope_model::{SparkFact, SparkFactKind, SparkPlan, SparkStages};

fn stage(id: u64, fetched: u64) -> SparkFact {
    SparkFact {
        app: "app-1".into(),
        kind: SparkFactKind::Stage,
        id: id.to_string().into(),
        attempt: 0,
        name: format!("count at App.scala:{id}").into(),
        description: None,
        status: "COMPLETE".into(),
        refs: [1].into(),
        count: 4,
        executor_cpu_ns: 1,
        deserialize_cpu_ns: 2,
        run_time_ms: 3,
        begun: Some(WallTime(1)),
        ended: Some(WallTime(2)),
        source: "http://driver:4040".into(),
        fetched: WallTime(fetched),
    }
}

fn answer(store: &dyn Store, from: u64, until: u64) -> Option<SparkStages> {
    SparkStages::of_facts("app-1", store.spark_facts("app-1", range(from, until)).unwrap())
}

#[test]
fn names_are_answered_from_open_parts_blocks_and_whole_hours() {
    let place = Place::new();
    let config = CompactConfig {
        url: place.url(),
        dir: place.0.path().join("compact"),
        dir_bytes: 1 << 30,
        memory_bytes: 1 << 30,
        app: None,
        range: range(0, 5 * HOUR),
    };
    // The driver is on one node alone.
    let (driver, other) = (place.open("a"), place.open("b"));
    fill(&driver, "a", 0, 60);
    let sql = SparkFact { kind: SparkFactKind::Sql, name: "select 1".into(), ..stage(7, 5) };
    let operators = Some("0 - WriteFiles\n1 1 Project\n2 1 Range\n".into());
    let kind = SparkFactKind::Plan;
    let plan = SparkFact { kind, description: operators, refs: [1, 0, 2, 1].into(), ..sql.clone() };
    assert!(driver.learn(&[stage(3, 5), stage(4, 5), sql, plan]));
    fill(&other, "b", 0, 60);
    let live = answer(&driver, 0, 60).expect("the driver was asked");
    assert_eq!(live.stages[0].sql.as_ref().map(|sql| sql.id), Some(7));
    let plan = live.beside.iter().find_map(SparkPlan::of_fact).expect("its plan");
    assert_eq!((plan.0, plan.1.edges()), (7, &[(1, 0), (2, 1)][..]));
    let same = |when: &str| {
        let reader = place.reader();
        assert_eq!(answer(&reader, 0, 60).as_ref(), Some(&live), "{when}");
        assert_eq!(answer(&reader, 60, HOUR / 2).as_ref(), None, "{when}: no window is that late");
        assert_eq!(reader.spark_facts("app-9", range(0, HOUR)).unwrap().facts, [], "{when}");
        assert_eq!(reader.shelf().reading().set_aside, 0, "{when}");
    };
    place.copy("a");
    place.copy("b");
    same("open parts");
    driver.settle();
    other.settle();
    place.copy("a");
    place.copy("b");
    same("blocks");
    let mut made = Vec::new();
    compact(&config, |one| made.push(one.app)).unwrap();
    assert!(made.contains(&"app-1".to_owned()), "{made:?}");
    let whole = place.reader();
    assert_eq!(answer(&whole, 0, 60).as_ref(), Some(&live), "brought together");
    whole.merge(&query(0, 60, &[(App, "app-1")], &[])).unwrap();
    assert_eq!(whole.shelf().reading().cached_blocks, 1, "the hour alone was read");
}
