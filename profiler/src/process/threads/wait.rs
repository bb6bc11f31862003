//! Why a thread that runs a task stood still, by its stack.
//!
//! In: a named stack, root first. Out: a [`WaitReason`]. Two things tell: what the thread does to wait (the leaf's side: a
//! safepoint, a monitor, a read of a socket or a file, a sleep, a park), and who wants that (the innermost Java method that is
//! no plumbing of the JDK, Scala, netty or Arrow). A read of a socket is `python` where Spark's PythonRunner wants it,
//! `storage` where HDFS's client does, and `network` where none of them do.
//!
//! Only the innermost of those who want counts: up to the root there may be others, which are in the middle of something else
//! (from Spark 4.0 on a task's thread works upstream of its Python function within PythonRunner).

use super::idle::{Occupation, is_java, occupation};
use crate::model::{Frame, FrameKind, Stack, WaitReason};

/// What the JVM itself does in a thread that has to wait for all threads to stop, or for what is done meanwhile (names of
/// JDK 8 to 25: safepoint.cpp, safepointMechanism.cpp, vmThread.cpp, gcLocker.cpp, zPageAllocator.cpp, g1CollectedHeap.cpp).
const STOPPED: [&str; 9] = [
    "SafepointSynchronize::block",
    "SafepointMechanism::",
    "ThreadSafepointState::",
    "VMThread::execute",
    "VMThread::wait_until_executed",
    "GCLocker::",
    "GC_locker::",
    "ZPageAllocator::",
    "ShenandoahHeap::allocate_memory",
];

/// A monitor that another thread holds (objectMonitor.cpp, synchronizer.cpp); locks of the JVM's own; mutexes of the C library.
const MONITOR: [&str; 9] = [
    "ObjectMonitor::enter",
    "ObjectMonitor::Enter",
    "ObjectSynchronizer::enter",
    "Mutex::lock",
    "Monitor::lock",
    "__lll_lock_wait",
    "pthread_mutex_lock",
    "__GI___pthread_mutex_lock",
    "pthread_cond_broadcast",
];

/// Functions of the kernel that say why whatever Java wants: a block of a disk, another thread's lock on a file or on the
/// process's memory (kernel/sched/core.c, kernel/locking).
const SURE: [(&[&str], WaitReason); 2] = [
    (&["io_schedule"], WaitReason::Storage),
    (&["rwsem_down_", "__mutex_lock", "mutex_lock"], WaitReason::Lock),
];

/// Who waits for a Python worker, or for a program that an RDD is piped through.
const PYTHON: [&str; 4] = [
    "org.apache.spark.api.python.",
    "org.apache.spark.sql.execution.python.",
    "org.apache.spark.rdd.PipedRDD",
    "org.apache.spark.security.Socket",
];

/// Who waits for blocks of other executors, or to be told where they are.
const SHUFFLE: [&str; 6] = [
    "org.apache.spark.storage.ShuffleBlockFetcherIterator",
    "org.apache.spark.storage.PushBasedFetchHelper",
    "org.apache.spark.shuffle.BlockStoreShuffleReader",
    "org.apache.spark.MapOutputTracker",
    "org.apache.spark.network.BlockTransferService",
    "org.apache.spark.storage.BlockManager.getRemote",
];

/// Who waits for files, HDFS or an object store.
const STORAGE: [&str; 10] = [
    "org.apache.hadoop.",
    "org.apache.parquet.",
    "org.apache.orc.",
    "com.amazonaws.",
    "software.amazon.awssdk.",
    "com.google.cloud.hadoop.",
    "com.azure.storage.",
    "org.apache.spark.storage.Disk",
    "org.apache.spark.network.buffer.FileSegment",
    "org.apache.spark.unsafe.sort.UnsafeSorterSpill",
];

/// Who asks another process of Spark's, and waits for the answer.
const PEER: [&str; 4] = [
    "org.apache.spark.rpc.",
    "org.apache.spark.broadcast.TorrentBroadcast",
    "org.apache.spark.util.RpcUtils",
    "org.apache.spark.executor.ExecutorClassLoader",
];

/// Who only does what its caller wants.
const PLUMBING: [&str; 13] = [
    "java.",
    "javax.",
    "jdk.",
    "sun.",
    "com.sun.",
    "scala.",
    "io.netty.",
    "org.apache.arrow.",
    "com.google.common.",
    "org.apache.spark.util.ThreadUtils",
    "org.apache.spark.network.util.",
    "org.apache.commons.",
    "org.sparkproject.",
];

/// Classes of the JDK that read and write files.
const FILE: [&str; 9] = [
    "java.io.FileInputStream",
    "java.io.FileOutputStream",
    "java.io.FileDescriptor",
    "java.io.RandomAccessFile",
    "java.io.UnixFileSystem",
    "sun.nio.ch.FileChannelImpl",
    "sun.nio.ch.FileDispatcherImpl",
    "sun.nio.ch.UnixFileDispatcherImpl",
    "sun.nio.fs.",
];

/// Classes of the JDK that read and write sockets, or wait for them.
const SOCKET: [&str; 9] = [
    "java.net.",
    "sun.nio.ch.NioSocketImpl",
    "sun.nio.ch.Socket",
    "sun.nio.ch.UnixDomainSockets",
    "sun.nio.ch.Net",
    "sun.nio.ch.EPoll",
    "sun.nio.ch.SelectorImpl",
    "sun.nio.ch.ServerSocket",
    "java.nio.channels.Selector",
];

/// Functions of the kernel in which a thread waits, where no Java method says more: for a page or a block, for a socket, for
/// time (mm/filemap.c, block/blk-core.c, net/, kernel/time/hrtimer.c).
const KERNEL: [(&[&str], WaitReason); 3] = [
    (&["folio_wait_bit", "wait_on_page_bit", "filemap_fault", "jbd2_"], WaitReason::Storage),
    (
        &[
            "tcp_recvmsg",
            "tcp_sendmsg",
            "unix_stream_",
            "inet_stream_connect",
            "sk_wait_data",
            "do_epoll_wait",
        ],
        WaitReason::Network,
    ),
    (&["hrtimer_nanosleep", "do_nanosleep"], WaitReason::Sleep),
];

/// Why a thread with this stack waited.
pub fn wait_reason(stack: &Stack) -> WaitReason {
    if occupation(stack) == Occupation::Idle {
        return WaitReason::Idle;
    }
    let leaf_first = || stack.frames.iter().rev().map(|frame| &**frame);
    let native = |names: &[&str]| {
        let jvm =
            leaf_first().take_while(|frame| !is_any_java(frame)).filter(|f| f.kind == FrameKind::Native);
        jvm.into_iter().any(|frame| begins(frame, names))
    };
    if native(&STOPPED) {
        return WaitReason::Gc;
    }
    if native(&MONITOR) {
        return WaitReason::Lock;
    }
    if let Some(sure) = by_kernel(stack, &SURE) {
        return sure;
    }
    let mut java = leaf_first().filter(|frame| is_any_java(frame));
    let wants = java.clone().find(|frame| !begins(frame, &PLUMBING));
    let of = |names: &[&str]| wants.is_some_and(|frame| begins(frame, names));
    let mut plumbing = java.by_ref().take_while(|frame| begins(frame, &PLUMBING));
    match () {
        () if of(&PYTHON) => WaitReason::Python,
        () if of(&SHUFFLE) => WaitReason::Shuffle,
        () if of(&STORAGE) => WaitReason::Storage,
        () if of(&PEER) => WaitReason::Network,
        () => plumbing.find_map(by_means).or_else(|| by_kernel(stack, &KERNEL)).unwrap_or(WaitReason::Other),
    }
}

/// By the JDK's method that waits.
fn by_means(frame: &Frame) -> Option<WaitReason> {
    match () {
        () if begins(frame, &FILE) => Some(WaitReason::Storage),
        () if begins(frame, &SOCKET) => Some(WaitReason::Network),
        () if ["java.lang.Thread.sleep", "java.lang.Thread.sleep0"]
            .iter()
            .any(|name| is_java(frame, name)) =>
        {
            Some(WaitReason::Sleep)
        }
        // The thread itself is one of these.
        () if begins(frame, &["java.util.concurrent.ThreadPoolExecutor"]) => None,
        // Unsafe.park is below these; what it is for is told by who calls it.
        () if begins(frame, &["java.util.concurrent.", "java.lang.Object.wait"]) => Some(WaitReason::Lock),
        () => None,
    }
}

fn by_kernel(stack: &Stack, all: &[(&[&str], WaitReason)]) -> Option<WaitReason> {
    let kernel = || stack.frames.iter().filter(|frame| frame.kind == FrameKind::Kernel);
    let tells =
        |(names, reason): &(&[&str], WaitReason)| kernel().any(|f| begins(f, names)).then_some(*reason);
    all.iter().find_map(tells)
}

fn is_any_java(frame: &Frame) -> bool {
    matches!(frame.kind, FrameKind::JavaCompiled | FrameKind::JavaInlined | FrameKind::JavaInterpreted)
}

fn begins(frame: &Frame, names: &[&str]) -> bool {
    names.iter().any(|name| frame.name.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StackEnd;
    use std::sync::Arc;

    /// From the root; `k:` a function of the kernel, `n:` a native one, else a Java method, in which `~` stands for
    /// `org.apache.spark`.
    fn of(text: &str) -> WaitReason {
        let frame = |line: &str| {
            let (kind, name) = match line.trim().split_once(':').filter(|(kind, _)| kind.len() == 1) {
                Some(("k", name)) => (FrameKind::Kernel, name),
                Some((_, name)) => (FrameKind::Native, name),
                None => (FrameKind::JavaCompiled, line.trim()),
            };
            Arc::new(Frame::new(kind, name.replace('~', "org.apache.spark"), ""))
        };
        let frames =
            ["java.lang.Thread.run", "java.util.concurrent.ThreadPoolExecutor.runWorker"].into_iter();
        let frames = frames.chain(text.split(';')).map(frame).collect();
        wait_reason(&Stack { frames, end: StackEnd::Root })
    }

    const TASK: &str = "~.executor.Executor$TaskRunner.run;~.scheduler.ResultTask.runTask";
    const PARK: &str = "java.util.concurrent.locks.LockSupport.park;jdk.internal.misc.Unsafe.park;n:Unsafe_Park;\
                        n:Parker::park;k:futex_wait;k:schedule";

    fn in_task(rest: &str) -> WaitReason {
        of(&format!("{TASK};{rest}"))
    }

    #[test]
    fn who_wants_it_tells_sockets_apart() {
        let socket =
            "java.net.Socket$SocketInputStream.read;sun.nio.ch.NioSocketImpl.read;n:__poll;k:do_sys_poll";
        for (who, reason) in [
            (
                "~.api.python.BasePythonRunner$ReaderIterator.hasNext;java.io.DataInputStream.readInt",
                WaitReason::Python,
            ),
            (
                "~.sql.execution.python.PythonArrowOutput$$anon$1.read;org.apache.arrow.vector.ipc.ReadChannel.readFully",
                WaitReason::Python,
            ),
            ("org.apache.hadoop.hdfs.DFSInputStream.read", WaitReason::Storage),
            ("com.amazonaws.http.AmazonHttpClient.execute", WaitReason::Storage),
            ("a.B.c;com.mysql.cj.protocol.FullReadInputStream.read", WaitReason::Network),
        ] {
            assert_eq!(in_task(&format!("{who};{socket}")), reason, "{who}");
        }
    }

    #[test]
    fn what_a_queue_is_for() {
        let take = format!("java.util.concurrent.LinkedBlockingQueue.take;{PARK}");
        let fetch = "~.storage.ShuffleBlockFetcherIterator.next";
        assert_eq!(in_task(&format!("{fetch};{take}")), WaitReason::Shuffle);
        assert_eq!(in_task(&format!("a.B.c;{take}")), WaitReason::Lock);
        let lock = format!("java.util.concurrent.locks.ReentrantLock.lock;{PARK}");
        assert_eq!(in_task(&format!("a.B.c;{lock}")), WaitReason::Lock);
        let answer = format!("scala.concurrent.impl.Promise$DefaultPromise.tryAwait;{PARK}");
        assert_eq!(
            in_task(&format!("~.rpc.RpcTimeout.awaitResult;~.util.ThreadUtils$.awaitResult;{answer}")),
            WaitReason::Network
        );
        assert_eq!(in_task(&format!("~.MapOutputTrackerWorker.getStatuses;{answer}")), WaitReason::Shuffle);
    }

    #[test]
    fn the_jvm_stops_threads_wherever_they_are() {
        let fetch = "~.storage.ShuffleBlockFetcherIterator.next";
        let poll = "n:SafepointMechanism::process(JavaThread*, bool, bool);n:SafepointSynchronize::block(JavaThread*)";
        assert_eq!(in_task(&format!("{fetch};{poll};k:futex_wait")), WaitReason::Gc);
        let collects = "n:VMThread::execute(VM_Operation*);n:Monitor::wait(unsigned long);k:futex_wait";
        assert_eq!(in_task(&format!("a.B.c;{collects}")), WaitReason::Gc);
        let monitor =
            "n:SharedRuntime::complete_monitor_locking_C(oopDesc*);n:ObjectMonitor::enter(JavaThread*)";
        assert_eq!(in_task(&format!("{fetch};{monitor};k:futex_wait")), WaitReason::Lock);
        // What the JVM was called for from native code further down says nothing.
        assert_eq!(in_task(&format!("{poll};a.B.c;java.lang.Thread.sleep;k:futex_wait")), WaitReason::Sleep);
    }

    #[test]
    fn the_kernel_and_the_c_library_know_better() {
        // As seen on Spark 3.5.9 and 4.3.0 while classes are loaded and code is compiled.
        let fetch = "~.storage.ShuffleBlockFetcherIterator.next";
        let load = "java.lang.ClassLoader.loadClass;java.io.RandomAccessFile.readBytes;n:handleRead;n:__GI___libc_read";
        let block = "k:filemap_read;k:folio_wait_bit_common;k:io_schedule;k:schedule";
        assert_eq!(in_task(&format!("{fetch};{load};{block}")), WaitReason::Storage);
        let compile =
            "n:CompileBroker::compile_method(methodHandle const&);n:Mutex::lock(Thread*);n:__lll_lock_wait";
        assert_eq!(in_task(&format!("{fetch};{compile};k:futex_do_wait")), WaitReason::Lock);
        let wake =
            "n:CompileBroker::compile_method_base(methodHandle const&);n:pthread_cond_broadcast@@GLIBC_2.3.2";
        assert_eq!(in_task(&format!("{fetch};{wake};k:futex_do_wait")), WaitReason::Lock);
        let memory = "n:__GI___mprotect;k:do_mprotect_pkey;k:down_write_killable;k:rwsem_down_write_slowpath";
        assert_eq!(in_task(&format!("a.B.c;{memory};k:schedule_preempt_disabled")), WaitReason::Lock);
        let pipe =
            "java.lang.Process$PipeInputStream.read;java.io.FileInputStream.readBytes;k:anon_pipe_read";
        assert_eq!(
            in_task(&format!("~.api.python.PythonWorkerFactory.startDaemon;{pipe}")),
            WaitReason::Python
        );
    }

    #[test]
    fn time_files_and_the_kernel() {
        assert_eq!(in_task("a.B.c;java.lang.Thread.sleep;n:JVM_Sleep;k:futex_wait"), WaitReason::Sleep);
        assert_eq!(
            in_task("a.B.c;java.lang.Thread.sleep;java.lang.Thread.sleep0;k:futex_wait"),
            WaitReason::Sleep
        );
        assert_eq!(in_task("a.B.c;java.io.FileInputStream.readBytes;k:io_schedule"), WaitReason::Storage);
        assert_eq!(in_task("a.B.c;k:asm_exc_page_fault;k:filemap_fault;k:io_schedule"), WaitReason::Storage);
        assert_eq!(
            in_task("a.B.c;java.lang.Object.wait;n:ObjectMonitor::wait(long, bool)"),
            WaitReason::Lock
        );
        assert_eq!(in_task("a.B.c;k:schedule"), WaitReason::Other);
        assert_eq!(of("k:futex_wait"), WaitReason::Other);
    }

    #[test]
    fn upstream_of_python_within_its_runner() {
        let upstream = "~.api.python.BasePythonRunner$ReaderInputStream.read;~.rdd.MapPartitionsRDD.compute";
        assert_eq!(in_task(&format!("{upstream};a.B.c;java.lang.Thread.sleep")), WaitReason::Sleep);
        let fetch =
            "~.storage.ShuffleBlockFetcherIterator.next;java.util.concurrent.LinkedBlockingQueue.take";
        assert_eq!(in_task(&format!("{upstream};{fetch};{PARK}")), WaitReason::Shuffle);
    }

    #[test]
    fn between_two_tasks() {
        let get =
            "java.util.concurrent.ThreadPoolExecutor.getTask;java.util.concurrent.SynchronousQueue.poll";
        assert_eq!(of(&format!("{get};{PARK}")), WaitReason::Idle);
    }
}
