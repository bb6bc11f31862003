//! The sampling programs, run by perf events on each CPU: one door for all kinds of samples.
//!
//! Takes the kernel stack and the user stack, hashes both, sends the stack if it was not yet sent in
//! this epoch, then the sample. A stack counts as sent only when the ring took it.
#![allow(unsafe_code)]

use crate::globals::{FAULTS_EVERY, MAJOR_FAULTS_EVERY, PERIOD_NS, SWITCHES_EVERY};
use crate::maps::{BODY_WORDS, EVENTS, NEXT, OF_EVENTS, SCRATCH, Scratch};
use crate::output::{Counts, waiting, wake_flags};
use crate::regs;
use crate::seen::Room;
use crate::shares::{self, may_put};
use crate::threads;
use crate::walk::{after_some, at_most, begin, by_frame_pointers, in_a_loop, mix, prepare, some};
use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::bpf_perf_event_data;
use aya_ebpf::helpers::generated::{bpf_get_stack, bpf_ktime_get_ns};
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_get_smp_processor_id};
use aya_ebpf::macros::perf_event;
use aya_ebpf::programs::PerfEventContext;
use core::ptr::addr_of_mut;
use profiler_ebpf::{
    Counter, DropReason, EPOCH_NS, Loss, MAX_KERNEL_FRAMES, RecordHeader, RecordKind, SampleKindTag,
    SampleRecord, StackEnd, StackRecord,
};

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
        counts.lost(ctx, DropReason::NoScratch);
        return;
    };
    // SAFETY: this CPU's scratch, which nobody else uses meanwhile; the verifier checks each access.
    unsafe {
        let now = bpf_ktime_get_ns();
        let in_kernel = regs::in_kernel(ctx.ctx);
        fresh(scratch, pid, kind, weight);
        let walk = &mut (*scratch).walk;
        let registers = if in_kernel {
            kernel_stack(ctx, scratch);
            // Nothing was fetched yet.
            regs::from_task(addr_of_mut!((*scratch).fetched).cast())
        } else {
            regs::from_event(ctx.ctx)
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
    unsafe { send(&PerfEventContext::new(ctx), scratch, regs::in_kernel(ctx)) };
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

/// Sends the stack, if it is new, and the sample.
///
/// # Safety
/// `scratch` is this CPU's scratch, and the walk in it has ended.
#[inline(always)]
pub unsafe fn send<C: EbpfContext>(ctx: &C, scratch: *mut Scratch, in_kernel: bool) {
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    let Some(counts) = Counts::of_this_cpu() else { return };
    // SAFETY: as for the caller.
    unsafe {
        let walk = &(*scratch).walk;
        let (kernel_frames, now) = (walk.kernel_frames, walk.taken_ns);
        // How it ended and where the kernel half stops belong to the key: the record tells them.
        let hash = mix(mix(walk.hash, walk.end << 16 | kernel_frames), walk.frames);
        counts.add(Counter::UserFrames, walk.frames);
        counts.add(Counter::KernelFrames, kernel_frames);
        counts.add(Counter::StackReads, walk.reads);

        let name_seq = walk.name_seq as u32;
        let words = walk.words;
        // For the verifier: the walk adds no more.
        if words > BODY_WORDS as u64 {
            return;
        }
        let sample = addr_of_mut!((*scratch).body)
            .cast::<u64>()
            .add(at_most::<{ BODY_WORDS as u64 }>(words))
            .cast::<SampleRecord>();
        sample.write(SampleRecord {
            header: RecordHeader {
                kind: RecordKind::Sample as u16,
                flags: if in_kernel { SampleRecord::FLAG_KERNEL_MODE } else { 0 },
                len: size_of::<SampleRecord>() as u32,
            },
            time_ns: now,
            weight: walk.weight,
            stack: hash,
            pid,
            tid,
            cpu: bpf_get_smp_processor_id(),
            name_seq,
            sample_kind: walk.kind as u16,
            slot: (walk.kind >> 16) as u16,
            pad: [0; 2],
        });
        let epoch = now / EPOCH_NS;
        let waiting = waiting();
        let flags = wake_flags(waiting);
        if let Some(room) = Room::unless_sent(hash, epoch) {
            (*scratch).record = StackRecord {
                header: RecordHeader {
                    kind: RecordKind::Stack as u16,
                    flags: StackRecord::FLAG_SAMPLE_FOLLOWS,
                    len: size_of::<StackRecord>() as u32 + words as u32 * 8,
                },
                hash,
                time_ns: now,
                pid,
                tid,
                kernel_frames: kernel_frames as u16,
                user_frames: walk.frames as u16,
                end: walk.end as u8,
                pad: [0; 3],
                generation: walk.generation,
            };
            // Both at once: each time that something is put into the ring costs as much as a look-up.
            let bytes = size_of::<StackRecord>()
                + size_of::<SampleRecord>()
                + at_most::<{ BODY_WORDS as u64 }>(words) * 8;
            let may = may_put(Loss::Stack, bytes as u64, waiting);
            if may && output(addr_of_mut!((*scratch).record).cast(), bytes, flags) {
                counts.add(Counter::Stacks, 1);
                counts.add(Counter::Samples, 1);
                if room.displaces {
                    counts.lost(ctx, DropReason::SeenMapFull);
                }
                room.take();
                return;
            }
            if may {
                shares::lost(Loss::Stack as u64);
            }
            counts.lost(ctx, DropReason::RingFullStack);
        }
        let may = may_put(Loss::Sample, size_of::<SampleRecord>() as u64, waiting);
        if may && output(sample.cast(), size_of::<SampleRecord>(), flags) {
            counts.add(Counter::Samples, 1);
        } else {
            if may {
                shares::lost(Loss::Sample as u64);
            }
            counts.lost(ctx, DropReason::RingFullSample);
        }
    }
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
                counts.lost(ctx, DropReason::KernelStackFailed);
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

/// Sends bytes of the scratch; whether the ring took them.
#[inline(always)]
unsafe fn output(from: *const u8, bytes: usize, flags: u64) -> bool {
    // SAFETY: by contract; the verifier checks the length.
    EVENTS.output::<[u8]>(unsafe { core::slice::from_raw_parts(from, bytes) }, flags).is_ok()
}
