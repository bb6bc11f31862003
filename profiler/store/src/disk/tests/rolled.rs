//! Coarser windows: the same sums for every stretch of whole coarse windows, whatever happens meanwhile.

use super::kills::Killer;
use super::*;
use proptest::test_runner::TestCaseError;
use std::process::Command;

const DIR: &str = "EMBERSCOPE_TEST_ROLLED";
/// Seconds from [`BASE`] to the first full minute, and to the first full ten minutes.
const MINUTE: u64 = 40;
const TEN: u64 = 400;

fn rolling(dir: &Path, seconds: u64) -> DiskStoreConfig {
    let window = Duration::from_secs(seconds);
    DiskStoreConfig { roll_ups: vec![RollUp { after: Duration::ZERO, window }], ..config(dir) }
}

/// Opens a store and makes all its windows so long.
fn rolled(dir: &Path, seconds: u64) -> DiskStore {
    let store = DiskStore::open(rolling(dir, seconds)).unwrap();
    for _ in 0..=store.disk().unwrap().blocks {
        store.settle();
    }
    store
}

/// All that is told of a range, but for how many windows there are and where those begin that a label set is in.
fn sums(store: &dyn Store, query: &Query, step: u64) -> Vec<String> {
    let merged = store.merge(query).unwrap();
    let nodes = merged.tree.nodes.iter().map(|node| format!("{node:?}"));
    let mut out: Vec<String> = nodes.collect();
    out.push(format!("{:?} {:?}", merged.range, merged.quality));
    let totals = store.totals(query).unwrap();
    out.extend(totals.iter().map(|total| format!("{:?} {} {}", total.labels, total.count, total.weight)));
    for by in [&[][..], &[LabelKey::Stage], &[LabelKey::Executor, LabelKey::Task]] {
        out.push(format!("{:?}", store.series(query, Duration::from_secs(step), by).unwrap()));
        out.push(format!("{:?}", store.ledger(query.range, &query.selection, by).unwrap()));
    }
    out.push(format!("{:?}", store.values(query, LabelKey::Task).unwrap()));
    out.extend(store.processes(query.range, &query.selection).iter().map(|p| format!("{p:?}")));
    out
}

fn questions(ranges: &[(u64, u64)]) -> Vec<Query> {
    let only =
        |key, value: &str| Selection { matchers: vec![Matcher { key, op: MatchOp::In(vec![value.into()]) }] };
    let of = |range: &(u64, u64)| {
        let all = query(range.0, range.1);
        let by_stage = Query { group: vec![LabelKey::Stage], ..all.clone() };
        let app = Query { selection: only(LabelKey::App, "app-1"), ..all.clone() };
        let task = Query { selection: only(LabelKey::Task, "5"), ..all.clone() };
        let lines = Query { detail: Detail { lines: true, kinds: true }, ..all.clone() };
        [all, by_stage, app, task, lines]
    };
    ranges.iter().flat_map(of).collect()
}

fn same(
    expected: &dyn Store,
    store: &dyn Store,
    step: u64,
    ranges: &[(u64, u64)],
) -> Result<(), TestCaseError> {
    for question in questions(ranges) {
        prop_assert_eq!(sums(expected, &question, step), sums(store, &question, step), "{:?}", question);
    }
    Ok(())
}

type Rows = Vec<Vec<(u64, u64, u64, u64, u64)>>;

fn rows() -> impl Strategy<Value = Rows> {
    let row = (0_u64..4, 0_u64..8, 0_u64..60, 1_u64..90, prop_oneof![Just(0), 0_u64..1000]);
    prop::collection::vec(prop::collection::vec(row, 0..20), 1..70)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn no_sum_changes(mut rows in rows(), cut in 1_usize..70, late in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        if late {
            // Labels that become known late reach back to the first block that does not have the process.
            rows.iter_mut().for_each(|rows| rows.push((0, 0, 0, 1, 0)));
        }
        let plain = PlainStore::default();
        let store = open(dir.path());
        for (number, rows) in rows.iter().enumerate() {
            if number == cut {
                store.settle();
            }
            let window = window(number as u64 * 10, rows);
            plain.append(window.clone());
            store.append(window);
        }
        store.settle();
        drop(store);
        let minutes = [(0, 1 << 20), (0, MINUTE), (MINUTE, MINUTE + 60), (MINUTE + 60, MINUTE + 300), (0, TEN)];
        let store = rolled(dir.path(), 60);
        same(&plain, &store, 60, &minutes)?;
        if late {
            plain.relabel(&process(0), &process(1));
            store.relabel(&process(0), &process(1));
            store.settle();
            same(&plain, &store, 60, &minutes)?;
        }
        drop(store);
        // From minutes to tens of minutes, and once more as the next start finds it.
        let tens = [(0, 1 << 20), (0, TEN), (TEN, TEN + 600)];
        let store = rolled(dir.path(), 600);
        same(&plain, &store, 600, &tens)?;
        prop_assert!(store.usage().windows <= 4);
        drop(store);
        let store = open(dir.path());
        same(&plain, &store, 600, &tens)?;
        prop_assert_eq!(store.disk().unwrap().set_aside, 0);
    }
}

#[test]
fn an_answer_says_the_whole_windows_that_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    some(24).into_iter().for_each(|window| store.append(window));
    store.settle();
    let length = |store: &DiskStore| store.disk().unwrap().resolutions;
    assert_eq!(length(&store), [(Duration::from_secs(10), 1, at(240))]);
    let fine = store.disk().unwrap().bytes;
    assert_eq!(store.merge(&query(55, 65)).unwrap().range, range(50, 70));
    drop(store);
    let store = rolled(dir.path(), 60);
    assert_eq!(length(&store), [(Duration::from_secs(60), 1, at(240))]);
    assert!(store.disk().unwrap().bytes < fine, "{} of {fine}", store.disk().unwrap().bytes);
    for (from, until) in [(55, 65), (40, 100), (99, 100)] {
        assert_eq!(store.merge(&query(from, until)).unwrap().range, range(40, 100));
        assert_eq!(store.summary(&query(from, until)).unwrap().windows, 1);
    }
    // The windows from the first one's start, not from the minute's.
    assert_eq!(store.merge(&query(0, 1)).unwrap().range, range(0, 40));
    assert_eq!(store.span(), Some(range(0, 240)));
}

#[test]
fn blocks_are_made_coarser_by_age() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let now = WallTime::now().0 / S - BASE / S;
    let old = |hours: u64| (now - hours * 3600) / 10 * 10;
    for hours in [400, 60, 1] {
        store.append(window(old(hours), &[(1, 1, 1, 5, 0)]));
        store.append(window(old(hours) + 10, &[(1, 1, 1, 5, 0)]));
        store.settle();
    }
    drop(store);
    let roll = |hours: u64, seconds| RollUp {
        after: Duration::from_secs(hours * 3600),
        window: Duration::from_secs(seconds),
    };
    let roll_ups = vec![roll(48, 60), roll(168, 600)];
    let store = DiskStore::open(DiskStoreConfig { roll_ups, ..config(dir.path()) }).unwrap();
    for _ in 0..4 {
        store.settle();
    }
    let lengths: Vec<(u64, usize)> = store
        .disk()
        .unwrap()
        .resolutions
        .iter()
        .map(|(length, blocks, _)| (length.as_secs(), *blocks))
        .collect();
    assert_eq!(lengths, [(10, 1), (60, 1), (600, 1)]);
    assert_eq!(samples(&store), 0, "nothing is there");
    let all = Query { range: TimeRange { from: WallTime(0), until: WallTime::now() }, ..query(0, 0) };
    assert_eq!(store.summary(&all).unwrap().quality.samples, 30);
}

#[test]
fn a_query_that_began_before_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    some(9).into_iter().for_each(|window| store.append(window));
    store.settle();
    drop(store);
    let store = DiskStore::open(rolling(dir.path(), 600)).unwrap();
    let before = read(&store.shared.held).blocks.first().cloned().unwrap();
    if before.window_length().is_none() {
        store.settle();
        before.let_go();
        let error = before.view(1).map(drop).unwrap_err();
        assert!(
            matches!(&error, StoreError::Unreadable { path, .. } if path.as_os_str().is_empty()),
            "{error}"
        );
        let StoreError::Unreadable { path, says } = error else { return };
        store.shared.move_away(&path, &says);
    }
    assert_eq!(store.disk().unwrap().set_aside, 0);
    assert_eq!(store.disk().unwrap().blocks, 1);
}

/// Not a test of its own: the process that is killed. Makes windows coarser, until it is.
#[test]
#[ignore = "no test of its own: it is what the test below starts and kills"]
fn roller() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    for seconds in [20, 30, 60, 120, 300, 600] {
        drop(rolled(Path::new(&dir), seconds));
    }
}

#[test]
fn kills_in_the_middle_change_no_sum() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, copy) = (dir.path().join("whole"), dir.path().join("copy"));
    let plain = PlainStore::default();
    let store = open(&whole);
    for (number, window) in some(90).into_iter().enumerate() {
        if number % 30 == 29 {
            store.settle();
        }
        plain.append(window.clone());
        store.append(window);
    }
    store.settle();
    drop(store);
    let all = query(0, 1 << 20);
    let expected = sums(&plain, &all, 600);
    let mut coarser = 0;
    let copied = || {
        let _ = std::fs::remove_dir_all(&copy);
        let copied = Command::new("cp").arg("-r").arg(&whole).arg(&copy).status().unwrap();
        assert!(copied.success());
    };
    copied();
    let mut killer = Killer::of("disk::tests::rolled::roller", (DIR, &copy));
    for round in 0..40 {
        copied();
        killer.strike();
        let store = open(&copy);
        let disk = store.disk().unwrap();
        assert_eq!((disk.blocks, disk.set_aside), (4, 0), "round {round}");
        coarser += usize::from(disk.resolutions.iter().any(|(length, ..)| length.as_secs() > 10));
        assert_eq!(sums(&store, &all, 600), expected, "round {round}");
        // What a kill left is gone: only what manifests name is there.
        for block in read(&store.shared.held).blocks.iter() {
            let files = super::disks::files(block.dir())
                .iter()
                .map(|file| file.metadata().unwrap().len())
                .sum::<u64>();
            let manifest = block.dir().join("manifest.json").metadata().unwrap().len();
            assert_eq!(files - manifest, block.bytes(), "round {round}");
        }
    }
    assert!(coarser > 0, "no kill came late enough");
}
