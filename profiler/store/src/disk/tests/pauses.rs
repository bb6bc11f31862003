//! Pauses of JVMs: the same answer wherever they are kept, whoever's they turn out to be, and the longest where not all fit.

use super::merged::after_every_start;
use super::*;
use emberscope_model::Pause;

fn pause(pid: u64, second: u64, ms: u64, cause: &str) -> Pause {
    let began = at(second).plus(Duration::from_millis(ms));
    Pause { labels: process(pid), began, length_ns: ms * 1_000_000, cause: cause.into() }
}

/// Windows of two parts: each has pauses of three processes, one of them without a cause.
fn jvms_stand_still(store: &dyn Store, settle: impl Fn()) {
    for (number, window) in (0..).zip(some(4)) {
        let all = [pause(1, number * 10 + 3, 7, "G1CollectForAllocation"), pause(2, number * 10 + 4, 2, "")];
        let pauses = [&all[..], &[pause(0, number * 10 + 5, 3 + number, "Cleanup")]].concat();
        store.append(Window { pauses, ..window });
        if number == 1 {
            settle();
        }
    }
}

fn answer(store: &dyn Store, pairs: &[(LabelKey, &str)]) -> Vec<Pause> {
    let matchers =
        pairs.iter().map(|(key, value)| Matcher { key: *key, op: MatchOp::In(vec![(*value).to_owned()]) });
    let selection = Selection { matchers: matchers.collect() };
    store.pauses(range(0, 1 << 20), &selection).unwrap().pauses
}

#[test]
fn pauses_are_the_same_after_every_start() {
    let (dir, memory) = (tempfile::tempdir().unwrap(), MemoryStore::new(MemoryStoreConfig::default()));
    let store = open(dir.path());
    jvms_stand_still(&memory, || ());
    jvms_stand_still(&store, || store.settle());
    let live = answer(&memory, &[]);
    assert_eq!((live.len(), live[0].clone()), (12, pause(1, 3, 7, "G1CollectForAllocation")));
    assert_eq!(live[1], pause(2, 4, 2, ""));
    assert_eq!(answer(&memory, &[(LabelKey::App, "app-1")]).len(), 4);
    assert_eq!(answer(&memory, &[(LabelKey::Stage, "1")]), [], "a pause is of a whole JVM");
    let early = memory.pauses(range(10, 20), &Selection::all()).unwrap();
    assert_eq!((early.pauses.len(), early.left_out), (3, 0));
    let same = |store: &DiskStore, when: &str| {
        assert_eq!(answer(store, &[]), live, "{when}");
        assert_eq!(store.disk().unwrap().set_aside, 0, "{when}");
    };
    let store = after_every_start(dir.path(), store, same);
    store.relabel(&process(0), &process(1));
    store.forget(&process(2));
    store.settle();
    drop(store);
    memory.relabel(&process(0), &process(1));
    memory.forget(&process(2));
    let known = answer(&memory, &[(LabelKey::App, "app-1")]);
    assert_eq!((known.len(), answer(&memory, &[]).len()), (8, 8));
    assert_eq!(answer(&open(dir.path()), &[]), known, "with labels that became known late");
}

#[test]
fn the_longest_are_told_where_not_all_fit() {
    let limits = AnswerLimits { label_sets: 3, ..AnswerLimits::default() };
    let store = MemoryStore::new(MemoryStoreConfig { answers: limits, ..MemoryStoreConfig::default() });
    let pauses = (1..=9).map(|ms| pause(1, 9 - ms, ms, "Cleanup")).collect();
    store.append(Window { pauses, ..window(0, &[]) });
    let told = store.pauses(range(0, 10), &Selection::all()).unwrap();
    let lengths: Vec<u64> = told.pauses.iter().map(|pause| pause.length_ns / 1_000_000).collect();
    assert_eq!((lengths, told.left_out), (vec![9, 8, 7], 6));
}
