//! Which threads work for the task whose thread made them.

/// How such threads are called. Each is made by `new Thread(..)`, or by a pool of its own, in the code of a
/// task, works for that task alone and ends with it:
/// - `stdout writer for`: evaluates all that is upstream of a Python UDF (PythonRunner.scala, to 3.5); with
///   it `Writer Monitor for` and `Worker Monitor for`; `accept-connections` of a barrier task, which the
///   writer may make; `stateConnectionListenerThread` (TransformWithStateInPySparkPythonRunner.scala, 4.x);
/// - `writer for R` (BaseRRunner.scala);
/// - `stdin writer for` (PipedRDD.scala); `Thread-..ScriptTransformation..`, the feeder and the reader of
///   errors of `SELECT TRANSFORM` (BaseScriptTransformationExec.scala);
/// - `read-ahead` of a spilled file (ReadAheadInputStream.java); `readingParquetFooters`, `readingOrcSchemas`
///   (ThreadUtils.parmap); `continuous-reader--` (ContinuousQueuedDataReader.scala).
///
/// Not in the list though a task's thread makes them first: what serves later tasks too, such as `stdout
/// reader for`, `stderr reader for` and `Idle Worker Monitor for` of the Python daemon
/// (PythonWorkerFactory.scala), `python-udf-pipelined-writer` (a pool, 4.3), netty's loops,
/// `broadcast-exchange-`, `process reaper`, and pools of the user's.
const PREFIXES: [&[u8]; 14] = [
    b"stdout writer for ",
    b"Writer Monitor for ",
    b"Worker Monitor for ",
    b"accept-connections",
    b"stateConnectionListenerThread",
    b"writer for R",
    b"stdin writer for ",
    b"Thread-ScriptTransformation-",
    b"Thread-SparkScriptTransformation",
    b"Thread-HiveScriptTransformation",
    b"read-ahead",
    b"readingParquetFooters",
    b"readingOrcSchemas",
    b"continuous-reader--",
];

/// Whether a thread with this name, made by a task's thread, is the task's.
pub(super) fn works_for_its_maker(name: &[u8]) -> bool {
    // PipedRDD's reader of errors names a command, as Scala prints a list: `List(cat)`, `ArrayBuffer(cat)`.
    // The Python daemon's names a program.
    let piped = name.strip_prefix(b"stderr reader for ").is_some_and(|of| of.ends_with(b")"));
    piped || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tasks_own_and_those_that_outlive_it() {
        for name in [
            "stdout writer for python3",
            "Writer Monitor for /usr/bin/python3 (writer thread id 77)",
            "Worker Monitor for python3",
            "stdin writer for List(cat)",
            "stderr reader for List(cat)",
            "stderr reader for ArrayBuffer(grep, -v, x)",
            "Thread-ScriptTransformation-Feed",
            "Thread-ScriptTransformation-STDERR-Consumer",
            "Thread-SparkScriptTransformationWriterThread-Feed",
            "read-ahead",
            "writer for R",
        ] {
            assert!(works_for_its_maker(name.as_bytes()), "{name}");
        }
        for name in [
            "stderr reader for python3",
            "stdout reader for python3",
            "stdout reader for R",
            "Idle Worker Monitor for python3",
            "process reaper",
            "shuffle-client-4-1",
            "broadcast-exchange-0",
            "Thread-7",
            "pool-1-thread-1",
            "python-udf-pipelined-writer-0",
            "Executor task launch worker-3",
            "",
        ] {
            assert!(!works_for_its_maker(name.as_bytes()), "{name}");
        }
    }
}
