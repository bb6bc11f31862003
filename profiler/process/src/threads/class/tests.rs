//! Names that real JVMs gave their threads, and the classes that they are of.

use super::rules::Rule;
use super::*;

fn on_executor(name: &str) -> ThreadClass {
    class_of(name, Role::Executor)
}

#[test]
fn names_seen_in_real_jvms() {
    use ThreadClass::*;
    let seen: &[(ThreadClass, &[&str])] = &[
        (
            Task,
            &[
                "Executor task launch worker-0",
                "Executor task launch worker for task 1.0 in stage 2.0 (TID 3)",
                "Executor task launch worker for task 7",
                "Executor task idle worker#57",
                "Executor task launch worker for task evil",
                "Executor task l",
                "Executor task i",
            ],
        ),
        (
            Gc,
            &[
                "GC Thread#0",
                "GC task thread#1 (ParallelGC)",
                "GC task thread#",
                "G1 Main Marker",
                "G1 Conc#0",
                "G1 Refine#0",
                "G1 Service",
                "G1 Young RemSet Sampling",
                "G1 Young RemSet",
                "Gang worker#0 (Parallel GC Threads)",
                "Concurrent Mark-Sweep GC Thread",
                "ZWorker#0",
                "ZWorkerYoung#1",
                "ZWorkerOld#0",
                "ZDriver",
                "ZDriverMajor",
                "ZDriverMinor",
                "ZDirector",
                "ZStat",
                "ZUncommitter",
                "RuntimeWorker#0",
                "XWorker#0",
                "Shenandoah GC Threads#3",
                "Shenandoah GC T",
                "Shenandoah Control Thread",
                "StringDedupThread",
            ],
        ),
        (
            Jit,
            &[
                "C1 CompilerThread0",
                "C2 CompilerThread3",
                "C1 CompilerThre",
                "C2 CompilerThre",
                "JVMCI CompilerThread0",
                "Sweeper thread",
            ],
        ),
        (
            Vm,
            &[
                "VM Thread",
                "VM Periodic Task Thread",
                "VM Periodic Tas",
                "Reference Handler",
                "Reference Handl",
                "Finalizer",
                "Common-Cleaner",
                "Signal Dispatcher",
                "Signal Dispatch",
                "Service Thread",
                "Monitor Deflation Thread",
                "Monitor Deflati",
                "Attach Listener",
                "Notification Thread",
                "DestroyJavaVM",
                "shutdown-hook-0",
                "main",
                "java",
            ],
        ),
        (
            Rpc,
            &[
                "rpc-server-4-1",
                "rpc-client-1-1",
                "rpc-boss-3-1",
                "netty-rpc-connection-0",
                "netty-rpc-env-timeout",
                "dispatcher-event-loop-0",
                "dispatcher-even",
                "dispatcher-Executor",
                "dispatcher-BlockManagerEndpoint1",
                "dispatcher-Bloc",
                "dispatcher-CoarseGrainedScheduler",
                "dispatcher-HeartbeatReceiver",
            ],
        ),
        (
            Shuffle,
            &[
                "shuffle-server-5-1",
                "shuffle-client-6-2",
                "shuffle-boss-5-1",
                "shuffle-chunk-fetch-handler-2-1",
                "shuffle-server-",
                "shuffle-chunk-f",
                "files-client-8-1",
                "block-manager-storage-async-thread-pool-0",
                "read-ahead",
                "RemoteBlock-temp-file-clean-thread",
                "migrate-shuffles-0",
                "block-manager-ask-thread-pool-0",
            ],
        ),
        (
            Sql,
            &[
                "broadcast-exchange-0",
                "broadcast-excha",
                "subquery-0",
                "dynamicpruning-1",
                "QueryStageCreator-3",
                "shuffle-exchange-2",
                "shuffle-exchang",
                "ResultQueryStageExecution-0",
                "ResultQueryStag",
                "stream execution thread for q [id = 1]",
                "state-store-maintenance-task",
            ],
        ),
        (
            Heartbeat,
            &[
                "executor-heartbeater",
                "executor-heartb",
                "driver-heartbeater",
                "driver-heartbea",
                "executor-metrics-poller",
                "executor-kill-mark-cleanup",
                "Task reaper-17",
            ],
        ),
        (
            Python,
            &[
                "stdout writer for python3",
                "stdout writer f",
                "Writer Monitor for python3 (writer thread id 90)",
                "Worker Monitor for python3",
                "Idle Worker Monitor for python3",
                "stdout reader for python3",
                "stderr reader for List(cat)",
                "stdin writer for List(cat)",
                "accept-connections",
                "process reaper",
                "process reaper (pid 7)",
                "Thread-ScriptTransformation-Feed",
            ],
        ),
        (
            Other,
            &[
                "",
                "Thread-7",
                "pool-3-thread-1",
                "my worker",
                "Executor",
                "G",
                "GC",
                "stdout writer",
                "dispatcher",
            ],
        ),
    ];
    for (class, names) in seen {
        for name in *names {
            assert_eq!(on_executor(name), *class, "{name}");
        }
    }
}

#[test]
fn a_driver_has_threads_of_its_own() {
    for name in [
        "main",
        "java",
        "dag-scheduler-event-loop",
        "task-result-getter-3",
        "map-output-dispatcher-0",
        "driver-revive-thread",
        "heartbeat-receiver-event-loop-thread",
        "spark-listener-group-appStatus",
        "element-tracking-store-worker",
        "Spark Context Cleaner",
        "context-cleaner-periodic-gc",
        "task-starvation-timer",
        "task-abort-timer",
        "task-scheduler-speculation",
        "spark-dynamic-executor-allocation",
        "SparkUI-53",
        "Thread-4",
        "Thread-17",
    ] {
        assert_eq!(class_of(name, Role::Driver), ThreadClass::Driver, "{name}");
    }
    assert_eq!(class_of("main", Role::Worker), ThreadClass::Server);
    assert_eq!(class_of("main", Role::Other), ThreadClass::Other);
    assert_eq!(class_of("Thread-4x", Role::Driver), ThreadClass::Other);
    // In local mode one JVM is both.
    assert_eq!(class_of("Executor task launch worker-0", Role::Driver), ThreadClass::Task);
}

/// The comm of a thread has the same class as its name: no two rules meet within 15 bytes.
#[test]
fn a_comm_tells_the_same_as_the_name() {
    for Rule { pattern, class } in EVERYWHERE {
        let (Pattern::Exact(text) | Pattern::Prefix(text) | Pattern::Numbered(text)) = pattern;
        let full = match pattern {
            Pattern::Exact(_) => (*text).to_owned(),
            Pattern::Prefix(_) | Pattern::Numbered(_) => format!("{text}7"),
        };
        assert_eq!(class_of(&full, Role::Executor), *class, "{full}: hidden by another rule");
        let comm = full.get(..COMM).unwrap_or(&full);
        assert_eq!(class_of(comm, Role::Executor), *class, "{comm} of {full}");
        assert_eq!(class_of(comm, Role::Driver), *class, "{comm} of {full}");
    }
}
