use super::*;
use emberscope_model::StackEnd;
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
    let frames = ["java.lang.Thread.run", "java.util.concurrent.ThreadPoolExecutor.runWorker"].into_iter();
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
    let poll =
        "n:SafepointMechanism::process(JavaThread*, bool, bool);n:SafepointSynchronize::block(JavaThread*)";
    assert_eq!(in_task(&format!("{fetch};{poll};k:futex_wait")), WaitReason::Gc);
    let collects = "n:VMThread::execute(VM_Operation*);n:Monitor::wait(unsigned long);k:futex_wait";
    assert_eq!(in_task(&format!("a.B.c;{collects}")), WaitReason::Gc);
    let monitor = "n:SharedRuntime::complete_monitor_locking_C(oopDesc*);n:ObjectMonitor::enter(JavaThread*)";
    assert_eq!(in_task(&format!("{fetch};{monitor};k:futex_wait")), WaitReason::Lock);
    // What the JVM was called for from native code further down says nothing.
    assert_eq!(in_task(&format!("{poll};a.B.c;java.lang.Thread.sleep;k:futex_wait")), WaitReason::Sleep);
}

#[test]
fn the_kernel_and_the_c_library_know_better() {
    // As seen on Spark 3.5.9 and 4.3.0 while classes are loaded and code is compiled.
    let fetch = "~.storage.ShuffleBlockFetcherIterator.next";
    let load =
        "java.lang.ClassLoader.loadClass;java.io.RandomAccessFile.readBytes;n:handleRead;n:__GI___libc_read";
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
    let pipe = "java.lang.Process$PipeInputStream.read;java.io.FileInputStream.readBytes;k:anon_pipe_read";
    assert_eq!(in_task(&format!("~.api.python.PythonWorkerFactory.startDaemon;{pipe}")), WaitReason::Python);
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
    assert_eq!(in_task("a.B.c;java.lang.Object.wait;n:ObjectMonitor::wait(long, bool)"), WaitReason::Lock);
    assert_eq!(in_task("a.B.c;k:schedule"), WaitReason::Other);
    assert_eq!(of("k:futex_wait"), WaitReason::Other);
}

#[test]
fn upstream_of_python_within_its_runner() {
    let upstream = "~.api.python.BasePythonRunner$ReaderInputStream.read;~.rdd.MapPartitionsRDD.compute";
    assert_eq!(in_task(&format!("{upstream};a.B.c;java.lang.Thread.sleep")), WaitReason::Sleep);
    let fetch = "~.storage.ShuffleBlockFetcherIterator.next;java.util.concurrent.LinkedBlockingQueue.take";
    assert_eq!(in_task(&format!("{upstream};{fetch};{PARK}")), WaitReason::Shuffle);
}

#[test]
fn between_two_tasks() {
    let get = "java.util.concurrent.ThreadPoolExecutor.getTask;java.util.concurrent.SynchronousQueue.poll";
    assert_eq!(of(&format!("{get};{PARK}")), WaitReason::Idle);
}
