//! Commands against the daemon's own server, over a store whose content is known: what the one answers the
//! other reads. The tables themselves are tested on recorded answers, beside each command.

use super::{Cli, code};
use axum::Router;
use clap::Parser;
use emberscope_model::{
    Accounts, Frame, FrameKind, LabelKey, LabelSet, LabelSetBuilder, LedgerRow, LedgerSums, LostCounts,
    ProcessKey, ProcessRecord, Row, SampleKind, Stack, StackEnd, TimeRange, WallTime, Window,
};
use emberscope_serve::{Access, Metrics, Queries, ServeState, router, serve};
use emberscope_store::{MemoryStore, MemoryStoreConfig, Store};
use std::sync::Arc;
use std::time::Duration;

const LENGTH: Duration = Duration::from_secs(10);

fn labels(base: &LabelSet, pairs: &[(LabelKey, &str)]) -> Arc<LabelSet> {
    let builder = LabelSetBuilder::from_set(base);
    Arc::new(pairs.iter().fold(builder, |builder, (key, value)| builder.set(*key, *value)).build())
}

/// Ten tasks of a stage, the last of which takes thrice as long, in `Job.slow`, and allocates where it computes, as the others
/// do; a GC thread, one without a class, and a Python worker beside them.
fn window() -> Window {
    use LabelKey::*;
    let from = WallTime::now().floor(LENGTH).minus(2 * LENGTH);
    let range = TimeRange { from, until: from.plus(LENGTH) };
    let node = LabelSet::default();
    let jvm = labels(
        &node,
        &[
            (Node, "n"),
            (App, "app-1"),
            (AppName, "etl"),
            (Role, "executor"),
            (Executor, "1"),
            (Process, "java"),
            (Pid, "11"),
        ],
    );
    let python =
        labels(&node, &[(Node, "n"), (App, "app-1"), (Role, "python"), (Process, "python3"), (Pid, "12")]);
    let mut window = Window {
        range,
        rows: Vec::new(),
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    };
    let mut row = |labels: &Arc<LabelSet>, name: &str, count: u64| {
        let frames = ["Job.run", name].map(|name| Arc::new(Frame::new(FrameKind::JavaCompiled, name, "")));
        let stack = Arc::new(Stack { frames: frames.into(), end: StackEnd::Root });
        let (labels, weight) = (labels.clone(), count * 10_101_010);
        window.rows.push(Row { labels, stack, kind: SampleKind::Cpu, count, weight });
    };
    let mut ledger = |labels: &Arc<LabelSet>, ms: u64, begun| {
        let accounts = Accounts {
            cpu_ns: ms * 1_000_000,
            run_delay_ns: 1_000_000,
            user_ns: 9,
            system_ns: 1,
            ..Accounts::default()
        };
        let sums = LedgerSums { accounts, wall_ns: (ms + 5) * 1_000_000, begun };
        window.ledger.push(LedgerRow { labels: labels.clone(), sums, seen: range });
    };
    for index in 0..10u64 {
        let (index_text, tid) = (index.to_string(), (70 + index).to_string());
        let task = labels(
            &jvm,
            &[
                (Stage, "3"),
                (StageAttempt, "0"),
                (TaskIndex, &index_text),
                (TaskAttempt, "0"),
                (Task, &tid),
                (ThreadClass, "task"),
            ],
        );
        row(&task, "Job.usual", 20);
        let slow = index == 9;
        if slow {
            row(&task, "Job.slow", 40);
        }
        ledger(&task, if slow { 600 } else { 200 }, 1);
    }
    let unknown = labels(&jvm, &[(Stage, "unknown"), (ThreadClass, "task")]);
    row(&unknown, "Job.usual", 3);
    let gc = labels(&jvm, &[(ThreadClass, "gc")]);
    ledger(&gc, 100, 0);
    row(&gc, "collect", 9);
    row(&jvm, "early", 1);
    row(&python, "udf", 5);
    let of_tasks = window.rows.iter().filter(|row| !row.labels.get(Task).is_empty());
    let allocated = |row: &Row| Row { kind: SampleKind::Alloc, weight: row.count << 19, ..row.clone() };
    let allocations: Vec<Row> = of_tasks.map(allocated).collect();
    window.rows.extend(allocations);
    for (pid, labels) in [(11, &jvm), (12, &python)] {
        window.processes.push(Arc::new(ProcessRecord {
            key: ProcessKey { pid, start_ticks: 7 },
            labels: labels.clone(),
            host: String::new(),
            cores: 0,
            program: "p".to_owned(),
            jvm: None,
        }));
    }
    window
}

/// The server's address, with the runtime that it lives in.
fn served() -> (tokio::runtime::Runtime, String) {
    let store = MemoryStore::new(MemoryStoreConfig::default());
    store.append(window());
    let metrics = Arc::new(Metrics::new("0").unwrap());
    let state = ServeState {
        spark: None,
        prices: Default::default(),
        store: Arc::new(store),
        status: Arc::new(|| serde_json::json!({})),
        metrics: metrics.clone(),
        ready: Arc::new(|| Ok(())),
        node: "n".into(),
        version: "0".into(),
        queries: Queries::default(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = router(state, Access::LocalHostOnly, Router::new());
    runtime.spawn(serve(listener, router, metrics, std::future::pending()));
    (runtime, url)
}

#[test]
fn commands_and_the_server_understand_each_other() {
    let (_runtime, url) = served();
    let run = |line: &str| {
        let words = ["emberscope"].into_iter().chain(line.split(' ')).chain(["--url", url.as_str()]);
        Cli::try_parse_from(words).unwrap().run()
    };
    for line in [
        "apps",
        "stages --app etl",
        "stages --app etl --classes",
        "stages --app etl --type alloc",
        "stages --app etl --type alloc --classes --sort wall",
        "stages --app etl --type lock",
        "tasks --app etl --stage 3 --type alloc --limit 2",
        "tasks --sort amount",
        "tasks --app etl --stage 3 --sort cpu --limit 2",
        "tasks --sort run-delay",
        "tasks --sort blocked",
        "tasks --sort wall",
        "tasks --sort task --json",
        "tax",
        "tax --app etl",
        "tax --app etl --stage 3",
        "tax --executor 1 --json",
        "top --app etl --stage 3 --thread-class task",
        "diff --app etl --stage 3 --slow",
        "diff --app etl --stage 3 --slow --scale equal --sort total",
        "diff --app etl --left task-index=1,2 --right task-index=9 --scale absolute",
        "diff --right query={thread_class=\"gc\"} --app etl",
        "diff --app etl --stage 3 --slow --json",
        "diff --app etl --stage 3 --slow --type alloc",
        "diff --app etl --left task-index=1,2 --right task-index=9 --scale absolute --type alloc",
    ] {
        assert_eq!(run(line).unwrap_or_else(|error| panic!("{line}: {error}")), code::OK, "{line}");
    }
    for (line, code, word) in [
        ("stages --app etl --stage 99", code::NOTHING, "no stage with app=etl stage=99"),
        ("tasks --app etl --stage 99", code::NOTHING, "no task with"),
        ("tax --app etl --stage 99", code::NOTHING, "3, unknown"),
        ("tax --app nobody", code::NOTHING, "nobody"),
        ("diff --app etl --stage 99 --slow", code::NOTHING, "3, unknown"),
        ("diff --app etl --left stage=99 --right stage=3", code::NOTHING, "left side"),
        ("diff --app etl --stage 3 --stage 4 --slow", code::USAGE, "stage"),
    ] {
        let error = run(line).unwrap_err();
        assert_eq!(error.code(), code, "{line}: {error}");
        assert!(error.to_string().contains(word), "{line}: {error}");
    }
}

#[test]
fn graphs_are_written() {
    let (_runtime, url) = served();
    let dir = tempfile::tempdir().unwrap();
    let written = |line: &str, name: &str| {
        let file = dir.path().join(name);
        let words = ["emberscope"].into_iter().chain(line.split(' ')).chain(["--url", url.as_str(), "-o"]);
        let cli = Cli::try_parse_from(words.chain([file.to_str().unwrap()])).unwrap();
        assert_eq!(cli.run().unwrap_or_else(|error| panic!("{line}: {error}")), code::OK);
        std::fs::read_to_string(file).unwrap()
    };
    let slow = "diff --app etl --stage 3 --slow";
    assert!(written(slow, "a.svg").contains("Job.slow"));
    let allocated = written("diff --app etl --stage 3 --slow --type alloc", "c.svg");
    assert!(allocated.contains("Job.slow (20,480 KiB"), "{allocated}");
    assert!(written(slow, "a.folded").lines().any(|line| line.starts_with("Job.run;Job.slow 0 ")));
    let json: serde_json::Value = serde_json::from_str(&written(slow, "a.json")).unwrap();
    assert!(json["nodes"].is_array() && json["diff"][0]["name"] == "Job.slow", "{json}");
    let grouped = written("flamegraph --app etl --group stage,thread_class", "b.folded");
    assert!(grouped.contains("stage=3;thread_class=task;Job.run;Job.usual 200\n"), "{grouped}");
}
