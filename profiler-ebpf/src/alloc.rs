//! Where a JVM's threads allocate, and what.
//!
//! A uprobe on the two functions to which HotSpot reports what it took from the heap (src/hotspot/share/gc/shared/
//! allocTracer.cpp, JDK 11 to 25): `AllocTracer::send_allocation_in_new_tlab(Klass*, HeapWord*, size_t tlab_size, size_t
//! alloc_size, JavaThread*)` and `AllocTracer::send_allocation_outside_tlab(Klass*, HeapWord*, size_t alloc_size,
//! JavaThread*)`. The third argument of both is what the heap gave; which ones have the object's own bytes and the thread the
//! probe's cookie tells (a [`profiler_ebpf::AllocPlace`]; Linux 5.15, and `bpf_loop` is newer). Out: samples of what an allocation
//! stands for ([`profiler_ebpf::Allocation`]), with the object's bytes, and the class as the innermost frame.
//!
//! Since Linux 6.0 a uprobe's program may be preempted, but not moved to another CPU. So it walks in a scratch of its own,
//! and who finds that in use gives way.
#![allow(unsafe_code)]

use crate::globals::ALLOC_EVERY;
use crate::maps::{ALLOCATING, OF_UPROBES, SCRATCH, Scratch};
use crate::output::Counts;
use crate::regs;
use crate::sample::fresh;
use crate::send::send;
use crate::threads;
use crate::walk::{begin, in_a_loop, prepare, push, runtime};
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::helpers::generated::{bpf_get_attach_cookie, bpf_get_prandom_u32, bpf_ktime_get_ns};
use aya_ebpf::macros::uprobe;
use aya_ebpf::programs::ProbeContext;
use core::arch::asm;
use core::ptr::addr_of_mut;
use profiler_ebpf::{
    AllocPlace, Allocation, Counter, DropReason, JavaFrameTag, SampleKindTag, Told, allocation_weight,
    object_bytes,
};

/// A JVM's thread allocated.
#[uprobe]
pub fn allocated(ctx: ProbeContext) -> u32 {
    let Some(class) = ctx.arg::<u64>(0) else { return 0 };
    // SAFETY: the context is this program's; the helper has no preconditions.
    let (stands, random) = unsafe { (stands_for(&ctx), bpf_get_prandom_u32()) };
    let weight = allocation_weight(stands, ALLOC_EVERY.load(), random);
    let (Some(counts), true) = (Counts::of_this_cpu(), weight != 0) else { return 0 };
    counts.add(Counter::OtherRuns, 1);
    let Some(scratch) = SCRATCH.get_ptr_mut(OF_UPROBES) else {
        counts.lost(DropReason::NoScratch);
        return 0;
    };
    // SAFETY: this CPU's scratch, which is ours while we are its only user; the verifier checks each access.
    unsafe {
        let users = addr_of_mut!((*scratch).users);
        if add(users, 1) == 1 {
            sample(&ctx, scratch, class, weight);
        } else {
            counts.lost(DropReason::ProbesMet);
        }
        add(users, u64::MAX);
    }
    0
}

/// Bytes that the allocation stands for.
#[inline(never)]
unsafe fn stands_for(ctx: &ProbeContext) -> u64 {
    let Some(given) = ctx.arg::<u64>(2) else { return 0 };
    let (object, thread, in_new_tlab) = match place(ctx) {
        place if place == AllocPlace::InNewTlab as u64 => {
            (ctx.arg(3).map_or(0, loaded), ctx.arg(4).map_or(0, loaded), true)
        }
        place if place == AllocPlace::OutsideTlab as u64 => {
            (ctx.arg(2).map_or(0, loaded), ctx.arg(3).map_or(0, loaded), false)
        }
        _ => return given,
    };
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    let Some((all, buffer)) = runtime::allocated(pid, thread) else { return given };
    let allocation = Allocation { in_new_tlab, given, object, all, buffer };
    match ALLOCATING.get_ptr_mut(tid) {
        // SAFETY: an entry of the map, the current thread's.
        Some(told) => unsafe {
            let before = if (*told).thread == thread { (*told).bytes } else { Told::UNKNOWN };
            let (stands, bytes) = allocation.stands_for(before);
            ((*told).thread, (*told).bytes) = (thread, bytes);
            stands
        },
        None => {
            let (stands, bytes) = allocation.stands_for(Told::UNKNOWN);
            // Where there is no room, the next one is a thread that is not known either.
            let _ = ALLOCATING.insert(tid, Told { thread, bytes }, 0);
            stands
        }
    }
}

/// On which function the probe is.
#[inline(always)]
fn place(ctx: &ProbeContext) -> u64 {
    // SAFETY: the helper takes the context of the program that calls it.
    unsafe { bpf_get_attach_cookie(ctx.regs.cast()) }
}

/// Walks, and tells what it met.
#[inline(always)]
unsafe fn sample(ctx: &ProbeContext, scratch: *mut Scratch, class: u64, weight: u64) {
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    // SAFETY: as for the caller.
    unsafe {
        fresh(scratch, pid, SampleKindTag::Alloc, weight);
        // Here, where the least else is kept over a call: the walk takes what there is of the program's stack.
        (*scratch).walk.kind |= u64::from(object(ctx)) << 32;
        let now = bpf_ktime_get_ns();
        let walk = &mut (*scratch).walk;
        (walk.kernel_frames, walk.taken_ns) = (0, now);
        match regs::from_uprobe(ctx.regs.cast(), addr_of_mut!((*scratch).fetched).cast()) {
            Ok(registers) => {
                begin(scratch, &registers);
                prepare(scratch, (pid, tid), now);
                push(scratch, class, JavaFrameTag::Class.word());
                in_a_loop::<OF_UPROBES>(scratch);
            }
            Err(end) => {
                walk.end = end as u64;
                walk.name_seq = u64::from(threads::number_of(tid));
            }
        }
        tell(scratch);
    }
}

/// Bytes of the object itself; 0: the probe does not say where they are.
#[inline(always)]
fn object(ctx: &ProbeContext) -> u32 {
    let place = place(ctx);
    let bytes = if place == AllocPlace::InNewTlab as u64 {
        ctx.arg(3).map_or(0, loaded)
    } else if place == AllocPlace::OutsideTlab as u64 {
        ctx.arg(2).map_or(0, loaded)
    } else {
        0
    };
    object_bytes(bytes)
}

/// A word of the context, loaded where it is asked for: of loads in two branches the compiler would make one behind them, from
/// a place that it has worked out, and the verifier wants a constant one.
#[inline(always)]
fn loaded(mut word: u64) -> u64 {
    // SAFETY: changes nothing.
    unsafe { asm!("{0} = {0}", inout(reg) word, options(nomem, nostack, preserves_flags)) };
    word
}

/// A function of its own, as that of the samples by events is.
#[inline(never)]
unsafe fn tell(scratch: *mut Scratch) {
    // SAFETY: as for the caller.
    unsafe { send(scratch, false) };
}

/// Adds to a word in one instruction, which a program that preempts this one does not come between; the word afterwards.
#[inline(always)]
unsafe fn add(word: *mut u64, n: u64) -> u64 {
    // SAFETY: the word may be written. `BPF_ATOMIC | BPF_ADD`, as for the number of names.
    unsafe {
        asm!("lock *(u64 *)({0} + 0) += {1}", in(reg) word, in(reg) n);
        word.read_volatile()
    }
}
