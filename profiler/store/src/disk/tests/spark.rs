//! What Spark says of applications: the same answer wherever it is kept, and gone with the last windows that need it.

use super::super::super::spark::tests::fact;
use super::merged::after_every_start;
use super::*;
use emberscope_model::{SparkFact, SparkFactKind, SparkPlan, SparkStages};
use std::fs;

/// What is kept of an application's stages, asked for over all windows.
fn answer(store: &dyn Store, app: &str) -> Option<SparkStages> {
    SparkStages::of_facts(app, store.spark_facts(app, range(0, 1 << 20)).unwrap())
}

fn stage(app: &str, id: u64, fetched: u64) -> SparkFact {
    fact(app, SparkFactKind::Stage, &id.to_string(), fetched)
}

/// Windows of two parts: the driver of `app-1` is asked in each, and goes.
fn driver_lives(store: &dyn Store, settle: impl Fn()) {
    let sql = SparkFact { refs: [2].into(), ..fact("app-1", SparkFactKind::Sql, "7", 1) };
    let executor = fact("app-1", SparkFactKind::Executor, "1", 1);
    let operators = Some("0 - Exchange\n1 1 Project\n2 1 Scan parquet db.sales\n".into());
    let refs = [1, 0, 2, 1].into();
    let plan = SparkFact { description: operators, refs, ..fact("app-1", SparkFactKind::Plan, "7", 1) };
    for (number, window) in (0..).zip(some(4)) {
        store.append(window);
        assert!(store.learn(&[
            stage("app-1", number, 1),
            stage("app-2", 9, 1),
            sql.clone(),
            executor.clone(),
            plan.clone()
        ]));
        if number == 1 {
            settle();
        }
    }
    let long = SparkFact { name: "x".repeat(1000).into(), ..stage("app-1", 8, 1) };
    assert!(store.learn(&[long]), "one that is refused is no reason to come again");
    let ended = SparkFact { ended: Some(at(40)), executor_cpu_ns: 99, ..stage("app-1", 0, 2) };
    assert!(store.learn(&[ended]));
}

#[test]
fn names_are_the_same_while_the_driver_lives_and_after_every_start() {
    let (dir, memory) = (tempfile::tempdir().unwrap(), MemoryStore::new(MemoryStoreConfig::default()));
    let store = open(dir.path());
    driver_lives(&memory, || ());
    driver_lives(&store, || store.settle());
    let live = answer(&memory, "app-1").expect("the driver was asked");
    assert_eq!((live.stages.len(), live.stages[0].executor_cpu_ns, live.beside.len()), (4, 99, 3));
    let plan = live.beside.iter().find_map(SparkPlan::of_fact).expect("a plan");
    assert_eq!((plan.0, plan.1.nodes().len(), plan.1.edges()), (7, 3, &[(1, 0), (2, 1)][..]));
    assert_eq!(live.stages[0].sql.as_ref().map(|sql| sql.id), Some(7));
    let other = answer(&memory, "app-2");
    let same = |store: &DiskStore, when: &str| {
        assert_eq!(answer(store, "app-1").as_ref(), Some(&live), "{when}");
        assert_eq!(answer(store, "app-2"), other, "{when}");
        assert_eq!(answer(store, "app-3"), None, "{when}: nobody said anything");
        assert_eq!(store.disk().unwrap().set_aside, 0, "{when}");
    };
    let usage = store.usage();
    assert_eq!((usage.facts, usage.facts_refused), (4 + 2 * 4 + 1, 1), "each in both parts");
    let store = after_every_start(dir.path(), store, same);
    store.relabel(&process(0), &process(1));
    store.settle();
    drop(store);
    same(&open(dir.path()), "with labels that became known late");
}

#[test]
fn facts_are_found_with_their_windows_and_go_with_the_last_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for (number, window) in some(2).into_iter().enumerate() {
        store.append(window);
        store.learn(&[stage("app-1", number as u64, 1)]);
        store.settle();
    }
    // Spark is read a while after the windows, so that later parts are looked at too, and earlier ones are not.
    let ids = |from, until| {
        let facts = store.spark_facts("app-1", range(from, until)).unwrap().facts;
        facts.iter().map(|fact| fact.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(0, 10), ["0", "1"]);
    assert_eq!(ids(10, 20), ["1"]);
    assert_eq!(ids(100_000, 100_010), [""; 0]);
    drop(store);
    let blocks = super::disks::files(&dir.path().join("blocks"));
    fs::remove_dir_all(&blocks[0]).unwrap();
    let store = open(dir.path());
    let left = answer(&store, "app-1").unwrap();
    assert_eq!(left.stages.iter().map(|stage| stage.id).collect::<Vec<_>>(), [1]);
}

#[test]
fn without_a_window_there_is_nothing_to_keep_facts_with() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    assert!(!store.learn(&[stage("app-1", 1, 1)]));
    assert_eq!(answer(&store, "app-1"), None);
    store.append(some(1).remove(0));
    assert!(store.learn(&[stage("app-1", 1, 1)]));
    assert!(answer(&store, "app-1").is_some());
}

#[test]
fn a_block_without_facts_has_no_table_of_them_and_a_spoilt_one_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.append(some(1).remove(0));
    store.settle();
    let path = |name: &str| super::disks::files(&dir.path().join("blocks"))[0].join(name);
    assert!(path("ledger.parquet").exists() && !path("spark.parquet").exists());
    assert_eq!(answer(&store, "app-1"), None);
    store.append(some(2).remove(1));
    store.learn(&[stage("app-1", 1, 1)]);
    store.settle();
    let table = super::disks::files(&dir.path().join("blocks"))[1].join("spark.parquet");
    let mut bytes = fs::read(&table).unwrap();
    bytes[9] ^= 1;
    fs::write(&table, bytes).unwrap();
    assert_eq!(answer(&store, "app-1"), None);
    assert_eq!(store.disk().unwrap().set_aside, 1);
    assert!(samples(&store) > 0, "the other block answers");
}
