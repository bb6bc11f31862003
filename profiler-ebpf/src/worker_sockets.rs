//! Data that reaches a PySpark worker while it is busy: then nobody is woken (see `workers`), and the socket tells.
//!
//! A worker that is used again may still be cleaning up after its last task when the next one's first bytes arrive, and work
//! for long without waiting for more. Over TCP the kernel runs the receiver's side of a connection of this machine in the
//! sender's system call, where `tcp_probe` has the socket. In: such packets, of a worker, which tell the connection's ports,
//! and of a thread that serves a task, which then binds the worker of that connection. Attached only while there is a
//! worker, and only where a thread's registers tell that it moves bytes: a timer's packet is its connection's, and not that of
//! the thread that it interrupted. Unix sockets have no such tracepoint.
#![allow(unsafe_code)]

use crate::globals::{SOCK_DPORT, SOCK_NET, SOCK_NUM, TASK_TGID};
use crate::maps::{CONNECTIONS, PARTIES};
use crate::workers::{bind, moves_bytes, serves};
use aya_ebpf::helpers::generated::bpf_get_current_task;
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_probe_read_kernel};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use profiler_ebpf::PartyKind;

/// Who is at one end of a connection.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct End {
    /// The address of the worker's main thread, whose memory is read without faulting.
    main: u64,
    /// Its pid.
    pid: u32,
    pad: u32,
}

/// A packet of an established connection: TP_PROTO(struct sock *sk, struct sk_buff *skb).
#[raw_tracepoint(tracepoint = "tcp_probe")]
pub fn worker_packet(ctx: RawTracePointContext) -> i32 {
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    let Some(party) = PARTIES.get_ptr(pid) else { return 0 };
    // SAFETY: an entry of the map, whose kind and executor do not change.
    let kind = unsafe { (*party).kind };
    let worker = kind == PartyKind::Worker as u32 && tid == pid;
    if !worker && (kind != PartyKind::Executor as u32 || !serves(tid)) {
        return 0;
    }
    let Some(connection) = connection(ctx.arg(0)) else { return 0 };
    let known = CONNECTIONS.get_ptr(connection);
    if worker {
        // SAFETY: an entry of the map; the helper has no preconditions.
        unsafe {
            if known.is_none_or(|end| (*end).pid != pid) && moves_bytes() {
                let end = End { main: bpf_get_current_task(), pid, pad: 0 };
                let _ = CONNECTIONS.insert(connection, end, 0);
            }
        }
        return 0;
    }
    let Some(end) = known else { return 0 };
    // SAFETY: entries of the maps; a read of kernel memory that cannot fault.
    unsafe {
        let End { main, pid: of, .. } = end.read();
        let main = main as *const u8;
        let is_there = bpf_probe_read_kernel(main.add(TASK_TGID.load() as usize).cast::<u32>()) == Ok(of);
        if let Some(worker) = PARTIES.get_ptr_mut(of)
            && is_there
            && (*worker).kind == PartyKind::Worker as u32
            && (*worker).executor == pid
        {
            bind(&ctx, worker, (of, main), tid);
        }
    }
    0
}

/// What both ends of a connection have in common: their ports, and their network namespace.
#[inline(always)]
fn connection(sock: *const u8) -> Option<u64> {
    let (number, peer, net) =
        (SOCK_NUM.load() as usize, SOCK_DPORT.load() as usize, SOCK_NET.load() as usize);
    // SAFETY: reads of kernel memory that cannot fault; the offsets are those of this kernel's BTF.
    unsafe {
        let port = |at: usize| bpf_probe_read_kernel(sock.add(at).cast::<u16>()).ok();
        let (own, other) = (u64::from(port(number)?), u64::from(u16::from_be(port(peer)?)));
        let net = bpf_probe_read_kernel(sock.add(net).cast::<u64>()).ok()?;
        let (low, high) = if own < other { (own, other) } else { (other, own) };
        // A namespace lies at a multiple of a cache line; its upper bits are all the same.
        Some(net << 26 | high << 16 | low)
    }
}
