//! What the daemon tells the programs before it loads them. The map that holds these is frozen, so the
//! verifier knows the values and drops code that they make unreachable.
//!
//! Offsets are in bytes, from the kernel's BTF; 0 means that this kernel does not tell.
#![allow(unsafe_code)]

use aya_ebpf::Global;

/// Weight of a CPU sample: the sampling period, in nanoseconds.
#[unsafe(no_mangle)]
pub static PERIOD_NS: Global<u64> = Global::new(10_101_010);

/// The reader is woken once this many bytes wait in the ring.
#[unsafe(no_mangle)]
pub static WAKE_BYTES: Global<u64> = Global::new(128 * 1024);

/// Sets of `SEEN` (a power of two) less one.
#[unsafe(no_mangle)]
pub static SEEN_MASK: Global<u32> = Global::new(511);

/// 1 where `bpf_task_pt_regs` and `bpf_get_current_task_btf` may be called.
#[unsafe(no_mangle)]
pub static HAS_TASK_PT_REGS: Global<u32> = Global::new(0);

/// `task_struct.flags`.
#[unsafe(no_mangle)]
pub static TASK_FLAGS: Global<u32> = Global::new(0);

/// `task_struct.pid`: the thread's id.
#[unsafe(no_mangle)]
pub static TASK_PID: Global<u32> = Global::new(0);

/// `task_struct.tgid`: the process's id.
#[unsafe(no_mangle)]
pub static TASK_TGID: Global<u32> = Global::new(0);

/// `task_struct.mm`.
#[unsafe(no_mangle)]
pub static TASK_MM: Global<u32> = Global::new(0);

/// `task_struct.thread.fsbase`: where the thread's TLS is.
#[unsafe(no_mangle)]
pub static TASK_FSBASE: Global<u32> = Global::new(0);

/// `mm_struct.start_stack`: top of the main thread's stack.
#[unsafe(no_mangle)]
pub static MM_START_STACK: Global<u32> = Global::new(0);
