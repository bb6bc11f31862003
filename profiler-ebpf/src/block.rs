//! For how long requests of disks are out, and who sent them off.
//!
//! In: `block_rq_issue`, where a request goes to its device and the thread that sends it has a stack, and `block_rq_complete`,
//! where the device has answered, in whatever thread that interrupts. Out: a sample of the first thread, which weighs the time
//! between the two; where not each request is taken, times how many it stands for. A request is known by its disk and its first
//! sector, which no other that is out has. Its records have the same form on all kernels but for where `rwbs` is
//! (include/trace/events/block.h, Linux 5.10 to 6.18).
#![allow(unsafe_code)]

use crate::globals::{BLOCK_EVERY, BLOCK_RWBS};
use crate::maps::{EVENTS, NAMED, REQUESTS, Scratch};
use crate::named::{of_task, walk};
use crate::output::{Counts, room_for_events, waiting, wake_flags};
use crate::send::stack_alone;
use aya_ebpf::helpers::generated::{bpf_get_prandom_u32, bpf_ktime_get_ns};
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_get_smp_processor_id};
use aya_ebpf::macros::tracepoint;
use aya_ebpf::programs::TracePointContext;
use profiler_ebpf::{
    BlockWay, Counter, DropReason, MAX_NAMED_EVENTS, RecordHeader, RecordKind, SampleKindTag, SampleRecord,
};

/// Where the fields are that both records have: `dev`, `sector`, `nr_sector`.
const DEV: usize = 8;
const SECTOR: usize = 16;
const SECTORS: usize = 24;

/// After so long a CPU's requests are counted anew.
const STRETCH_NS: u64 = 100_000_000;
/// See [`drawn`].
const AT_ONCE: u64 = 20;

/// A request that is out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Request {
    issued_ns: u64,
    /// Key of the stack of the thread that sent it off.
    stack: u64,
    /// How many requests it stands for.
    stands_for: u64,
    pid: u32,
    tid: u32,
    name_seq: u32,
    /// A [`BlockWay`].
    way: u32,
}

/// A request goes to its device.
#[tracepoint]
pub fn block_issue(ctx: TracePointContext) -> u32 {
    let stands_for = drawn();
    if stands_for == 0 {
        return 0;
    }
    let Some([sector, dev]) = key(&ctx) else { return 0 };
    let way = u64::from(way(&ctx) as u16);
    walk(&ctx, SampleKindTag::BlockIo, of_task, |scratch| {
        // SAFETY: the walk has ended.
        unsafe { issued(scratch, sector, dev | way << 32, stands_for) };
    });
    0
}

/// A device has answered a request.
#[tracepoint]
pub fn block_complete(ctx: TracePointContext) -> u32 {
    let Some(key) = key(&ctx) else { return 0 };
    let Some(request) = REQUESTS.get_ptr(key) else { return 0 };
    // SAFETY: an entry of the map, whose words do not change; the helpers have no preconditions.
    let (request, now, cpu) = unsafe { (request.read(), bpf_ktime_get_ns(), bpf_get_smp_processor_id()) };
    let _ = REQUESTS.remove(key);
    let Some(counts) = Counts::of_this_cpu() else { return 0 };
    let record = SampleRecord {
        header: RecordHeader {
            kind: RecordKind::Sample as u16,
            flags: SampleRecord::FLAG_KERNEL_MODE,
            len: size_of::<SampleRecord>() as u32,
        },
        time_ns: now,
        weight: now.saturating_sub(request.issued_ns).wrapping_mul(request.stands_for),
        stack: request.stack,
        pid: request.pid,
        tid: request.tid,
        cpu,
        name_seq: request.name_seq,
        sample_kind: SampleKindTag::BlockIo as u16,
        slot: request.way as u16,
        detail: key[1] as u32,
    };
    let waiting = waiting();
    // SAFETY: the record's own bytes.
    let bytes =
        unsafe { core::slice::from_raw_parts((&raw const record).cast::<u8>(), size_of::<SampleRecord>()) };
    if room_for_events(waiting) && EVENTS.output::<[u8]>(bytes, wake_flags(waiting)).is_ok() {
        counts.add(Counter::Samples, 1);
    } else {
        counts.lost(DropReason::RingFullSample);
    }
    0
}

/// One more request on this CPU: how many the sample stands for that is to be taken of it; 0: none is. Each is drawn by itself, and its
/// chance is known before: the first of a burst is answered soonest, so that it must not stand for the others. In a stretch of
/// [`STRETCH_NS`] the chance falls with their number, so that some [`AT_ONCE`] ln(1 + n / [`AT_ONCE`]) of n are taken.
#[inline(always)]
fn drawn() -> u64 {
    let Some(counted) = NAMED.get_ptr_mut(MAX_NAMED_EVENTS) else { return 0 };
    // SAFETY: this CPU's entry, and no program of a tracepoint comes in the middle of another; the helpers have no preconditions.
    unsafe {
        let now = bpf_ktime_get_ns();
        if now - (*counted).since_ns >= STRETCH_NS {
            ((*counted).events, (*counted).since_ns) = (0, now);
        }
        let one_of = BLOCK_EVERY.load() * (1 + (*counted).events / AT_ONCE);
        (*counted).events += 1;
        if u64::from(bpf_get_prandom_u32()) % one_of.max(1) == 0 { one_of } else { 0 }
    }
}

/// By what a request is known; None: it moves nothing.
#[inline(always)]
fn key(ctx: &TracePointContext) -> Option<[u64; 2]> {
    // SAFETY: reads of the record, which cannot fault.
    unsafe {
        let sectors = ctx.read_at::<u32>(SECTORS).unwrap_or(0);
        let (sector, dev) = (ctx.read_at::<u64>(SECTOR).ok()?, ctx.read_at::<u32>(DEV).ok()?);
        (sectors != 0).then_some([sector, u64::from(dev)])
    }
}

/// Which way a request goes: the first letter of `rwbs`, or the one behind the `F` of a flush before it.
#[inline(always)]
fn way(ctx: &TracePointContext) -> BlockWay {
    // SAFETY: a read of the record, which cannot fault.
    let [first, second] = unsafe { ctx.read_at::<[u8; 2]>(BLOCK_RWBS.load() as usize) }.unwrap_or([0; 2]);
    match if first == b'F' { second } else { first } {
        b'R' => BlockWay::Read,
        b'W' => BlockWay::Write,
        b'D' => BlockWay::Discard,
        _ => BlockWay::Other,
    }
}

/// Remembers a request, by its sector and its disk, above which is its way; and sends its stack. A function of its own, for the
/// 512 bytes of a program's stack.
#[inline(never)]
unsafe fn issued(scratch: *mut Scratch, sector: u64, dev_way: u64, stands_for: u64) {
    let ids = bpf_get_current_pid_tgid();
    // SAFETY: as for the caller.
    unsafe {
        let stack = stack_alone(scratch);
        let walk = &(*scratch).walk;
        let request = Request {
            issued_ns: walk.taken_ns,
            stack,
            stands_for,
            pid: (ids >> 32) as u32,
            tid: ids as u32,
            name_seq: walk.name_seq as u32,
            way: (dev_way >> 32) as u32,
        };
        let _ = REQUESTS.insert([sector, dev_way & 0xffff_ffff], request, 0);
    }
}
