//! Merging that was cut off, and blocks that are damaged.

use super::*;

#[test]
fn a_kill_between_any_two_steps_counts_nothing_twice() {
    let root = tempfile::tempdir().unwrap();
    let (made, done, dir) = (root.path().join("made"), root.path().join("done"), root.path().join("dir"));
    let plain = written(&made, 4);
    copy(&made, &done);
    drop(merged(merging(&done)));
    let old = blocks(&made);
    let new = blocks(&done).remove(0);
    let name = new.file_name().unwrap().to_str().unwrap().to_owned();
    // Not renamed yet, and not even whole.
    copy(&made, &dir);
    copy(&new, &dir.join("blocks").join(format!(".{name}")));
    fs::remove_file(dir.join("blocks").join(format!(".{name}")).join("frames.parquet")).unwrap();
    let store = open(&dir);
    assert_same(&plain, &store, "not renamed");
    assert_eq!(block_count(&store), (4, 0));
    drop(store);
    // Renamed, and some of the old ones are removed, or on their way out.
    for removed in 0..=old.len() {
        copy(&made, &dir);
        copy(&new, &dir.join("blocks").join(&name));
        for (place, block) in old.iter().enumerate().take(removed) {
            let here = dir.join("blocks").join(block.file_name().unwrap());
            if place + 1 < removed {
                fs::remove_dir_all(here).unwrap();
            } else {
                let gone = format!(".gone-{}", here.file_name().unwrap().to_str().unwrap());
                fs::rename(&here, here.with_file_name(gone)).unwrap();
            }
        }
        for place in ["a start", "the next one"] {
            let store = open(&dir);
            assert_eq!(block_count(&store), (1, 0), "{removed} {place}");
            assert_same(&plain, &store, &format!("{removed} were removed, {place}"));
            drop(store);
            assert_eq!(blocks(&dir).len(), 1, "{removed} {place}");
        }
    }
    // The journal of a part that was merged stayed: removing it failed, then the daemon was killed.
    copy(&done, &dir);
    let journals = root.path().join("journals");
    let store = open(&journals);
    some(1).into_iter().for_each(|window| store.append(window));
    drop(store);
    let journal = files(&journals.join("journal")).remove(0);
    for number in 1..=4 {
        fs::copy(&journal, dir.join(format!("journal/{number:012}.journal"))).unwrap();
    }
    let store = open(&dir);
    assert_same(&plain, &store, "with old journals");
    assert_eq!((block_count(&store), store.disk().unwrap().recovered_windows), ((1, 0), 0));
}

#[test]
fn where_the_merged_block_is_damaged_the_old_ones_answer() {
    let root = tempfile::tempdir().unwrap();
    let (made, done, dir) = (root.path().join("made"), root.path().join("done"), root.path().join("dir"));
    let plain = written(&made, 3);
    copy(&made, &done);
    drop(merged(merging(&done)));
    let new = blocks(&done).remove(0);
    for file in files(&new) {
        copy(&made, &dir);
        let here = dir.join("blocks").join(new.file_name().unwrap());
        copy(&new, &here);
        let file = here.join(file.file_name().unwrap());
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs::write(&file, bytes).unwrap();
        let store = open(&dir);
        if file.extension().is_some_and(|extension| extension == "parquet") {
            assert_eq!(block_count(&store), (3, 1), "{}", file.display());
            assert_same(&plain, &store, "the old ones");
        }
    }
    // An old one that is damaged goes aside, and the others are merged.
    copy(&made, &dir);
    let file = blocks(&dir).remove(1).join("nodes.parquet");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&file, bytes).unwrap();
    let store = merged(merging(&dir));
    store.settle();
    assert_eq!(block_count(&store), (1, 1));
    let lost: u64 = some(2)[1].rows.iter().map(|row| row.count).sum();
    assert_eq!(samples(&store), samples(&plain) - lost);
}
