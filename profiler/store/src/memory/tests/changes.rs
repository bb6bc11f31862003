//! Processes as last known, and what becoming known late or being forgotten does to them.

use super::*;

#[test]
fn processes_are_told_as_last_known() {
    let store = store();
    let (unknown, known) = (labels(&[(LabelKey::App, "unknown")]), labels(&[(LabelKey::App, "app-1")]));
    let with = |processes, from| Window { processes, ..window(from, from + 10, Vec::new()) };
    store.append(with(vec![process(1, &unknown), process(2, &unknown)], 0));
    store.append(with(vec![process(1, &known)], 10));
    let found = |selection: Selection, until| -> Vec<u64> {
        store.processes(range(0, until), &selection).iter().map(|p| p.key.start_ticks).collect()
    };
    assert_eq!(found(Selection::all(), 20), [1, 2]);
    assert_eq!(found(only(LabelKey::App, "app-1"), 20), [1]);
    assert_eq!(found(only(LabelKey::App, "unknown"), 20), [2], "1 is known by now");
    assert_eq!(found(only(LabelKey::App, "unknown"), 10), [1, 2]);
}

#[test]
fn relabelling_changes_rows_and_processes_and_keeps_the_sums() {
    let store = store();
    let (unknown, known) = (labels(&[(LabelKey::App, "unknown")]), labels(&[(LabelKey::App, "app-1")]));
    let (s, t) = (stack(&["a"]), stack(&["b"]));
    for i in 0..3 {
        let rows = vec![row(&unknown, &s, 1), row(&known, &s, 2), row(&unknown, &t, 4)];
        let w = Window { processes: vec![process(1, &unknown)], ..window(i * 10, i * 10 + 10, rows) };
        store.append(w);
    }
    store.relabel(&unknown, &labels(&[(LabelKey::App, "app-1")]));
    let totals = store.totals(&query(0, 30)).unwrap();
    assert_eq!((totals.len(), totals[0].labels.get(LabelKey::App), totals[0].count), (1, "app-1", 21));
    assert_eq!(store.processes(range(0, 30), &only(LabelKey::App, "app-1")).len(), 1);
}

#[test]
fn forgetting_takes_rows_and_processes_and_nothing_else() {
    let store = store();
    let (other, kept) = (labels(&[(LabelKey::App, "unknown")]), labels(&[(LabelKey::App, "app-1")]));
    let s = stack(&["a"]);
    for i in 0..2 {
        let rows = vec![row(&other, &s, 5), row(&kept, &s, 2)];
        let processes = vec![process(1, &other), process(2, &kept)];
        store.append(Window { processes, ..window(i * 10, i * 10 + 10, rows) });
    }
    store.forget(&other);
    let totals = store.totals(&query(0, 20)).unwrap();
    assert_eq!((totals.len(), totals[0].labels.get(LabelKey::App), totals[0].count), (1, "app-1", 4));
    assert_eq!(store.processes(range(0, 20), &Selection::all()).len(), 1);
    assert_eq!(store.usage().windows, 2);
}
