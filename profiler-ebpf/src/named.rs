//! Events that the user names: tracepoints, and perf's software and hardware events, with the stack of who met them.
//!
//! A program for each slot and sort; the daemon knows which event is in it. A tracepoint's program counts on its CPU and takes
//! a sample each so many, at most one each [`NAMED_GAP_NS`]: a sample weighs what was counted since the one before, so that the
//! sums are what happened, but for what was counted since the last sample. perf counts its other events itself, and a sample
//! weighs its period. What an interrupt meets is the interrupted thread's, as CPU time is; the kernel's frames tell.
//!
//! A tracepoint is met anywhere: also where another of our programs walks (its reads fault), and a hardware event comes in the
//! middle of any. So these walk in a scratch of their own, and who finds that in use gives way. Programs of tracepoints and of
//! perf's events do not come in each other's middle (`bpf_prog_active`, kernel/trace/bpf_trace.c and kernel/events/core.c,
//! Linux 6.18): a tick that comes while one of these walks is lost to the sampler.
#![allow(unsafe_code)]

use crate::globals::NAMED_EVERY;
use crate::maps::{NAMED, OF_NAMED, SCRATCH, Scratch};
use crate::output::Counts;
use crate::regs;
use crate::sample::{fresh, kernel_stack};
use crate::send::send;
use crate::threads;
use crate::walk::{begin, in_a_loop, prepare};
use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::macros::{perf_event, tracepoint};
use aya_ebpf::programs::{PerfEventContext, TracePointContext};
use core::ptr::addr_of_mut;
use profiler_ebpf::{
    Counter, DropReason, MAX_NAMED_EVENTS, NAMED_GAP_NS, SampleKindTag, StackEnd, arch::Taken,
};

/// What is kept of a slot on a CPU.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Counted {
    /// Events since then.
    pub events: u64,
    /// When the last sample was taken, or the count began.
    pub since_ns: u64,
}

macro_rules! slot {
    ($slot:literal, $tracepoint:ident, $event:ident) => {
        #[tracepoint]
        pub fn $tracepoint(ctx: TracePointContext) -> u32 {
            let weight = counted($slot, every($slot));
            if weight != 0 {
                met(&ctx, $slot, weight, of_task);
            }
            0
        }

        #[perf_event]
        pub fn $event(ctx: PerfEventContext) -> u32 {
            met(&ctx, $slot, every($slot), |scratch| {
                if regs::in_kernel(ctx.ctx) { of_task(scratch) } else { of_event(&ctx, scratch) }
            });
            0
        }
    };
}

slot!(0, tracepoint_0, event_0);
slot!(1, tracepoint_1, event_1);
slot!(2, tracepoint_2, event_2);
slot!(3, tracepoint_3, event_3);

/// A sample each so many events.
#[inline(always)]
fn every(slot: u32) -> u64 {
    NAMED_EVERY.load()[(slot % MAX_NAMED_EVENTS) as usize]
}

/// The registers with which the current thread came into the kernel.
#[inline(always)]
pub fn of_task(scratch: *mut Scratch) -> Result<Taken, StackEnd> {
    // SAFETY: this CPU's scratch, of which nothing was fetched yet.
    unsafe { regs::from_task(addr_of_mut!((*scratch).fetched).cast()) }
}

/// Those of an event that hit user mode.
#[inline(always)]
fn of_event(ctx: &PerfEventContext, scratch: *mut Scratch) -> Result<Taken, StackEnd> {
    // SAFETY: as above.
    unsafe { regs::from_event(ctx.ctx, addr_of_mut!((*scratch).fetched).cast()) }
}

/// One more event on this CPU, of which there is a sample each so many: what the sample weighs that is to be taken; 0: none is.
#[inline(always)]
fn counted(slot: u32, every: u64) -> u64 {
    let Some(counted) = NAMED.get_ptr_mut(slot) else { return 0 };
    // SAFETY: this CPU's entry, and no program of a tracepoint comes in the middle of another.
    unsafe {
        (*counted).events += 1;
        let now = bpf_ktime_get_ns();
        let events = (*counted).events;
        if events < every || now - (*counted).since_ns < NAMED_GAP_NS {
            return 0;
        }
        ((*counted).events, (*counted).since_ns) = (0, now);
        events
    }
}

/// Walks the current thread's stack, and tells it.
#[inline(always)]
fn met<C: EbpfContext>(
    ctx: &C,
    slot: u32,
    weight: u64,
    registers: impl FnOnce(*mut Scratch) -> Result<Taken, StackEnd>,
) {
    let kind = u64::from(slot) << 16;
    // SAFETY: the walk has ended.
    walk(ctx, SampleKindTag::Event, registers, |scratch| unsafe {
        (*scratch).walk.kind |= kind;
        (*scratch).walk.weight = weight;
        tell(scratch);
    });
}

/// Walks the current thread's stack in the scratch of tracepoints, and hands it on.
#[inline(always)]
pub fn walk<C: EbpfContext>(
    ctx: &C,
    kind: SampleKindTag,
    registers: impl FnOnce(*mut Scratch) -> Result<Taken, StackEnd>,
    then: impl FnOnce(*mut Scratch),
) {
    let Some(counts) = Counts::of_this_cpu() else { return };
    counts.add(Counter::OtherRuns, 1);
    let Some(scratch) = SCRATCH.get_ptr_mut(OF_NAMED) else {
        counts.lost(DropReason::NoScratch);
        return;
    };
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    // SAFETY: this CPU's scratch, which is ours while we are its only user; the verifier checks each access.
    unsafe {
        if (*scratch).users != 0 {
            counts.lost(DropReason::ProbesMet);
            return;
        }
        (*scratch).users = 1;
        let now = bpf_ktime_get_ns();
        fresh(scratch, pid, kind, 0);
        kernel_stack(ctx, scratch);
        let walk = &mut (*scratch).walk;
        (walk.kernel_frames, walk.taken_ns) = (walk.words, now);
        match registers(scratch) {
            Ok(registers) => {
                begin(scratch, &registers);
                prepare(scratch, (pid, tid), now);
                in_a_loop::<OF_NAMED>(scratch);
            }
            Err(end) => {
                walk.end = end as u64;
                walk.name_seq = u64::from(threads::number_of(tid));
            }
        }
        then(scratch);
        (*scratch).users = 0;
    }
}

/// A function of its own, as that of the samples by time is.
#[inline(never)]
unsafe fn tell(scratch: *mut Scratch) {
    // SAFETY: as for the caller.
    unsafe { send(scratch, true) };
}
