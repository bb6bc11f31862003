//! Imports on a disk that fails.

use super::*;
use crate::{ImportFacts, Importing};
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
