//! Merged blocks: every answer as before, whatever happens meanwhile.

use super::disks::files;
use super::kills::Killer;
use super::same::assert_same;
use super::*;
use std::fs;
use std::process::Command;

mod broken;
mod meanwhile;
mod measure;

const DIR: &str = "EMBERSCOPE_TEST_MERGED";

pub(super) fn merging(dir: &Path) -> DiskStoreConfig {
    DiskStoreConfig { merge_after: Duration::ZERO, ..config(dir) }
}

/// Opens a store and merges what is to be.
pub(super) fn merged(config: DiskStoreConfig) -> DiskStore {
    let store = DiskStore::open(config).unwrap();
    for _ in 0..=store.disk().unwrap().blocks {
        store.settle();
    }
    store
}

/// A store that has a block and a journal, wherever what it holds may be: looked at there, read again from the journal, in two
/// blocks, in one, and with coarser windows, as which it is given back.
pub(super) fn after_every_start(dir: &Path, store: DiskStore, same: impl Fn(&DiskStore, &str)) -> DiskStore {
    same(&store, "a block and a journal");
    drop(store);
    let store = open(dir);
    same(&store, "the journal was read again");
    store.settle();
    same(&store, "two blocks");
    drop(store);
    let store = merged(merging(dir));
    assert_eq!(store.disk().unwrap().blocks, 1);
    same(&store, "one block of two");
    drop(store);
    let roll_ups = vec![RollUp { after: Duration::ZERO, window: Duration::from_secs(60) }];
    let store = DiskStore::open(DiskStoreConfig { roll_ups, ..config(dir) }).unwrap();
    store.settle();
    same(&store, "with coarser windows");
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
