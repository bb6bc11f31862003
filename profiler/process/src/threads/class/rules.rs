//! The table of thread names and their classes, by what the threads do.
//!
//! Read, where a line says nothing else, off jstack and /proc of executors and drivers of Spark 3.5.9
//! (JDK 17) and 4.3.0 (JDK 25) and out of Spark's own source, 2.4 to 4.3; HotSpot's names are in
//! src/hotspot/share (JDK 8 to 25). Within a list order does not matter: a test holds that no line hides
//! another.

use Pattern::{Exact, Numbered, Prefix};
use ThreadClass::{Driver, Gc, Heartbeat, Jit, Python, Rpc, Server, Shuffle, Sql, Vm};
use emberscope_model::ThreadClass;

/// How a name is told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pattern {
    /// The whole name.
    Exact(&'static str),
    /// How the name begins.
    Prefix(&'static str),
    /// This text and a number.
    Numbered(&'static str),
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub pattern: Pattern,
    pub class: ThreadClass,
}

const fn rule(class: ThreadClass, pattern: Pattern) -> Rule {
    Rule { pattern, class }
}

/// The JVM's first thread, `main`, and native threads without a name: named by the launcher's comm. Java
/// calls `main` otherwise once its method has returned.
pub(super) const MAIN: &[Pattern] = &[Exact("main"), Exact("java"), Exact("DestroyJavaVM")];

/// Names that nobody chose: java.lang.Thread's, Executors.defaultThreadFactory's, ForkJoinPool's, Scala's.
/// `Thread-N` is py4j's connections on a driver.
pub(super) const UNNAMED: &[Pattern] = &[
    Numbered("Thread-"),
    Prefix("pool-"),
    Prefix("ForkJoinPool"),
    Prefix("scala-execution-context-global-"),
    Numbered("Timer-"),
];

/// What holds in every process.
pub(super) const EVERYWHERE: &[Rule] = &[
    // Collectors. G1: g1ConcurrentMark.cpp, g1YoungCollector.cpp; JDK 8 has `Gang worker#0 (...)`.
    rule(Gc, Prefix("GC Thread#")),
    rule(Gc, Prefix("GC task thread#")),
    rule(Gc, Prefix("Gang worker#")),
    rule(Gc, Prefix("G1 ")),
    rule(Gc, Prefix("Concurrent Mark-Sweep GC Thread")),
    rule(Gc, Prefix("CMS ")),
    rule(Gc, Prefix("ParGC Thread#")),
    rule(Gc, Prefix("Surrogate Locker Thread")),
    rule(Gc, Prefix("StringDedup")),
    // ZGC; `X..` is its single generation in JDK 21 to 23.
    rule(Gc, Prefix("ZWorker")),
    rule(Gc, Prefix("ZDriver")),
    rule(Gc, Exact("ZDirector")),
    rule(Gc, Exact("ZStat")),
    rule(Gc, Exact("ZUncommitter")),
    rule(Gc, Exact("ZUnmapper")),
    rule(Gc, Prefix("XWorker")),
    rule(Gc, Exact("XDriver")),
    rule(Gc, Exact("XDirector")),
    rule(Gc, Exact("XStat")),
    rule(Gc, Exact("XUncommitter")),
    rule(Gc, Exact("XUnmapper")),
    rule(Gc, Prefix("RuntimeWorker#")),
    rule(Gc, Prefix("Shenandoah")),
    // Compilers, and the sweeper of their code (to JDK 19).
    rule(Jit, Prefix("C1 CompilerThread")),
    rule(Jit, Prefix("C2 CompilerThread")),
    rule(Jit, Prefix("JVMCI")),
    rule(Jit, Exact("Sweeper thread")),
    // The virtual machine's own. Serial collects in `VM Thread`.
    rule(Vm, Prefix("VM ")),
    rule(Vm, Exact("Reference Handler")),
    rule(Vm, Exact("Finalizer")),
    rule(Vm, Exact("Secondary finalizer")),
    rule(Vm, Exact("Common-Cleaner")),
    rule(Vm, Numbered("Cleaner-")),
    rule(Vm, Exact("Signal Dispatcher")),
    rule(Vm, Exact("Service Thread")),
    rule(Vm, Exact("Monitor Deflation Thread")),
    rule(Vm, Exact("Notification Thread")),
    rule(Vm, Exact("Attach Listener")),
    rule(Vm, Prefix("InnocuousThread-")),
    rule(Vm, Exact("AsyncLog Thread")),
    rule(Vm, Prefix("JFR ")),
    rule(Vm, Prefix("JDWP ")),
    rule(Vm, Prefix("RMI ")),
    rule(Vm, Exact("JMX server connection timeout")),
    rule(Vm, Exact("VirtualThread-unparker")),
    rule(Vm, Exact("SIGTERM handler")),
    rule(Vm, Exact("SIGINT handler")),
    rule(Vm, Exact("SIGHUP handler")),
    // Runs the hooks of Spark and Hadoop at the end (Hadoop's ShutdownHookManager).
    rule(Vm, Prefix("shutdown-hook-")),
    // Spark's remote calls: netty's loops are called by the module (TransportConf), the dispatcher's by
    // endpoint from 3.0 on. Hadoop's client speaks its own.
    rule(Rpc, Prefix("rpc-")),
    rule(Rpc, Prefix("netty-rpc-")),
    rule(Rpc, Prefix("dispatcher-")),
    rule(Rpc, Prefix("globalEventExecutor-")),
    rule(Rpc, Prefix("threadDeathWatcher-")),
    rule(Rpc, Prefix("IPC Client (")),
    rule(Rpc, Prefix("IPC Parameter Sending Thread")),
    // Blocks: shuffles, the block manager, decommissioning, push-based shuffle; then the clients that move
    // the blocks of files (HDFS, S3A).
    rule(Shuffle, Prefix("shuffle-server-")),
    rule(Shuffle, Prefix("shuffle-client-")),
    rule(Shuffle, Prefix("shuffle-boss-")),
    rule(Shuffle, Prefix("shuffle-chunk-fetch-handler-")),
    rule(Shuffle, Prefix("shuffle-finalize-merge-handler-")),
    rule(Shuffle, Prefix("shuffle-block-push-thread")),
    rule(Shuffle, Prefix("shuffle-cleaner-watcher")),
    rule(Shuffle, Prefix("shuffle-merge-finalize")),
    rule(Shuffle, Prefix("spark-shuffle-")),
    rule(Shuffle, Prefix("streaming-shuffle-")),
    rule(Shuffle, Prefix("time-based-flush-for-shuffle-writer")),
    rule(Shuffle, Prefix("files-")),
    rule(Shuffle, Prefix("block-manager-")),
    rule(Shuffle, Prefix("migrate-shuffles")),
    rule(Shuffle, Prefix("wait-for-blocks-to-migrate")),
    rule(Shuffle, Prefix("read-ahead")),
    rule(Shuffle, Exact("RemoteBlock-temp-file-clean-thread")),
    rule(Shuffle, Prefix("DataStreamer for file")),
    rule(Shuffle, Prefix("ResponseProcessor for block")),
    rule(Shuffle, Prefix("s3a-transfer-")),
    // SQL's pools and streaming queries.
    rule(Sql, Prefix("broadcast-exchange-")),
    rule(Sql, Prefix("shuffle-exchange-")),
    rule(Sql, Prefix("subquery-")),
    rule(Sql, Prefix("dynamicpruning-")),
    rule(Sql, Prefix("QueryStageCreator-")),
    rule(Sql, Prefix("ResultQueryStageExecution-")),
    rule(Sql, Prefix("stream execution thread for ")),
    rule(Sql, Prefix("state-store-maintenance-")),
    rule(Sql, Prefix("readingParquetFooters")),
    rule(Sql, Prefix("readingOrcSchemas")),
    rule(Sql, Prefix("file-source-cleaner-threadpool")),
    rule(Sql, Exact("async-log-purge")),
    rule(Sql, Prefix("continuous-reader--")),
    rule(Sql, Prefix("epoch-poll--")),
    rule(Sql, Exact("stop-continuous-execution")),
    rule(Sql, Prefix("spark-session-")),
    // What says that it is alive, measures, and kills. 2.4 executors: driver-heartbeater.
    rule(Heartbeat, Exact("executor-heartbeater")),
    rule(Heartbeat, Exact("driver-heartbeater")),
    rule(Heartbeat, Prefix("executor-metrics-poller")),
    rule(Heartbeat, Prefix("executor-kill-mark-cleanup")),
    rule(Heartbeat, Prefix("Task reaper")),
    rule(Heartbeat, Exact("unmanaged-memory-poller")),
    rule(Heartbeat, Exact("WorkerWatcher-exit-executor")),
    rule(Heartbeat, Exact("CoarseGrainedExecutorBackend-stop-executor")),
    rule(Heartbeat, Prefix("Barrier task timer for barrier() calls")),
    rule(Heartbeat, Prefix("metrics-")),
    // Python, R and piped programs: who feeds, reads and watches them (PythonRunner, PythonWorkerFactory,
    // PipedRDD, BaseRRunner, BaseScriptTransformationExec), and who serves a driver's results to Python.
    rule(Python, Prefix("stdout writer for ")),
    rule(Python, Prefix("stdin writer for ")),
    rule(Python, Prefix("stdout reader for ")),
    rule(Python, Prefix("stderr reader for ")),
    rule(Python, Prefix("writer for R")),
    rule(Python, Prefix("Writer Monitor for ")),
    rule(Python, Prefix("Worker Monitor for ")),
    rule(Python, Prefix("Idle Worker Monitor for ")),
    rule(Python, Exact("accept-connections")),
    rule(Python, Prefix("python-udf-pipelined-writer")),
    rule(Python, Exact("stateConnectionListenerThread")),
    rule(Python, Prefix("stream reader for ")),
    rule(Python, Prefix("udf-worker-")),
    rule(Python, Exact("udf-env-cleanup")),
    rule(Python, Prefix("broadcast-decrypt-server")),
    rule(Python, Prefix("serve-")),
    rule(Python, Prefix("serve RDD ")),
    rule(Python, Exact("serve toLocalIterator")),
    rule(Python, Prefix("Thread-ScriptTransformation-")),
    rule(Python, Prefix("Thread-SparkScriptTransformation")),
    rule(Python, Prefix("Thread-HiveScriptTransformation")),
    // Of pyspark's gateway: what the user's Python program prints.
    rule(Python, Exact("redirect output")),
    rule(Python, Prefix("process reaper")),
    // What only a driver (or an application master) has: scheduling, listening, fetching results, its page.
    rule(Driver, Prefix("dag-scheduler-")),
    rule(Driver, Prefix("task-result-getter-")),
    rule(Driver, Prefix("map-output-dispatcher-")),
    rule(Driver, Exact("driver-revive-thread")),
    rule(Driver, Prefix("driver-executor-delay-remove-thread")),
    rule(Driver, Exact("heartbeat-receiver-event-loop-thread")),
    rule(Driver, Prefix("kill-executor-thread")),
    rule(Driver, Prefix("cleanup-decommission-execs")),
    rule(Driver, Prefix("spark-listener-group-")),
    rule(Driver, Prefix("element-tracking-store-worker")),
    rule(Driver, Exact("Spark Context Cleaner")),
    rule(Driver, Prefix("context-cleaner-periodic-gc")),
    rule(Driver, Prefix("task-starvation-timer")),
    rule(Driver, Prefix("task-abort-timer")),
    rule(Driver, Prefix("task-scheduler-speculation")),
    rule(Driver, Prefix("spark-dynamic-executor-allocation")),
    rule(Driver, Prefix("BarrierCoordinator barrier epoch")),
    rule(Driver, Prefix("AsyncRDDActions-future")),
    rule(Driver, Prefix("SparkUI-")),
    rule(Driver, Prefix("appclient-")),
    rule(Driver, Prefix("LauncherBackend")),
    rule(Driver, Prefix("kubernetes-")),
    rule(Driver, Prefix("OkHttp")),
    rule(Driver, Exact("Driver")),
    rule(Driver, Exact("Reporter")),
    rule(Driver, Prefix("ContainerLauncher")),
    rule(Driver, Prefix("yarn-scheduler-endpoint")),
    rule(Driver, Exact("YARN application state monitor")),
    rule(Driver, Prefix("AMRM ")),
    rule(Driver, Exact("JobGenerator")),
    rule(Driver, Exact("JobScheduler")),
    rule(Driver, Prefix("streaming-job-executor-")),
    rule(Driver, Prefix("RecurringTimer - ")),
    rule(Driver, Prefix("SparkConnectExecuteThread")),
    // Web servers and Spark's daemons; Thrift and Connect; Hadoop's servers in a NodeManager.
    rule(Server, Prefix("MasterUI-")),
    rule(Server, Prefix("WorkerUI-")),
    rule(Server, Prefix("HistoryServerUI-")),
    rule(Server, Prefix("RestSubmissionServer-")),
    rule(Server, Prefix("StandaloneRestServer-")),
    rule(Server, Prefix("qtp")),
    rule(Server, Prefix("JettyScheduler")),
    rule(Server, Prefix("Connector-Scheduler-")),
    rule(Server, Numbered("Scheduler-")),
    rule(Server, Prefix("ExecutorRunner for ")),
    rule(Server, Prefix("DriverRunner for ")),
    rule(Server, Prefix("File appending thread for ")),
    rule(Server, Prefix("master-")),
    rule(Server, Prefix("worker-")),
    rule(Server, Prefix("executor-state-sync-failure-handler")),
    rule(Server, Prefix("log-replay-executor-")),
    rule(Server, Prefix("spark-history-task-")),
    rule(Server, Prefix("HiveServer2-")),
    rule(Server, Prefix("grpc-")),
    rule(Server, Prefix("async-grpc-response-sender")),
    rule(Server, Prefix("IPC Server ")),
    rule(Server, Prefix("Socket Reader #")),
];
