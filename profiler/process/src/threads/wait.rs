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
use emberscope_model::{Frame, FrameKind, Stack, WaitReason};

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
mod tests;
