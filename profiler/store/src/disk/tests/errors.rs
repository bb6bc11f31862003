//! I/O errors and the choice on a full disk.
//!
//! /proc/self/mem is a file of which every read and write at address 0 fails with EIO: a link to it stands for a
//! disk that does.

use super::disks::{Tmpfs, files};
use super::*;
use crate::AnswerLimits;
use std::os::unix::fs::symlink;

const EIO: &str = "(os error 5)";

#[test]
fn an_error_of_the_journals_disk_is_counted_and_costs_no_window() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    symlink("/proc/self/mem", dir.path().join("journal/000000000001.journal")).unwrap();
    let all = some(3);
    let expected: u64 = all.iter().flat_map(|window| &window.rows).map(|row| row.count).sum();
    store.append(all[0].clone());
    let disk = store.disk().unwrap();
    assert!(disk.errors.contains(&("journal", 1)), "{disk:?}");
    assert!(disk.failing.iter().all(|(what, says)| *what == "journal" && says.contains(EIO)), "{disk:?}");
    // What could not be made is made anew with the next window.
    all[1..].iter().for_each(|window| store.append(window.clone()));
    let disk = store.disk().unwrap();
    assert!(disk.failing.is_empty() && disk.pending_bytes == 0, "{disk:?}");
    drop(store);
    assert_eq!(samples(&open(dir.path())), expected);
}

#[test]
fn a_block_that_cannot_be_read_is_set_aside_while_the_rest_answers() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for window in some(2) {
        store.append(window);
        store.settle();
    }
    let newest = store.merge(&query(10, 20)).unwrap().quality.samples;
    let block = files(&dir.path().join("blocks")).remove(0);
    for table in ["samples.parquet", "merged.parquet"] {
        std::fs::remove_file(block.join(table)).unwrap();
        symlink("/proc/self/mem", block.join(table)).unwrap();
    }
    let all = store.merge(&query(0, 1000)).unwrap();
    assert_eq!((all.quality.samples, all.tree.nodes[0].total_count), (newest, newest));
    let disk = store.disk().unwrap();
    assert!(disk.set_aside == 1 && disk.set_aside_files[0].says.contains(EIO), "{disk:?}");
    // Every answer that it would be in tells so, the one that found it and those after a restart too.
    let name = block.file_name().unwrap().to_str().unwrap();
    let told = |store: &DiskStore| {
        let (some, others) = (query(0, 1000), query(10, 20));
        let merged = store.merge(&some).unwrap().quality.missing;
        assert_eq!(store.methods(&some).unwrap().quality.missing, merged);
        assert_eq!(store.summary(&some).unwrap().quality.missing, merged);
        assert_eq!(store.merge(&others).unwrap().quality.missing.count, 0);
        assert_eq!((merged.count, merged.parts[0].name.as_str()), (1, name));
        assert_eq!(merged.parts[0].range, range(0, 10));
        merged.parts[0].says.clone()
    };
    assert_eq!(all.quality.missing.count, 1);
    assert!(told(&store).contains(EIO));
    drop(store);
    assert!(told(&open(dir.path())).contains("`damaged`"));
}

#[test]
fn what_was_cut_off_a_journal_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    some(4).into_iter().for_each(|window| store.append(window));
    drop(store);
    let journal = files(&dir.path().join("journal")).remove(0);
    let mut bytes = std::fs::read(&journal).unwrap();
    let length = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let second = 24 + 8 + length(24);
    bytes[second + 20] ^= 1;
    std::fs::write(&journal, bytes).unwrap();
    for _ in 0..2 {
        let store = open(dir.path());
        assert_eq!(store.merge(&query(0, 10)).unwrap().windows, 1);
        let missing = store.merge(&query(10, 40)).unwrap().quality.missing;
        assert!(missing.count == 1 && missing.parts[0].name.starts_with("000000000001."), "{missing:?}");
    }
}

/// Windows, each a block of its own, on a disk that holds some of them.
fn fill(disk: &Tmpfs, when_full: WhenFull) -> DiskStore {
    let block_length = Duration::from_secs(10);
    let store = DiskStoreConfig { block_length, when_full, ..config(&disk.0) };
    let store = DiskStore::open(store).unwrap();
    for window in some(20) {
        store.append(window);
        store.settle();
    }
    store
}

#[test]
fn a_full_disk_drops_the_oldest_or_stops_writing() {
    let root = tempfile::tempdir().unwrap();
    let Some(disk) = Tmpfs::mount(&root.path().join("drop"), "size=600k") else { return };
    let store = fill(&disk, WhenFull::DropOldest);
    let (usage, now) = (store.usage(), store.disk().unwrap());
    assert!(usage.dropped_for_full > 0 && now.blocks > 0 && now.failing.is_empty(), "{usage:?} {now:?}");
    assert_eq!(usage.dropped_for_full + usage.windows as u64, 20);
    assert_eq!(store.span().unwrap(), range(200 - 10 * usage.windows as u64, 200), "the newest are there");
    drop(store);
    let Some(disk) = Tmpfs::mount(&root.path().join("stop"), "size=600k") else { return };
    let store = fill(&disk, WhenFull::Stop);
    let (usage, now) = (store.usage(), store.disk().unwrap());
    assert!(usage.dropped_for_full == 0 && now.blocks > 0 && !now.failing.is_empty(), "{usage:?} {now:?}");
    assert_eq!(usage.windows, 20, "what does not fit waits in memory");
    assert_eq!(store.span().unwrap(), range(0, 200));
}

#[test]
fn a_query_that_costs_too_much_is_told_which_limit_it_met() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for number in 0..3 {
        some(3).into_iter().for_each(|window| {
            store.append(Window { range: range(number * 3600, number * 3600 + 10), ..window })
        });
        store.settle();
    }
    drop(store);
    let all = query(0, 1 << 20);
    let ask = |answers: AnswerLimits| {
        let store = DiskStore::open(DiskStoreConfig { answers, ..config(dir.path()) }).unwrap();
        let merged = store.merge(&all).map(|answer| answer.quality.samples);
        let told = store.totals(&all).map(|totals| totals.iter().map(|total| total.count).sum::<u64>());
        assert_eq!(store.disk().unwrap().set_aside, 0);
        (merged, told)
    };
    let (one, other) = ask(AnswerLimits { threads: 1, ..AnswerLimits::default() });
    let (samples, same) = (one.unwrap(), other.unwrap());
    assert!(samples > 0 && samples == same);
    for threads in 2..5 {
        let (merged, told) = ask(AnswerLimits { threads, ..AnswerLimits::default() });
        assert_eq!((merged.unwrap(), told.unwrap()), (samples, samples));
        let (merged, told) = ask(AnswerLimits { threads, bytes: 1000, ..AnswerLimits::default() });
        assert!(matches!(merged, Err(StoreError::TooMuch { limit: 1000 })), "{merged:?}");
        // What is kept of the blocks costs no byte any more.
        assert!(matches!(told, Ok(_) | Err(StoreError::TooMuch { limit: 1000 })), "{told:?}");
        let (merged, told) = ask(AnswerLimits { threads, time: Duration::ZERO, ..AnswerLimits::default() });
        assert!(merged.unwrap_err().to_string().contains("query-time"));
        assert!(told.unwrap_err().to_string().contains("query-time"));
        let (merged, _) = ask(AnswerLimits { threads, nodes: 5, ..AnswerLimits::default() });
        assert!(matches!(merged, Err(StoreError::TooLarge { limit: 5, .. })), "{merged:?}");
    }
    let waits = emberscope_model::Waits::default();
    let wanted = waits.wanted();
    drop(waits);
    let gone = wanted.run(|| ask(AnswerLimits::default()).0);
    assert!(matches!(gone, Err(StoreError::Unwanted)), "{gone:?}");
}
