//! Windows with a ledger: an app of twenty tasks in one stage, two of them slow; the same app's second
//! stage beside it; an app whose JVM the ledger does not know; and one whose every label is hostile.

use super::fake::{EVIL, START};
use emberscope_model::{
    Accounts, Frame, FrameKind, JvmFacts, LabelKey, LabelSet, LabelSetBuilder, LedgerRow, LedgerSums,
    LostCounts, NameSource, ProcessKey, ProcessRecord, Row, SampleKind, Stack, StackEnd, TimeRange, WallTime,
    Window,
};
use emberscope_store::{MemoryStore, MemoryStoreConfig, Store};
use std::sync::Arc;

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;

fn at(ms: u64) -> WallTime {
    WallTime::from_millis(START * 1000 + ms)
}

pub fn labels(pairs: &[(LabelKey, &str)]) -> LabelSet {
    pairs.iter().fold(LabelSetBuilder::new(), |b, (k, v)| b.set(*k, *v)).build()
}

fn process(app: &str, name: &str, role: &str, executor: &str, pid: &str) -> LabelSet {
    use LabelKey::*;
    let comm = if role == "python" { "python3" } else { "java" };
    labels(&[
        (App, app),
        (AppName, name),
        (Role, role),
        (Executor, executor),
        (Pid, pid),
        (Node, "n1"),
        (Process, comm),
    ])
}

pub fn thread(process: &LabelSet, class: &str, stage: &str, index: &str, tid: &str) -> Arc<LabelSet> {
    use LabelKey::*;
    let attempt = if stage.is_empty() { "" } else { "0" };
    let set = LabelSetBuilder::from_set(process).set(ThreadClass, class).set(Stage, stage);
    let set = set.set(StageAttempt, attempt).set(TaskAttempt, attempt);
    Arc::new(set.set(TaskIndex, index).set(Task, tid).build())
}

/// A line: CPU in ms (a quarter of it the kernel's), and from when to when it was seen, in ms.
pub fn line(labels: &Arc<LabelSet>, cpu: u64, from: u64, until: u64) -> LedgerRow {
    let accounts = Accounts {
        cpu_ns: cpu * MS,
        run_delay_ns: 100 * MS,
        user_ns: 12 * MS,
        system_ns: 4 * MS,
        voluntary_switches: 5,
        involuntary_switches: 7,
        minor_faults: 11,
        major_faults: 1,
        read_bytes: 4096,
        written_bytes: 512,
        python_wait_ns: 20 * MS,
        throttled_ns: 30 * MS,
        paused_ns: 40 * MS,
    };
    let sums = LedgerSums { accounts, wall_ns: (cpu + 150) * MS, begun: 1 };
    LedgerRow { labels: labels.clone(), sums, seen: TimeRange { from: at(from), until: at(until) } }
}

/// Samples of 10 ms, the root first.
pub fn row(labels: &Arc<LabelSet>, path: &[(FrameKind, &str)], count: u64) -> Row {
    let frames = path.iter().map(|(kind, name)| Arc::new(Frame::new(*kind, *name, ""))).collect();
    let stack = Arc::new(Stack { frames, end: StackEnd::Root });
    Row { labels: labels.clone(), stack, kind: SampleKind::Cpu, count, weight: count * 10 * MS }
}

use FrameKind::{JavaCompiled as J, Kernel as K};
pub const RUN: (FrameKind, &str) = (J, "java.lang.Thread.run");
pub const WORK: (FrameKind, &str) = (J, "Job.work");

fn record(labels: &LabelSet, jvm: bool) -> Arc<ProcessRecord> {
    let pid = labels.get(LabelKey::Pid).parse().unwrap();
    Arc::new(ProcessRecord {
        key: ProcessKey { pid, start_ticks: 7 },
        labels: Arc::new(labels.clone()),
        host: String::new(),
        cores: 0,
        program: String::new(),
        jvm: jvm.then(|| JvmFacts { version: "17".into(), names: NameSource::Asked }),
    })
}

pub fn window(
    number: u64,
    rows: Vec<Row>,
    ledger: Vec<LedgerRow>,
    processes: Vec<Arc<ProcessRecord>>,
) -> Window {
    let range = TimeRange { from: at(number * 10_000), until: at(number * 10_000 + 10_000) };
    Window { range, rows, ledger, pauses: Vec::new(), processes, lost: LostCounts::default(), partial: false }
}

/// Three windows; the stages of app-1 are in the second one. `with_ledger` false leaves the ledgers empty.
pub fn store(with_ledger: bool) -> MemoryStore {
    let jvm = process("app-1", "etl", "executor", "1", "11");
    let idle = process("app-1", "etl", "executor", "2", "13");
    let python = process("app-1", "etl", "python", "1", "12");
    let (mut rows, mut ledger) = (Vec::new(), Vec::new());
    for i in 0..20u64 {
        let own = thread(&jvm, "task", "3", &i.to_string(), &(100 + i).to_string());
        let slow = i % 10 == 7;
        // In the order of its index but for the two slow ones; 1,000 ms and some, or 3,000.
        ledger.push(line(&own, if slow { 3_000 } else { 1_000 + i }, 11_000 + i, 15_000 + i));
        rows.push(row(&own, &[RUN, WORK, (J, "Job.fast")], 90));
        rows.push(row(&own, &[RUN, WORK, (J, "Job.fast"), (K, "asm_exc_page_fault")], 10));
        if slow {
            let digest = [RUN, WORK, (J, "Job.slow"), (J, "java.security.MessageDigest.update")];
            rows.push(row(&own, &digest, 160));
            rows.push(row(&own, &[RUN, WORK, (J, "Job.slow")], 40));
        }
    }
    let feeder = thread(&jvm, "python", "3", "4", "104");
    ledger.push(line(&feeder, 500, 12_000, 13_000));
    rows.push(row(&feeder, &[RUN, (J, "Feeder.write")], 50));
    let other = thread(&jvm, "task", "10", "0", "200");
    ledger.push(line(&other, 250, 16_000, 17_000));
    let gc = thread(&jvm, "gc", "", "", "");
    ledger.push(line(&gc, 4_000, 10_000, 20_000));
    rows.push(row(&gc, &[(FrameKind::Native, "mark")], 404));
    ledger.push(line(&thread(&jvm, "other", "", "", ""), 100, 10_000, 20_000));
    ledger.push(line(&thread(&idle, "jit", "", "", ""), 700, 10_000, 20_000));
    rows.push(row(&Arc::new(python.clone()), &[(FrameKind::Python, "udf")], 25));
    // Before it was known to be a JVM.
    rows.push(row(&Arc::new(jvm.clone()), &[(FrameKind::Native, "_start")], 3));

    let plain = process("app-2", "other job", "executor", "1", "21");
    let (task, gc2) = (thread(&plain, "task", "0", "0", "0"), thread(&plain, "gc", "", "", ""));
    rows.push(row(&task, &[RUN, (J, "Other.run")], 60));
    rows.push(row(&task, &[RUN, (J, "Other.run"), (K, "do_sys_read")], 20));
    rows.push(row(&gc2, &[(FrameKind::Native, "mark")], 20));

    let evil = process(EVIL, EVIL, "executor", EVIL, "31");
    let evil_task = thread(&evil, "task", EVIL, EVIL, EVIL);
    ledger.push(line(&evil_task, 10, 10_000, 11_000));
    rows.push(row(&evil_task, &[(J, EVIL)], 5));

    let processes = vec![
        record(&jvm, true),
        record(&idle, true),
        record(&python, false),
        record(&plain, true),
        record(&evil, true),
    ];
    let store = MemoryStore::new(MemoryStoreConfig::default());
    let before = line(&thread(&jvm, "gc", "", "", ""), 50, 0, 10_000);
    let first = if with_ledger { vec![before] } else { Vec::new() };
    store.append(window(0, Vec::new(), first, processes.clone()));
    store.append(window(1, rows, if with_ledger { ledger } else { Vec::new() }, processes));
    store.append(window(2, Vec::new(), Vec::new(), Vec::new()));
    store
}
