//! The ledger: sums by any labels; what relabelling and forgetting a process do to its threads; what it takes.

use super::*;

fn line(labels: &Arc<LabelSet>, cpu_ns: u64, from: u64, until: u64) -> LedgerRow {
    let accounts = Accounts { cpu_ns, ..Accounts::default() };
    let sums = LedgerSums { accounts, wall_ns: cpu_ns * 2, begun: 1 };
    LedgerRow { labels: labels.clone(), sums, seen: range(from, until) }
}

/// A process's labels with those of a task's thread.
fn task(process: &LabelSet, stage: &str, tid: &str) -> Arc<LabelSet> {
    let set = LabelSetBuilder::from_set(process).set(LabelKey::Stage, stage).set(LabelKey::Task, tid);
    Arc::new(set.set(LabelKey::ThreadClass, "task").build())
}

#[test]
fn the_ledger_sums_by_any_labels_over_the_windows_it_touches() {
    let store = store();
    let jvm = labels(&[(LabelKey::App, "a"), (LabelKey::Pid, "7")]);
    let gc = Arc::new(LabelSetBuilder::from_set(&jvm).set(LabelKey::ThreadClass, "gc").build());
    let (one, two) = (task(&jvm, "1", "10"), task(&jvm, "2", "20"));
    let with = |from, ledger| Window { ledger, ..window(from, from + 10, Vec::new()) };
    store.append(with(0, vec![line(&one, 1, 2, 9), line(&gc, 2, 0, 10)]));
    // The task went on, and began in the window before; the same labels at another address.
    store.append(with(10, vec![line(&task(&jvm, "1", "10"), 4, 5, 12), line(&two, 8, 13, 14)]));
    let ask = |from, until, selection: &Selection, by: &[LabelKey]| -> Vec<(String, u64, u64, TimeRange)> {
        let lines = store.ledger(range(from, until), selection, by).unwrap();
        let told = |line: emberscope_model::LedgerTotal| {
            assert!(line.labels.iter().map(|(key, _)| key).eq(by));
            let values: Vec<&str> = line.labels.iter().map(|(_, value)| &**value).collect();
            (values.join(","), line.sums.accounts.cpu_ns, line.sums.begun, line.seen)
        };
        lines.into_iter().map(told).collect()
    };
    let all = Selection::all();
    assert_eq!(
        ask(0, 20, &all, &[LabelKey::Stage, LabelKey::ThreadClass]),
        [
            (",gc".into(), 2, 1, range(0, 10)),
            ("1,task".into(), 5, 2, range(2, 12)),
            ("2,task".into(), 8, 1, range(13, 14)),
        ]
    );
    assert_eq!(ask(0, 20, &all, &[]), [(String::new(), 15, 4, range(0, 14))]);
    assert_eq!(ask(10, 11, &all, &[LabelKey::Task]).len(), 2, "whole windows");
    assert_eq!(ask(0, 20, &only(LabelKey::Task, "10"), &[LabelKey::App]), [("a".into(), 5, 2, range(2, 12))]);
    assert!(ask(0, 20, &only(LabelKey::Task, "11"), &[LabelKey::App]).is_empty());
    assert!(ask(30, 40, &all, &[]).is_empty());

    let answers = AnswerLimits { label_sets: 1, ..AnswerLimits::default() };
    let small = MemoryStore::new(MemoryStoreConfig { answers, ..MemoryStoreConfig::default() });
    small.append(with(0, vec![line(&one, 1, 0, 1), line(&two, 1, 0, 1)]));
    let error = small.ledger(range(0, 10), &all, &[LabelKey::Task]).unwrap_err();
    assert!(error.to_string().contains("more than 1 label sets"), "{error}");
    assert_eq!(small.ledger(range(0, 10), &all, &[LabelKey::App]).unwrap().len(), 1);
}

#[test]
fn relabelling_a_process_moves_its_threads_and_its_ledger() {
    let store = store();
    let unknown = labels(&[(LabelKey::App, "unknown"), (LabelKey::Pid, "7")]);
    let known = labels(&[(LabelKey::App, "app-1"), (LabelKey::Pid, "7")]);
    let other = labels(&[(LabelKey::App, "unknown"), (LabelKey::Pid, "8")]);
    let s = stack(&["a"]);
    for from in [0, 10] {
        let (before, after) = (task(&unknown, "1", "10"), task(&known, "1", "10"));
        store.append(Window {
            processes: vec![process(1, &unknown)],
            ledger: vec![
                line(&before, 1, from, from + 2),
                line(&after, 2, from + 3, from + 4),
                line(&task(&other, "1", "10"), 4, from, from + 1),
                line(&unknown, 8, from, from + 10),
            ],
            ..window(
                from,
                from + 10,
                vec![row(&before, &s, 1), row(&after, &s, 2), row(&task(&other, "1", "10"), &s, 4)],
            )
        });
    }
    store.relabel(&unknown, &known);
    let by = [LabelKey::App, LabelKey::Task];
    let lines = store.ledger(range(0, 20), &Selection::all(), &by).unwrap();
    let told: Vec<_> = lines.iter().map(|l| (&*l.labels[0].1, &*l.labels[1].1, l.sums, l.seen)).collect();
    let sums = |cpu_ns, begun| LedgerSums {
        accounts: Accounts { cpu_ns, ..Accounts::default() },
        wall_ns: cpu_ns * 2,
        begun,
    };
    assert_eq!(
        told,
        [
            ("app-1", "", sums(16, 2), range(0, 20)),
            ("app-1", "10", sums(6, 4), range(0, 14)),
            ("unknown", "10", sums(8, 2), range(0, 11)),
        ]
    );
    let totals = store.totals(&query(0, 20)).unwrap();
    let told: Vec<_> = totals.iter().map(|t| (t.labels.get(LabelKey::App), t.count)).collect();
    assert_eq!(told, [("app-1", 6), ("unknown", 8)]);
}

#[test]
fn forgetting_a_process_takes_its_threads_and_its_ledger() {
    let store = store();
    let (gone, kept) = (labels(&[(LabelKey::Pid, "7")]), labels(&[(LabelKey::Pid, "70")]));
    let s = stack(&["a"]);
    let (one, two) = (task(&gone, "1", "10"), task(&kept, "1", "10"));
    store.append(Window {
        processes: vec![process(1, &gone), process(2, &kept)],
        ledger: vec![line(&one, 1, 0, 1), line(&two, 2, 0, 1), line(&gone, 4, 0, 1)],
        ..window(0, 10, vec![row(&one, &s, 1), row(&two, &s, 2), row(&gone, &s, 4)])
    });
    store.forget(&gone);
    assert_eq!(store.totals(&query(0, 10)).unwrap().iter().map(|t| t.count).sum::<u64>(), 2);
    let lines = store.ledger(range(0, 10), &Selection::all(), &[LabelKey::Pid]).unwrap();
    assert_eq!((lines.len(), lines[0].sums.accounts.cpu_ns), (1, 2));
    assert_eq!(store.processes(range(0, 10), &Selection::all()).len(), 1);
    let totals = store.totals(&query(0, 10)).unwrap();
    assert!(totals.iter().all(|total| total.labels.is_of_process(&kept)));
}

#[test]
fn a_thousand_tasks_a_window_are_counted_and_take_little() {
    let jvm = labels(&[
        (LabelKey::ServiceName, "a nightly job"),
        (LabelKey::Node, "worker-17.example.org"),
        (LabelKey::Deploy, "yarn"),
        (LabelKey::App, "application_1700000000000_0123"),
        (LabelKey::AppName, "a nightly job"),
        (LabelKey::User, "etl"),
        (LabelKey::Role, "executor"),
        (LabelKey::Executor, "12"),
        (LabelKey::Container, "container_e17_1700000000000_0123_01_000013"),
        (LabelKey::Process, "java"),
        (LabelKey::Pid, "123456"),
    ]);
    let set = |i: u64| {
        let set = LabelSetBuilder::from_set(&task(&jvm, "17", &(100_000 + i).to_string()));
        let set = set.set(LabelKey::StageAttempt, "0").set(LabelKey::TaskAttempt, "0");
        Arc::new(set.set(LabelKey::TaskIndex, i.to_string()).build())
    };
    let store = store();
    store.append(Window {
        ledger: (0..1000).map(|i| line(&set(i), 1, 0, 10)).collect(),
        ..window(0, 10, Vec::new())
    });
    let each = store.usage().bytes / 1000;
    // A line is 136 bytes, a set and its texts with the tables that know them some 300.
    assert!((250..600).contains(&each), "{each}");
}
