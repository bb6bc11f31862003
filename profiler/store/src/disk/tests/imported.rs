//! Imports on a disk that fails, and of Spark's words alone.

use super::super::super::spark::tests::fact;
use super::*;
use crate::{ImportFacts, Importing};
use emberscope_model::SparkFactKind;
use std::fs;

#[test]
fn windows_whose_block_could_not_be_written_are_written_by_the_next_call() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let facts = ImportFacts { digest: "aa".to_owned(), file: "a.folded".to_owned(), at_ns: 1 };
    let mut importing = Importing::begin(dir.path(), 1, facts).unwrap();
    let (first, second) = (window(0, &[(1, 0, 1, 3, 0)]), window(7200, &[(1, 0, 1, 4, 0)]));
    importing.append(&first).unwrap();
    let aside = dir.path().join("imports/.aa");
    fs::remove_dir(&aside).unwrap();
    for _ in 0..2 {
        let error = importing.append(&second).unwrap_err();
        assert!(matches!(error, DiskStoreError::Block(_)), "{error}");
    }
    fs::create_dir(&aside).unwrap();
    importing.append(&second).unwrap();
    assert_eq!(importing.commit().unwrap().0, 2);
    assert_eq!(samples(&open(dir.path())), 7);
}

#[test]
fn words_of_spark_are_kept_without_samples() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let facts = ImportFacts { digest: "bb".to_owned(), file: "app-1".to_owned(), at_ns: 1 };
    let mut importing = Importing::begin(dir.path(), 1, facts).unwrap();
    let stage = |id: u64| fact("app-1", SparkFactKind::Stage, &id.to_string(), 1);
    assert_eq!(importing.learn(at(3600), &[stage(1)]).unwrap(), 0);
    let many: Vec<_> = (0..100_000).map(stage).collect();
    assert!(importing.learn(at(7200), &many).unwrap() > 0, "there is no room for all of them");
    assert_eq!(importing.commit().unwrap().0, 2);
    let store = open(dir.path());
    let ids = |from, until| {
        let facts = store.spark_facts("app-1", range(from, until)).unwrap().facts;
        facts.iter().map(|fact| fact.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(3590, 3599), ["1"], "read up to an hour later");
    assert_eq!(ids(7201, 7300), [""; 0], "all was read before");
    assert!(ids(3601, 3700).len() > 1000);
    assert_eq!(samples(&store), 0);
    assert!(store.imported("bb").is_some());
}
