//! Journals that were cut off, or are of a newer version.

use super::*;

#[test]
fn a_journal_that_was_cut_anywhere_opens() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut sums = vec![0];
    let mut lengths = Vec::new();
    for window in some(4) {
        lengths.push(store.disk().unwrap().journal_bytes);
        store.append(window);
        sums.push(samples(&store));
    }
    drop(store);
    let file = files(&dir.path().join("journal")).remove(0);
    let whole = fs::read(&file).unwrap();
    lengths[0] = 24;
    for length in 0..whole.len() {
        fs::write(&file, &whole[..length]).unwrap();
        let store = open(dir.path());
        // Records that lie wholly before the cut.
        let ends = lengths.iter().skip(1).filter(|end| **end as usize <= length).count();
        assert_eq!(samples(&store), sums[ends], "cut at {length}");
        let cut = length as u64 - if length < 24 { 0 } else { lengths[ends] };
        assert_eq!(store.disk().unwrap().cut_bytes, cut, "cut at {length}");
        if length % 97 == 0 {
            // It goes on where it was cut, and that is read again.
            store.append(window(90, &[(1, 1, 1, 1000, 0)]));
            drop(store);
            assert_eq!(samples(&open(dir.path())), sums[ends] + 1000, "cut at {length}");
        }
        drop(fs::remove_file(&file));
    }
    // A byte that is wrong, anywhere: what is before it is there.
    for place in (24..whole.len()).step_by(13) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x41;
        fs::write(&file, &bytes).unwrap();
        let store = open(dir.path());
        let ends = lengths.iter().skip(1).filter(|end| **end as usize <= place).count();
        assert_eq!(samples(&store), sums[ends], "wrong at {place}");
        for file in files(&dir.path().join("journal")) {
            fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn what_a_newer_version_wrote_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut all = some(3).into_iter();
    store.append(all.next().unwrap());
    store.settle();
    store.append(all.next().unwrap());
    let whole = samples(&store);
    drop(store);
    let journal = files(&dir.path().join("journal")).remove(0);
    let bytes = fs::read(&journal).unwrap();
    let mut newer = bytes.clone();
    newer[8] = 2;
    fs::write(&journal, newer).unwrap();
    let block = files(&dir.path().join("blocks")).remove(0);
    let text = fs::read_to_string(block.join("manifest.json")).unwrap();
    fs::write(block.join("manifest.json"), text.replace("\"format\": 1", "\"format\": 7")).unwrap();
    // It is named and left alone, and sampling goes on under numbers of its own.
    let store = open(dir.path());
    assert_eq!(samples(&store), 0);
    let disk = store.disk().unwrap();
    let says: Vec<_> = disk.set_aside_files.iter().map(|file| file.says.clone()).collect();
    assert!(disk.set_aside == 2 && says[0].contains("format 7") && says[1].contains("format 2"), "{says:?}");
    let missing = || store.merge(&query(0, 15)).unwrap().quality.missing;
    assert_eq!(missing().count, 2, "{:?}", missing());
    store.append(all.next().unwrap());
    store.settle();
    let own = samples(&store);
    assert!(own > 0);
    drop(store);
    assert_eq!(files(&dir.path().join("newer")).len(), 2);
    assert_eq!(samples(&open(dir.path())), own);
    // The newer version is back: it takes what it knows.
    let there = files(&dir.path().join("newer"));
    fs::write(&there[0], bytes).unwrap();
    fs::write(there[1].join("manifest.json"), text).unwrap();
    let store = open(dir.path());
    assert_eq!(samples(&store), whole + own);
    assert_eq!(store.merge(&query(0, 1000)).unwrap().quality.missing.count, 0);
    assert!(files(&dir.path().join("newer")).is_empty());
}
