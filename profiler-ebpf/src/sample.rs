//! The sampling programs, run by perf events on each CPU: one door for all kinds of samples.
//!
//! Takes the kernel stack and the user stack and hashes both; `send` does the rest.
#![allow(unsafe_code)]

use crate::globals::{FAULTS_EVERY, MAJOR_FAULTS_EVERY, PERIOD_NS, SWITCHES_EVERY};
use crate::maps::{NEXT, OF_EVENTS, SCRATCH, Scratch};
use crate::output::Counts;
use crate::regs;
use crate::send::send;
use crate::threads;
use crate::walk::{after_some, begin, by_frame_pointers, in_a_loop, mix, prepare, some};
use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::bpf_perf_event_data;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::helpers::generated::{bpf_get_stack, bpf_ktime_get_ns};
use aya_ebpf::macros::perf_event;
use aya_ebpf::programs::PerfEventContext;
use core::ptr::addr_of_mut;
use profiler_ebpf::{Counter, DropReason, MAX_KERNEL_FRAMES, SampleKindTag, StackEnd};

/// The programs of a kind of samples: one for each way to walk. All go through one door, which takes the kind's number and
/// what a sample weighs.
macro_rules! kind {
    ($kind:expr, $weight:expr, $loop:ident, $jumps:ident, $pointers:ident) => {
        /// For kernels with `bpf_loop` (5.17): 512 user frames.
        #[perf_event]
        pub fn $loop(ctx: PerfEventContext) -> u32 {
            run::<LOOP>(&ctx, $kind, $weight);
            0
        }

        /// For kernels without: begins a walk, on which [`sample_more`] goes.
        #[perf_event]
        pub fn $jumps(ctx: PerfEventContext) -> u32 {
            run::<JUMPS>(&ctx, $kind, $weight);
            0
        }

        /// Where that is refused: 127 frames, by frame pointers only.
        #[perf_event]
        pub fn $pointers(ctx: PerfEventContext) -> u32 {
            run::<POINTERS>(&ctx, $kind, $weight);
            0
        }
    };
}

kind!(SampleKindTag::Cpu, PERIOD_NS.load(), sample, sample_first, sample_bounded);
kind!(SampleKindTag::PageFaults, FAULTS_EVERY.load(), faults, faults_first, faults_bounded);
kind!(
    SampleKindTag::MajorFaults,
    MAJOR_FAULTS_EVERY.load(),
    major_faults,
    major_faults_first,
    major_faults_bounded
);
// Of the thread that leaves, with the run queue locked: as in `off_cpu`, nothing comes in the middle.
kind!(SampleKindTag::Switches, SWITCHES_EVERY.load(), switches, switches_first, switches_bounded);

/// Some steps more, and what comes after the last: it calls itself again. The kernel ends that after 33 calls.
#[perf_event]
pub fn sample_more(ctx: PerfEventContext) -> u32 {
    let Some(scratch) = SCRATCH.get_ptr_mut(OF_EVENTS) else { return 0 };
    // SAFETY: this CPU's scratch, as `run` left it: nobody else uses it before the last call is over.
    unsafe {
        if some(scratch) {
            let _ = NEXT.tail_call(&ctx, 0);
        }
        after_some(scratch);
        tell(ctx.ctx, scratch);
    }
    0
}

/// How to walk on: by `bpf_loop`, by tail calls, by frame pointers.
const LOOP: u32 = 0;
const JUMPS: u32 = 1;
const POINTERS: u32 = 2;

#[inline(always)]
fn run<const HOW: u32>(ctx: &PerfEventContext, kind: SampleKindTag, weight: u64) {
    let Some(counts) = Counts::of_this_cpu() else { return };
    counts.add(if kind as u16 == SampleKindTag::Cpu as u16 { Counter::Ticks } else { Counter::OtherRuns }, 1);
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    if pid == 0 {
        counts.add(Counter::Idle, 1);
        return;
    }
    let Some(scratch) = SCRATCH.get_ptr_mut(OF_EVENTS) else {
        counts.lost(DropReason::NoScratch);
        return;
    };
    // SAFETY: this CPU's scratch, which nobody else uses meanwhile; the verifier checks each access.
    unsafe {
        let now = bpf_ktime_get_ns();
        let in_kernel = regs::in_kernel(ctx.ctx);
        fresh(scratch, pid, kind, weight);
        let walk = &mut (*scratch).walk;
        // Nothing was fetched yet.
        let copy = addr_of_mut!((*scratch).fetched).cast();
        let registers = if in_kernel {
            kernel_stack(ctx, scratch);
            regs::from_task(copy)
        } else {
            regs::from_event(ctx.ctx, copy)
        };
        (walk.kernel_frames, walk.taken_ns) = (walk.words, now);
        match registers {
            Ok(registers) => {
                begin(scratch, &registers);
                if HOW == POINTERS {
                    by_frame_pointers(scratch, tid);
                } else {
                    prepare(scratch, (pid, tid), now);
                }
                if HOW == LOOP {
                    in_a_loop::<OF_EVENTS>(scratch);
                }
                if HOW == JUMPS {
                    let _ = NEXT.tail_call(ctx, 0);
                    after_some(scratch);
                }
            }
            Err(end) => {
                walk.end = end as u64;
                if walk.end != StackEnd::KernelThread as u64 {
                    walk.name_seq = u64::from(threads::number_of(tid));
                }
            }
        }
        tell(ctx.ctx, scratch);
    }
}

/// Sends the stack, if it is new, and the sample. A function of its own: what it needs of the program's 512 bytes of
/// stack is not there for the walk, which is called before it (Linux 6.13 is the first to count otherwise).
#[inline(never)]
unsafe fn tell(ctx: *mut bpf_perf_event_data, scratch: *mut Scratch) {
    // SAFETY: as for the caller.
    unsafe { send(scratch, regs::in_kernel(ctx)) };
}

/// A stack of nothing yet.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn fresh(scratch: *mut Scratch, pid: u32, kind: SampleKindTag, weight: u64) {
    // SAFETY: by contract.
    let walk = unsafe { &mut (*scratch).walk };
    walk.hash = mix(0, u64::from(pid));
    walk.words = 0;
    walk.frames = 0;
    walk.reads = 0;
    walk.generation = 0;
    walk.name_seq = 0;
    walk.kind = kind as u64;
    walk.weight = weight;
}

/// Puts the kernel stack at the start of the record's body and mixes it into the hash.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn kernel_stack<C: EbpfContext>(ctx: &C, scratch: *mut Scratch) {
    // SAFETY: as for the caller.
    unsafe {
        let body = addr_of_mut!((*scratch).body).cast::<u64>();
        let bytes = bpf_get_stack(ctx.as_ptr(), body.cast(), (MAX_KERNEL_FRAMES * 8) as u32, 0);
        if bytes < 0 {
            if let Some(counts) = Counts::of_this_cpu() {
                counts.lost(DropReason::KernelStackFailed);
            }
            return;
        }
        let frames = (bytes as u64) / 8;
        let walk = &mut (*scratch).walk;
        let mut hash = walk.hash;
        for i in 0..MAX_KERNEL_FRAMES as u64 {
            if i >= frames {
                break;
            }
            hash = mix(hash, body.add(i as usize).read());
        }
        walk.hash = hash;
        walk.words = frames;
    }
}
