//! The BPF programs: what runs in the kernel.
//!
//! `sample` (`sample_first` and `sample_more`, or `sample_bounded`, where the kernel has no `bpf_loop`) runs at each tick
//! of a perf event and sends a sample, and its stack if that is new to the epoch; `events` reports exec, fork and exit; `threads` the names of a JVM's threads, and `asked`
//! what its threads used; `workers` and `worker_sockets` for which task a PySpark worker works, `waits` how long that task
//! waited for it; `off_cpu` where tasks' threads wait; `alloc` where a JVM's threads allocate, `named` who met an event that a user named, `block` how long disks' requests were out, `pauses` when they all stand still. Everything goes up through one ring buffer. What differs between kernels comes in as
//! frozen globals, so that the verifier never looks at what this kernel cannot do.
#![no_std]
#![no_main]
#![allow(unsafe_code)]
// Programs are built with a nightly compiler or RUSTC_BOOTSTRAP=1, which aya-ebpf needs for the same.
#![feature(asm_experimental_arch)]

mod accounts;
mod alloc;
mod asked;
mod block;
mod events;
mod globals;
mod maps;
mod named;
mod off_cpu;
mod output;
mod pauses;
mod regs;
mod sample;
mod seen;
mod send;
mod shares;
mod threads;
mod waits;
mod walk;
mod worker_sockets;
mod workers;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// Helpers such as `bpf_probe_read_kernel` are open only to programs under a GPL-compatible licence;
/// this one is among those that the kernel knows (include/linux/license.h).
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
