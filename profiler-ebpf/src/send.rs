//! What a walk found goes up: its stack, if it was not yet sent in this epoch, and its sample; or the stack alone, for what tells
//! its sample later. A stack counts as sent only when the ring took it.
#![allow(unsafe_code)]

use crate::maps::{BODY_WORDS, EVENTS, Scratch};
use crate::output::{Counts, waiting, wake_flags};
use crate::seen::Room;
use crate::shares::{self, may_put};
use crate::walk::{at_most, mix};
use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_get_smp_processor_id};
use core::ptr::addr_of_mut;
use profiler_ebpf::{
    Counter, DropReason, EPOCH_NS, Loss, RecordHeader, RecordKind, SampleRecord, StackRecord,
};

/// Sends the stack, if it is new, and the sample.
///
/// # Safety
/// `scratch` is this CPU's scratch, and the walk in it has ended.
#[inline(always)]
pub unsafe fn send(scratch: *mut Scratch, in_kernel: bool) {
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
            detail: (walk.kind >> 32) as u32,
        });
        let epoch = now / EPOCH_NS;
        let waiting = waiting();
        let flags = wake_flags(waiting);
        if let Some(room) = Room::unless_sent(hash, epoch) {
            record(scratch, hash, (pid, tid), StackRecord::FLAG_SAMPLE_FOLLOWS);
            // Both at once: each time that something is put into the ring costs as much as a look-up.
            let bytes = size_of::<StackRecord>()
                + size_of::<SampleRecord>()
                + at_most::<{ BODY_WORDS as u64 }>(words) * 8;
            let may = may_put(Loss::Stack, bytes as u64, waiting);
            if may && output(addr_of_mut!((*scratch).record).cast(), bytes, flags) {
                counts.add(Counter::Stacks, 1);
                counts.add(Counter::Samples, 1);
                if room.displaces {
                    counts.lost(DropReason::SeenMapFull);
                }
                room.take();
                return;
            }
            if may {
                shares::lost(Loss::Stack as u64);
            }
            counts.lost(DropReason::RingFullStack);
        }
        let may = may_put(Loss::Sample, size_of::<SampleRecord>() as u64, waiting);
        if may && output(sample.cast(), size_of::<SampleRecord>(), flags) {
            counts.add(Counter::Samples, 1);
        } else {
            if may {
                shares::lost(Loss::Sample as u64);
            }
            counts.lost(DropReason::RingFullSample);
        }
    }
}

/// Sends the stack of a walk that has ended, if it is new, for what tells its sample later; the stack's key. Wakes nobody: it may
/// be sent from anywhere in the kernel, and the reader comes some times a second.
///
/// # Safety
/// `scratch` is this CPU's scratch, and the walk in it has ended.
#[inline(always)]
pub unsafe fn stack_alone(scratch: *mut Scratch) -> u64 {
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    let Some(counts) = Counts::of_this_cpu() else { return 0 };
    // SAFETY: by contract.
    unsafe {
        let walk = &(*scratch).walk;
        let (kernel_frames, now, words) = (walk.kernel_frames, walk.taken_ns, walk.words);
        // As for samples, so that a stack of both is one.
        let hash = mix(mix(walk.hash, walk.end << 16 | kernel_frames), walk.frames);
        counts.add(Counter::UserFrames, walk.frames);
        counts.add(Counter::KernelFrames, kernel_frames);
        counts.add(Counter::StackReads, walk.reads);
        // For the verifier: the walk adds no more.
        if words > BODY_WORDS as u64 {
            return hash;
        }
        let Some(room) = Room::unless_sent(hash, now / EPOCH_NS) else { return hash };
        record(scratch, hash, (pid, tid), 0);
        let bytes = size_of::<StackRecord>() + at_most::<{ BODY_WORDS as u64 }>(words) * 8;
        let may = may_put(Loss::Stack, bytes as u64, waiting());
        if may && output(addr_of_mut!((*scratch).record).cast(), bytes, u64::from(BPF_RB_NO_WAKEUP)) {
            counts.add(Counter::Stacks, 1);
            if room.displaces {
                counts.lost(DropReason::SeenMapFull);
            }
            room.take();
            return hash;
        }
        if may {
            shares::lost(Loss::Stack as u64);
        }
        counts.lost(DropReason::RingFullStack);
        hash
    }
}

/// Fills the head of the stack's record.
///
/// # Safety
/// As for [`send`].
#[inline(always)]
unsafe fn record(scratch: *mut Scratch, hash: u64, (pid, tid): (u32, u32), flags: u16) {
    // SAFETY: by contract.
    unsafe {
        let walk = &(*scratch).walk;
        (*scratch).record = StackRecord {
            header: RecordHeader {
                kind: RecordKind::Stack as u16,
                flags,
                len: size_of::<StackRecord>() as u32 + walk.words as u32 * 8,
            },
            hash,
            time_ns: walk.taken_ns,
            pid,
            tid,
            kernel_frames: walk.kernel_frames as u16,
            user_frames: walk.frames as u16,
            end: walk.end as u8,
            pad: [0; 3],
            generation: walk.generation,
        };
    }
}

/// Sends bytes of the scratch; whether the ring took them.
#[inline(always)]
unsafe fn output(from: *const u8, bytes: usize, flags: u64) -> bool {
    // SAFETY: by contract; the verifier checks the length.
    EVENTS.output::<[u8]>(unsafe { core::slice::from_raw_parts(from, bytes) }, flags).is_ok()
}
