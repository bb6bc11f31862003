//! Answers are those that the windows themselves give, from memory, open part, journal, sealed block, and a block
//! read by another start.

use super::*;

/// Everything that can be asked, as text.
fn answers(store: &dyn Store, query: &Query) -> Vec<String> {
    let merged = store.merge(query).unwrap();
    let nodes = merged.tree.nodes.iter().map(|node| {
        let emberscope_model::Node { frame, parent, self_count, self_weight, total_count, total_weight } =
            node;
        format!("{parent} {frame:?} {self_count} {self_weight} {total_count} {total_weight}")
    });
    let mut out: Vec<String> = nodes.collect();
    out.push(format!("{:?} {} {:?}", merged.range, merged.windows, merged.quality));
    out.push(format!("{:?}", store.summary(query).unwrap()));
    let methods = store.methods(query).unwrap();
    out.push(format!("{:?} {} {:?}", methods.range, methods.windows, methods.quality));
    out.extend(methods.methods.iter().map(|method| format!("{method:?}")));
    out.extend(store.totals(query).unwrap().iter().map(|total| format!("{total:?}")));
    for by in [&[][..], &[LabelKey::Stage], &[LabelKey::Executor, LabelKey::Task]] {
        let step = Duration::from_secs(20);
        out.push(format!("{:?}", store.series(query, step, by).unwrap()));
        out.push(format!("{:?}", store.ledger(query.range, &query.selection, by).unwrap()));
    }
    for key in [LabelKey::Task, LabelKey::App, LabelKey::Node] {
        out.push(format!("{:?}", store.values(query, key).unwrap()));
    }
    out.extend(store.processes(query.range, &query.selection).iter().map(|p| format!("{p:?}")));
    out
}

fn only(key: LabelKey, op: MatchOp) -> Selection {
    Selection { matchers: vec![Matcher { key, op }] }
}

fn questions() -> Vec<Query> {
    let all = query(0, 100);
    let one = |value: &str| MatchOp::In(vec![value.into()]);
    let by = |group: &[LabelKey]| Query { group: group.to_vec(), ..query(0, 100) };
    let of = |selection| Query { selection, ..query(0, 100) };
    vec![
        Query { detail: Detail { lines: true, kinds: true }, ..all.clone() },
        all,
        query(20, 40),
        query(35, 36),
        query(500, 600),
        query(30, 20),
        by(&[LabelKey::Stage]),
        by(&[LabelKey::App, LabelKey::Task]),
        of(only(LabelKey::App, one("app-1"))),
        of(only(LabelKey::App, one("unknown"))),
        of(only(LabelKey::Executor, MatchOp::NotIn(vec!["1".into()]))),
        of(only(LabelKey::Stage, one("1"))),
        of(only(LabelKey::Task, one(""))),
        of(only(LabelKey::Task, MatchOp::Regex(regex::Regex::new("^(?:5|6)$").unwrap()))),
        Query {
            selection: only(LabelKey::Stage, one("0")),
            group: vec![LabelKey::Executor],
            ..query(10, 30)
        },
    ]
}

pub(super) fn assert_same(expected: &dyn Store, store: &dyn Store, place: &str) {
    for question in questions() {
        let (expected, got) = (answers(expected, &question), answers(store, &question));
        let first = expected.iter().zip(&got).find(|(expected, got)| expected != got);
        let aside = store.disk().unwrap_or_default().set_aside_files;
        assert!(expected == got, "{place}: {question:?}: {first:?} {aside:?}");
    }
    assert_eq!(expected.span(), store.span(), "{place}");
}

type Rows = Vec<Vec<(u64, u64, u64, u64, u64)>>;

fn rows() -> impl Strategy<Value = Rows> {
    let row = (0_u64..4, 0_u64..8, 0_u64..60, 1_u64..90, prop_oneof![Just(0), 0_u64..1000]);
    prop::collection::vec(prop::collection::vec(row, 0..30), 1..9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_same_answers_wherever_windows_are(rows in rows(), sealed_after in 0_usize..9, late in 0_u8..3) {
        let dir = tempfile::tempdir().unwrap();
        let plain = PlainStore::default();
        let memory = MemoryStore::new(MemoryStoreConfig::default());
        let store = open(dir.path());
        let (from, to) = (process(0), process(1));
        let change = |store: &dyn Store| match late {
            0 => store.relabel(&from, &to),
            1 => store.forget(&from),
            _ => {}
        };
        for (number, rows) in rows.iter().enumerate() {
            if number == sealed_after {
                store.settle();
                change(&plain);
                change(&memory);
                change(&store);
                // A changed block: labels are put right on the thread that wrote it.
                store.settle();
            }
            let window = window(number as u64 * 10, rows);
            plain.append(window.clone());
            memory.append(window.clone());
            store.append(window);
        }
        assert_same(&plain, &memory, "memory");
        assert_same(&plain, &store, "open part, perhaps a block");
        drop(store);
        let store = open(dir.path());
        assert_same(&plain, &store, "read from the journal");
        change(&plain);
        change(&memory);
        change(&store);
        store.settle();
        assert_same(&plain, &memory, "memory, changed");
        assert_same(&plain, &store, "blocks");
        assert_eq!(store.disk().unwrap().journal_bytes, 0);
        drop(store);
        let store = open(dir.path());
        assert_same(&plain, &store, "blocks, read by the next start");
        assert_eq!(store.disk().unwrap().set_aside, 0);
    }
}

#[test]
fn what_memory_holds_gets_small_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let plain = PlainStore::default();
    let store = DiskStore::open(DiskStoreConfig { cache_bytes: 1, ..config(dir.path()) }).unwrap();
    for window in some(9) {
        plain.append(window.clone());
        store.append(window);
    }
    let before = store.usage().bytes;
    store.settle();
    assert!(store.usage().bytes < before / 10, "{} of {before}", store.usage().bytes);
    assert_same(&plain, &store, "without a cache");
    assert!(store.usage().bytes < before / 10, "and let go again");
    assert_eq!(store.usage().windows, 9);
}

#[test]
fn parts_are_cut_by_time_and_by_size() {
    let dir = tempfile::tempdir().unwrap();
    let plain = PlainStore::default();
    let small =
        DiskStoreConfig { memory_bytes: 60_000, block_length: Duration::from_secs(30), ..config(dir.path()) };
    let store = DiskStore::open(small).unwrap();
    for window in some(9) {
        plain.append(window.clone());
        store.append(window);
    }
    store.settle();
    assert!(store.disk().unwrap().blocks >= 3, "{:?}", store.disk());
    assert_same(&plain, &store, "several blocks");
}

#[test]
fn many_ask_at_once_while_what_is_kept_is_little() {
    let dir = tempfile::tempdir().unwrap();
    let block_length = Duration::from_secs(10);
    let store =
        DiskStore::open(DiskStoreConfig { cache_bytes: 1, block_length, ..config(dir.path()) }).unwrap();
    let known = PlainStore::default();
    for window in some(60) {
        known.append(window.clone());
        store.append(window);
    }
    store.settle();
    // So many that their order is made by merging, which a key that changes breaks.
    assert!(store.disk().unwrap().blocks > 40);
    let expected = samples(&known);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..8).for_each(|_| assert_eq!(samples(&store), expected)));
        }
    });
}

#[test]
fn a_clock_that_goes_back_an_hour_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let plain = PlainStore::default();
    for from in [7200, 7210, 3610, 3620, 7220] {
        let window = window(from, &[(1, 1, from % 7, 3, 0)]);
        plain.append(window.clone());
        store.append(window);
    }
    for place in ["parts", "blocks"] {
        assert_eq!(samples(&plain), samples(&store), "{place}");
        assert_eq!(plain.span(), store.span());
        store.settle();
    }
    assert_eq!(store.disk().unwrap().blocks, 3);
}
