//! Merged blocks: every answer as before, whatever happens meanwhile.

use super::disks::files;
use super::kills::Killer;
use super::same::assert_same;
use super::*;
use std::fs;
use std::process::Command;

const DIR: &str = "EMBERSCOPE_TEST_MERGED";

fn merging(dir: &Path) -> DiskStoreConfig {
    DiskStoreConfig { merge_after: Duration::ZERO, ..config(dir) }
}

/// Opens a store and merges what is to be.
fn merged(config: DiskStoreConfig) -> DiskStore {
    let store = DiskStore::open(config).unwrap();
    for _ in 0..=store.disk().unwrap().blocks {
        store.settle();
    }
    store
}

/// A block of each of some windows, and the same in plain.
fn written(dir: &Path, windows: u64) -> PlainStore {
    let plain = PlainStore::default();
    let store = open(dir);
    for window in some(windows) {
        plain.append(window.clone());
        store.append(window);
        store.settle();
    }
    assert_eq!(store.disk().unwrap().blocks, windows as usize);
    plain
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
}

fn blocks(dir: &Path) -> Vec<PathBuf> {
    files(&dir.join("blocks"))
}

fn block_count(store: &DiskStore) -> (usize, u64) {
    let disk = store.disk().unwrap();
    (disk.blocks, disk.set_aside)
}

type Rows = Vec<(Vec<(u64, u64, u64, u64, u64)>, bool)>;

fn rows() -> impl Strategy<Value = Rows> {
    let row = (0_u64..4, 0_u64..8, 0_u64..60, 1_u64..90, prop_oneof![Just(0), 0_u64..1000]);
    prop::collection::vec((prop::collection::vec(row, 0..30), any::<bool>()), 2..9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn no_answer_changes(rows in rows(), late in 0_u8..3, before in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let plain = PlainStore::default();
        let store = open(dir.path());
        for (number, (rows, sealed)) in rows.iter().enumerate() {
            let window = window(number as u64 * 10, rows);
            plain.append(window.clone());
            store.append(window);
            if *sealed {
                store.settle();
            }
        }
        store.settle();
        let (from, to) = (process(0), process(1));
        let change = |store: &dyn Store| match late {
            0 => store.relabel(&from, &to),
            1 => store.forget(&from),
            _ => {}
        };
        // Late labels stop at the first block that does not have the process, and a merged one has all of them.
        let everywhere = rows.iter().all(|(rows, _)| rows.iter().any(|row| row.0 == 0));
        if before && everywhere {
            change(&plain);
            change(&store);
            store.settle();
        }
        assert_same(&plain, &store, "blocks of an hour");
        drop(store);
        let store = merged(merging(dir.path()));
        prop_assert_eq!(block_count(&store), (1, 0));
        prop_assert_eq!(blocks(dir.path()).len(), 1);
        assert_same(&plain, &store, "merged");
        change(&plain);
        change(&store);
        store.settle();
        assert_same(&plain, &store, "merged, then changed");
        drop(store);
        let store = open(dir.path());
        assert_same(&plain, &store, "merged, read by the next start");
        prop_assert_eq!(block_count(&store), (1, 0));
    }
}

#[test]
fn rows_that_are_read_in_several_stretches_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let plain = written(dir.path(), 1);
    let store = open(dir.path());
    for window in some(8).into_iter().skip(1) {
        plain.append(window.clone());
        store.append(window);
    }
    store.settle();
    let held = read(&store.shared.held);
    for rows_at_once in [1, 50, 1000] {
        let keep = super::super::super::part::Keep { grain: None, tasks: true, rows_at_once };
        let mut part = Part::default();
        for block in &held.blocks {
            part.gather(&block.view(0).unwrap(), &Selection::all(), keep).unwrap();
        }
        let again = tempfile::tempdir().unwrap();
        fs::create_dir(again.path().join("blocks")).unwrap();
        let origin = super::super::super::block::Origin::default();
        super::super::super::block::write(&part, 1, &again.path().join("blocks"), false, origin).unwrap();
        assert_same(&plain, &open(again.path()), &format!("{rows_at_once} rows at once"));
    }
}

#[test]
fn only_small_neighbours_of_an_hour_that_is_over_are_merged() {
    let root = tempfile::tempdir().unwrap();
    let (made, whole) = (root.path().join("made"), root.path().join("copy"));
    let plain = written(&made, 6);
    copy(&made, &whole);
    // Their hour is not over for so long.
    let waiting = DiskStoreConfig { merge_after: Duration::MAX, ..config(&whole) };
    assert_eq!(block_count(&merged(waiting)), (6, 0));
    // A part of the same hour is open: more of it may come.
    open(&whole).append(window(60, &[(1, 1, 1, 5, 0)]));
    let store = DiskStore::open(merging(&whole)).unwrap();
    store.shared.work();
    assert_eq!(block_count(&store), (6, 0));
    drop(store);
    copy(&made, &whole);
    // Each is an hour of its own.
    let short = DiskStoreConfig { block_length: Duration::from_secs(10), ..merging(&whole) };
    assert_eq!(block_count(&merged(short)), (6, 0));
    // A merged one may be as large as any two, or not even as one.
    let large = |memory_bytes| DiskStoreConfig { memory_bytes, ..merging(&whole) };
    assert_eq!(block_count(&merged(large(1))), (6, 0));
    let one = {
        let mut part = Part::default();
        some(1).iter().for_each(|window| drop(part.append(window)));
        part.bytes()
    };
    // Three quarters of it are a little more than one.
    let store = merged(large((one / 3 + 2) * 4));
    let (count, aside) = block_count(&store);
    assert!((2..=3).contains(&count) && aside == 0, "{count}");
    assert_same(&plain, &store, "some were merged");
    drop(store);
    // None is merged twice.
    assert_eq!(block_count(&merged(merging(&whole))).0, count);
}

#[test]
fn a_merged_block_is_smaller_and_gets_coarser_windows() {
    let dir = tempfile::tempdir().unwrap();
    let plain = written(dir.path(), 8);
    let before = open(dir.path()).disk().unwrap().bytes;
    let store = merged(merging(dir.path()));
    let after = store.disk().unwrap().bytes;
    assert!(after * 3 < before, "{after} of {before}");
    drop(store);
    let window = Duration::from_secs(60);
    let roll_ups = vec![RollUp { after: Duration::ZERO, window }];
    let store = merged(DiskStoreConfig { roll_ups, ..merging(dir.path()) });
    assert_eq!(store.disk().unwrap().resolutions, [(window, 1, at(80))]);
    assert_eq!(samples(&store), samples(&plain));
    drop(store);
    // Blocks whose windows are coarser already become one with windows as they are.
    let other = tempfile::tempdir().unwrap();
    let plain = written(other.path(), 8);
    let roll_ups = vec![RollUp { after: Duration::ZERO, window }];
    drop(merged(DiskStoreConfig { roll_ups, ..config(other.path()) }));
    let windows = open(other.path()).usage().windows;
    let store = merged(merging(other.path()));
    assert_eq!((block_count(&store), store.usage().windows), ((1, 0), windows));
    assert_eq!(store.disk().unwrap().resolutions, [(window, 1, at(80))]);
    assert_eq!(samples(&store), samples(&plain));
}

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

#[test]
fn a_query_that_began_before_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let plain = written(dir.path(), 5);
    let store = open(dir.path());
    let old: Vec<Arc<Block>> = read(&store.shared.held).blocks.clone();
    drop(store);
    let store = merged(merging(dir.path()));
    drop(store);
    let store = DiskStore { shared: open(dir.path()).shared.clone(), threads: Mutex::default() };
    // As it was before the merge: what is read of them fails.
    write(&store.shared.held).blocks.clone_from(&old);
    let new = Arc::new(Block::open(&blocks(dir.path()).remove(0)).unwrap());
    assert!(old[0].view(1).is_err());
    store.shared.replace(new, &old);
    for block in &old {
        let error = block.view(1).map(drop).unwrap_err();
        let anew = matches!(&error, StoreError::Unreadable { path, .. } if path.as_os_str().is_empty());
        assert!(anew, "{error}");
    }
    assert_eq!(block_count(&store), (1, 0));
    assert_same(&plain, &store, "begun anew");
}

#[test]
fn many_ask_while_blocks_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    let plain = written(dir.path(), 12);
    let expected = samples(&plain);
    let store = DiskStore::open(DiskStoreConfig { cache_bytes: 1, ..merging(dir.path()) }).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..20).for_each(|_| assert_eq!(samples(&store), expected)));
        }
        store.settle();
    });
    store.settle();
    assert_eq!(block_count(&store), (1, 0));
}

/// Not a test of its own: the process that is killed. Merges, a few blocks at a time, until it is.
#[test]
#[ignore = "no test of its own: it is what the test below starts and kills"]
fn merger() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    drop(merged(DiskStoreConfig { memory_bytes: 60_000, ..merging(Path::new(&dir)) }));
}

#[test]
fn kills_in_the_middle_change_no_answer() {
    let root = tempfile::tempdir().unwrap();
    let (whole, dir) = (root.path().join("whole"), root.path().join("copy"));
    let plain = written(&whole, 10);
    let mut fewer = 0;
    copy(&whole, &dir);
    let mut killer = Killer::of("disk::tests::merged::merger", (DIR, &dir));
    for round in 0..40 {
        copy(&whole, &dir);
        killer.strike();
        let store = open(&dir);
        let (count, aside) = block_count(&store);
        assert_eq!(aside, 0, "round {round}");
        fewer += usize::from(count < 10);
        assert_same(&plain, &store, &format!("round {round}"));
        assert_eq!(blocks(&dir).len(), count, "round {round}");
    }
    assert!(fewer > 0, "no kill came late enough");
}

#[test]
fn retention_takes_a_merged_block_with_what_it_took_the_place_of() {
    let root = tempfile::tempdir().unwrap();
    let (made, dir) = (root.path().join("made"), root.path().join("dir"));
    written(&made, 3);
    copy(&made, &dir);
    let store = merged(merging(&dir));
    // One that could not be removed then.
    let old = blocks(&made).remove(1);
    copy(&old, &dir.join("blocks").join(old.file_name().unwrap()));
    drop(store);
    let store = DiskStore::open(DiskStoreConfig { retention_age: Duration::ZERO, ..config(&dir) }).unwrap();
    store.settle();
    assert_eq!((block_count(&store), store.usage().dropped_for_age), ((0, 0), 3));
    assert!(blocks(&dir).is_empty());
    drop(store);
    // Where so little is kept, an hour in one block would be all of it.
    let bytes = open(&made).disk().unwrap().bytes;
    let store = merged(DiskStoreConfig { retention_bytes: bytes + 1000, ..merging(&made) });
    assert_eq!(block_count(&store), (3, 0));
}

/// Not a test: what merging takes, with the blocks of a directory, each again and again until it is an hour.
#[test]
#[ignore = "no test of its own: it measures the directory with blocks/ that EMBERSCOPE_TEST_MERGED names"]
fn measure() {
    let Some(from) = std::env::var_os(DIR) else { return };
    let root = tempfile::tempdir().unwrap();
    let resident = |what: &str| {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    };
    for times in [1, 8] {
        let dir = root.path().join(format!("{times}"));
        fs::create_dir_all(dir.join("blocks")).unwrap();
        let keep = super::super::super::part::Keep { grain: None, tasks: true, rows_at_once: u64::MAX };
        let (mut number, mut begin) = (0, at(0).floor(Duration::from_secs(3600)));
        for block in (0..times).flat_map(|_| blocks(Path::new(&from))) {
            let block = Block::open(&block).unwrap();
            let mut part = Part::default();
            part.gather(&block.view(0).unwrap(), &Selection::all(), keep).unwrap();
            let first = part.facts.span().unwrap().from;
            let moved = |time: WallTime| WallTime(time.0 - first.0 + begin.0);
            let move_range = |range: &mut TimeRange| {
                (range.from, range.until) = (moved(range.from), moved(range.until));
            };
            part.facts.windows.iter_mut().for_each(|window| move_range(&mut window.range));
            part.ledger.iter_mut().for_each(|line| move_range(&mut line.seen));
            begin = part.facts.span().unwrap().until;
            number += 1;
            let origin = super::super::super::block::Origin::default();
            let to = dir.join("blocks");
            super::super::super::block::write(&part, number, &to, false, origin).unwrap();
        }
        let config = DiskStoreConfig { memory_bytes: 20 << 20, ..config(&dir) };
        let store = DiskStore::open(config.clone()).unwrap();
        let all = Query { range: TimeRange { from: WallTime(0), until: WallTime::now() }, ..query(0, 0) };
        let of = |store: &DiskStore| {
            let summary = store.summary(&all).unwrap();
            (store.disk().unwrap().bytes, summary.quality.samples, summary.windows)
        };
        let before = of(&store);
        println!("{times} times: {number} blocks, bytes, samples, windows {before:?}");
        drop(store);
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let resting = resident("VmRSS:");
        let begun = std::time::Instant::now();
        let store = DiskStore::open(DiskStoreConfig { merge_after: Duration::ZERO, ..config }).unwrap();
        let mut known = usize::MAX;
        while store.disk().unwrap().blocks < known {
            known = store.disk().unwrap().blocks;
            store.settle();
        }
        let (seconds, most) = (begun.elapsed().as_secs_f64(), resident("VmHWM:"));
        let after = of(&store);
        assert_eq!((before.1, before.2), (after.1, after.2));
        let each = |bytes: u64| bytes as f64 / before.1 as f64;
        println!("  {known} blocks {after:?}: {:.2} to {:.2} bytes a sample", each(before.0), each(after.0));
        println!("  {seconds:.1} s, memory {resting} MB before, {most} MB at most");
    }
}
