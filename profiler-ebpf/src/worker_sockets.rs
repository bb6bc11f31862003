//! Data that reaches a PySpark worker while it is busy: then nobody is woken (see `workers`), and the socket tells. And
//! data that a worker reads after its task's end: then it has cleaned up, and begins with something else.
//!
//! A worker that is used again may still be cleaning up after its last task when the next one's first bytes arrive, and work
//! for long without waiting for more. In: what is sent over sockets, by a worker, which tells the connection, and by a thread
//! that serves a task, which then binds the worker of that connection. Attached only while there is a worker.
//!
//! From Linux 6.3 on `sock_send_length` has the sender's socket at each send, of TCP and Unix sockets both. Before, `tcp_probe`
//! has the packets of TCP: the kernel runs the receiver's side of a connection of this machine in the sender's system call.
//! There only a thread counts whose registers tell that it moves bytes: a timer's packet is its connection's, and not that
//! of the thread that it interrupted. Unix sockets have no such tracepoint. `sock_recv_length` came with `sock_send_length`.
#![allow(unsafe_code)]

use crate::globals::{SOCK_DPORT, SOCK_FAMILY, SOCK_NET, SOCK_NUM, TASK_TGID, UNIX_PEER};
use crate::maps::{CONNECTIONS, PARTIES};
use crate::workers::{bind, moves_bytes, received, serves};
use aya_ebpf::helpers::generated::bpf_get_current_task;
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_probe_read_kernel};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use profiler_ebpf::PartyKind;

/// `AF_UNIX` of include/linux/socket.h, the same on all architectures.
const UNIX: u16 = 1;

/// Who is at one end of a connection.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct End {
    /// The address of the worker's main thread, whose memory is read without faulting.
    main: u64,
    /// Of a Unix socket its address, else 0.
    socket: u64,
    /// The worker's pid.
    pid: u32,
    pad: u32,
}

/// A connection, as one of its ends sees it.
struct Connection {
    /// What both ends have in common.
    key: u64,
    /// The worker's socket, where the key does not tell all.
    socket: u64,
}

/// A thread has sent something: TP_PROTO(struct sock *sk, int ret, int flags).
#[raw_tracepoint(tracepoint = "sock_send_length")]
pub fn worker_sends(ctx: RawTracePointContext) -> i32 {
    sent(&ctx, |socket, by_worker| {
        // SAFETY: reads of kernel memory that cannot fault; the offset is that of this kernel's BTF.
        let family = unsafe { bpf_probe_read_kernel(socket.add(SOCK_FAMILY.load() as usize).cast::<u16>()) };
        if family == Ok(UNIX) { unix(socket, by_worker) } else { tcp(socket) }
    })
}

/// A packet of an established connection: TP_PROTO(struct sock *sk, struct sk_buff *skb).
#[raw_tracepoint(tracepoint = "tcp_probe")]
pub fn worker_packet(ctx: RawTracePointContext) -> i32 {
    sent(&ctx, |socket, _| tcp(socket))
}

/// A thread has received something, or waited for it in vain: TP_PROTO(struct sock *sk, int ret, int flags).
#[raw_tracepoint(tracepoint = "sock_recv_length")]
pub fn worker_receives(_ctx: RawTracePointContext) -> i32 {
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    if pid != tid {
        return 0;
    }
    let Some(party) = PARTIES.get_ptr_mut(pid) else { return 0 };
    // SAFETY: an entry of the map, whose kind does not change.
    unsafe {
        if (*party).kind == PartyKind::Worker as u32 {
            received(party, pid);
        }
    }
    0
}

/// The current thread has sent something over the socket in the first argument.
#[inline(always)]
fn sent(ctx: &RawTracePointContext, connection: impl Fn(*const u8, bool) -> Option<Connection>) -> i32 {
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    let Some(party) = PARTIES.get_ptr(pid) else { return 0 };
    // SAFETY: an entry of the map, whose kind and executor do not change.
    let kind = unsafe { (*party).kind };
    let worker = kind == PartyKind::Worker as u32 && tid == pid;
    if !worker && (kind != PartyKind::Executor as u32 || !serves(tid)) {
        return 0;
    }
    let Some(Connection { key, socket }) = connection(ctx.arg(0), worker) else { return 0 };
    let known = CONNECTIONS.get_ptr(key);
    if worker {
        // SAFETY: an entry of the map; the helper has no preconditions.
        unsafe {
            if known.is_none_or(|end| (*end).pid != pid || (*end).socket != socket) && moves_bytes() {
                let end = End { main: bpf_get_current_task(), socket, pid, pad: 0 };
                let _ = CONNECTIONS.insert(key, end, 0);
            }
        }
        return 0;
    }
    let Some(end) = known else { return 0 };
    // SAFETY: entries of the maps; a read of kernel memory that cannot fault.
    unsafe {
        let End { main, socket: its, pid: of, .. } = end.read();
        let main = main as *const u8;
        let is_there = bpf_probe_read_kernel(main.add(TASK_TGID.load() as usize).cast::<u32>()) == Ok(of);
        if let Some(worker) = PARTIES.get_ptr_mut(of)
            && is_there
            && its == socket
            && (*worker).kind == PartyKind::Worker as u32
            && (*worker).executor == pid
        {
            bind(worker, (of, main), tid);
        }
    }
    0
}

/// A TCP connection's ends have their ports in common, and their network namespace.
#[inline(always)]
fn tcp(socket: *const u8) -> Option<Connection> {
    let (number, peer, net) =
        (SOCK_NUM.load() as usize, SOCK_DPORT.load() as usize, SOCK_NET.load() as usize);
    // SAFETY: reads of kernel memory that cannot fault; the offsets are those of this kernel's BTF.
    unsafe {
        let port = |at: usize| bpf_probe_read_kernel(socket.add(at).cast::<u16>()).ok();
        let (own, other) = (u64::from(port(number)?), u64::from(u16::from_be(port(peer)?)));
        let net = bpf_probe_read_kernel(socket.add(net).cast::<u64>()).ok()?;
        let (low, high) = if own < other { (own, other) } else { (other, own) };
        // A namespace lies at a multiple of a cache line; its upper bits are all the same.
        Some(Connection { key: net << 26 | high << 16 | low, socket: 0 })
    }
}

/// The ends of a Unix socket's connection point at each other. It is known by the executor's end. Where that is freed and its
/// place used again, the worker's end is another's: both must be right.
#[inline(always)]
fn unix(socket: *const u8, by_worker: bool) -> Option<Connection> {
    // SAFETY: a read of kernel memory that cannot fault; the offset is that of this kernel's BTF.
    let peer = unsafe { bpf_probe_read_kernel(socket.add(UNIX_PEER.load() as usize).cast::<u64>()) }.ok()?;
    let own = socket as u64;
    let (key, socket) = if by_worker { (peer, own) } else { (own, peer) };
    (peer != 0).then_some(Connection { key, socket })
}
