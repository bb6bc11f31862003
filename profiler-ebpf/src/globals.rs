//! What the daemon tells the programs before it loads them. The map that holds these is frozen, so the
//! verifier knows the values and drops code that they make unreachable.
//!
//! Offsets are in bytes, from the kernel's BTF; 0 means that this kernel does not tell.
#![allow(unsafe_code)]

use aya_ebpf::Global;
use profiler_ebpf::MAX_NAMED_EVENTS;

/// Size of the ring, in bytes.
#[unsafe(no_mangle)]
pub static RING_BYTES: Global<u64> = Global::new(512 * 1024);

/// Entries of `THREADS`.
#[unsafe(no_mangle)]
pub static THREAD_ROOM: Global<u64> = Global::new(32_768);

/// Drawn at random: which users and cgroups share a set is not for them to choose.
#[unsafe(no_mangle)]
pub static SHARE_SEED: Global<u64> = Global::new(0);

/// CPUs that there may ever be.
#[unsafe(no_mangle)]
pub static CPUS: Global<u32> = Global::new(1);

/// Weight of a CPU sample: the sampling period, in nanoseconds.
#[unsafe(no_mangle)]
pub static PERIOD_NS: Global<u64> = Global::new(10_101_010);

/// Weight of a sample of page faults: one is taken each so many.
#[unsafe(no_mangle)]
pub static FAULTS_EVERY: Global<u64> = Global::new(256);

/// The same of faults for which something was read.
#[unsafe(no_mangle)]
pub static MAJOR_FAULTS_EVERY: Global<u64> = Global::new(1);

/// Weight of a sample of context switches: one is taken each so many.
#[unsafe(no_mangle)]
pub static SWITCHES_EVERY: Global<u64> = Global::new(101);

/// One wait in a place is taken for about so many nanoseconds of waiting there; 0: waits are not sampled.
#[unsafe(no_mangle)]
pub static WAIT_EVERY_NS: Global<u64> = Global::new(50_000_000);

/// One allocation is taken for about so many bytes.
#[unsafe(no_mangle)]
pub static ALLOC_EVERY: Global<u64> = Global::new(512 * 1024);

/// One sample of a named event is taken each so many, by slot.
#[unsafe(no_mangle)]
pub static NAMED_EVERY: Global<[u64; MAX_NAMED_EVENTS as usize]> =
    Global::new([1; MAX_NAMED_EVENTS as usize]);

/// One request of a disk is taken each so many.
#[unsafe(no_mangle)]
pub static BLOCK_EVERY: Global<u64> = Global::new(1);

/// Where `rwbs` is in the records of `block_rq_issue`.
#[unsafe(no_mangle)]
pub static BLOCK_RWBS: Global<u32> = Global::new(34);

/// The reader is woken once this many bytes wait in the ring.
#[unsafe(no_mangle)]
pub static WAKE_BYTES: Global<u64> = Global::new(128 * 1024);

/// Sets of `SEEN` (a power of two) less one.
#[unsafe(no_mangle)]
pub static SEEN_MASK: Global<u32> = Global::new(511);

/// 1 where `bpf_task_pt_regs` and `bpf_get_current_task_btf` may be called.
#[unsafe(no_mangle)]
pub static HAS_TASK_PT_REGS: Global<u32> = Global::new(0);

/// 1 where what sockets receive is seen (`worker_sockets`).
#[unsafe(no_mangle)]
pub static SEES_RECEIVED: Global<u32> = Global::new(0);

/// `task_struct.__state`, before Linux 5.14 `state`.
#[unsafe(no_mangle)]
pub static TASK_STATE: Global<u32> = Global::new(0);

/// `task_struct.flags`.
#[unsafe(no_mangle)]
pub static TASK_FLAGS: Global<u32> = Global::new(0);

/// `task_struct.pid`: the thread's id.
#[unsafe(no_mangle)]
pub static TASK_PID: Global<u32> = Global::new(0);

/// `task_struct.tgid`: the process's id.
#[unsafe(no_mangle)]
pub static TASK_TGID: Global<u32> = Global::new(0);

/// `task_struct.on_cpu`: 1 while the thread runs.
#[unsafe(no_mangle)]
pub static TASK_ON_CPU: Global<u32> = Global::new(0);

/// `task_struct.mm`.
#[unsafe(no_mangle)]
pub static TASK_MM: Global<u32> = Global::new(0);

/// Where `task_struct.thread` keeps the thread's pointer to its TLS.
#[unsafe(no_mangle)]
pub static TASK_THREAD_POINTER: Global<u32> = Global::new(0);

/// `mm_struct.start_stack`: top of the main thread's stack.
#[unsafe(no_mangle)]
pub static MM_START_STACK: Global<u32> = Global::new(0);

/// `task_struct.signal`.
#[unsafe(no_mangle)]
pub static TASK_SIGNAL: Global<u32> = Global::new(0);

/// `signal_struct.live`: threads of the process that have not ended.
#[unsafe(no_mangle)]
pub static SIGNAL_LIVE: Global<u32> = Global::new(0);

/// `sock_common.skc_num`: a socket's own port.
#[unsafe(no_mangle)]
pub static SOCK_NUM: Global<u32> = Global::new(0);

/// `sock_common.skc_dport`: the other end's port, in network order.
#[unsafe(no_mangle)]
pub static SOCK_DPORT: Global<u32> = Global::new(0);

/// `sock_common.skc_net`: the network namespace.
#[unsafe(no_mangle)]
pub static SOCK_NET: Global<u32> = Global::new(0);

/// `sock_common.skc_family`.
#[unsafe(no_mangle)]
pub static SOCK_FAMILY: Global<u32> = Global::new(0);

/// `unix_sock.peer`: the other end.
#[unsafe(no_mangle)]
pub static UNIX_PEER: Global<u32> = Global::new(0);

/// `task_struct.start_time`: CLOCK_MONOTONIC, nanoseconds.
#[unsafe(no_mangle)]
pub static TASK_START: Global<u32> = Global::new(0);

/// `task_struct.se.sum_exec_runtime`: nanoseconds.
#[unsafe(no_mangle)]
pub static TASK_CPU: Global<u32> = Global::new(0);

/// `task_struct.sched_info.run_delay`: nanoseconds.
#[unsafe(no_mangle)]
pub static TASK_RUN_DELAY: Global<u32> = Global::new(0);

/// `task_struct.utime`: nanoseconds.
#[unsafe(no_mangle)]
pub static TASK_UTIME: Global<u32> = Global::new(0);

/// `task_struct.stime`: nanoseconds.
#[unsafe(no_mangle)]
pub static TASK_STIME: Global<u32> = Global::new(0);

/// `task_struct.nvcsw`.
#[unsafe(no_mangle)]
pub static TASK_NVCSW: Global<u32> = Global::new(0);

/// `task_struct.nivcsw`.
#[unsafe(no_mangle)]
pub static TASK_NIVCSW: Global<u32> = Global::new(0);

/// `task_struct.min_flt`.
#[unsafe(no_mangle)]
pub static TASK_MIN_FLT: Global<u32> = Global::new(0);

/// `task_struct.maj_flt`.
#[unsafe(no_mangle)]
pub static TASK_MAJ_FLT: Global<u32> = Global::new(0);

/// `task_struct.se.cfs_rq`: the run queue of its group on its CPU.
#[unsafe(no_mangle)]
pub static TASK_CFS_RQ: Global<u32> = Global::new(0);

/// `cfs_rq.rq`: the CPU's run queue.
#[unsafe(no_mangle)]
pub static CFS_RQ_RQ: Global<u32> = Global::new(0);

/// `cfs_rq.throttled_clock_self`: since when the group is throttled there, 0 while it is not (Linux 6.6).
#[unsafe(no_mangle)]
pub static CFS_RQ_SINCE: Global<u32> = Global::new(0);

/// `cfs_rq.throttled_clock_self_time`: for how long it was before, nanoseconds.
#[unsafe(no_mangle)]
pub static CFS_RQ_THROTTLED: Global<u32> = Global::new(0);

/// `rq.clock`: nanoseconds.
#[unsafe(no_mangle)]
pub static RQ_CLOCK: Global<u32> = Global::new(0);

/// `task_struct.sched_task_group`.
#[unsafe(no_mangle)]
pub static TASK_GROUP: Global<u32> = Global::new(0);

/// `task_group.parent`.
#[unsafe(no_mangle)]
pub static GROUP_PARENT: Global<u32> = Global::new(0);

/// `task_group.cfs_bandwidth.quota`: nanoseconds a period, all ones: none.
#[unsafe(no_mangle)]
pub static GROUP_QUOTA: Global<u32> = Global::new(0);

/// `task_struct.ioac.read_bytes`.
#[unsafe(no_mangle)]
pub static TASK_READ_BYTES: Global<u32> = Global::new(0);

/// `task_struct.ioac.write_bytes`.
#[unsafe(no_mangle)]
pub static TASK_WRITE_BYTES: Global<u32> = Global::new(0);
