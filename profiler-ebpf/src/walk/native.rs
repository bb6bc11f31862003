//! Steps through native code, by frame pointers.
//!
//! In: the walk's registers. Out: frames, until the thread's root, code that keeps no frame pointer, or a return
//! address in a JVM's code. The state is in registers meanwhile.
#![allow(unsafe_code)]

use super::stack::{LAST_PAIR, PAIR, at_most, is_user_address, offset_of, pair_at};
use super::{LAST_FRAME, MAX_FRAME_BYTES, RETURN_ADDRESS, link, mix_frame};
use crate::maps::Scratch;
use core::ptr::addr_of_mut;
use profiler_ebpf::StackEnd;
use profiler_ebpf::arch::{LINK_REGISTER, code_address};

/// No `StackEnd`: the walk has not ended.
const GOES_ON: u64 = u64::MAX;

/// At most so many steps, each from a frame to its caller's; false at the end.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn steps<const STEPS: usize>(scratch: *mut Scratch, max_frames: u64) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let walk = &mut (*scratch).walk;
        let (mut pc, mut sp, mut fp, mut leaf) = (walk.pc, walk.sp, walk.fp, walk.leaf);
        let (mut hash, mut words, mut frames) = (walk.hash, walk.words, walk.frames);
        let (low, high) = (walk.low, walk.high);
        let mut end = GOES_ON;
        for _ in 0..STEPS {
            if frames >= max_frames || words > LAST_FRAME {
                end = StackEnd::DepthLimit as u64;
                break;
            }
            let second = if leaf != 0 { 0 } else { RETURN_ADDRESS };
            let frame = addr_of_mut!((*scratch).body).cast::<u64>().add(at_most::<LAST_FRAME>(words));
            frame.write(pc);
            frame.add(1).write(second);
            hash = mix_frame(hash, pc, second);
            words += 2;
            frames += 1;
            if LINK_REGISTER && leaf != 0 {
                let return_address = link::return_address(scratch);
                if return_address != 0 {
                    (pc, leaf) = (return_address, 0);
                    if pc >= low && pc < high {
                        break;
                    }
                    continue;
                }
            }
            // Code without frame pointers uses the register for other things.
            if fp.wrapping_sub(sp) > MAX_FRAME_BYTES || fp & 7 != 0 {
                let root = fp == 0 && leaf == 0;
                end = if root { StackEnd::Root } else { StackEnd::NoFramePointer } as u64;
                break;
            }
            let at = offset_of(scratch, fp, PAIR);
            if at > LAST_PAIR {
                end = StackEnd::ReadFailed as u64;
                break;
            }
            let (caller_fp, return_address) = pair_at(scratch, at);
            let return_address = code_address(return_address);
            if !is_user_address(return_address) {
                let root = return_address == 0 && caller_fp == 0;
                end = if root { StackEnd::Root } else { StackEnd::BadReturnAddress } as u64;
                sp = fp;
                break;
            }
            (pc, sp, fp, leaf) = (return_address, fp + PAIR, caller_fp, 0);
            if pc >= low && pc < high {
                break;
            }
        }
        let walk = &mut (*scratch).walk;
        (walk.pc, walk.sp, walk.fp, walk.leaf) = (pc, sp, fp, leaf);
        (walk.hash, walk.words, walk.frames) = (hash, words, frames);
        if end != GOES_ON {
            walk.end = end;
        }
        end == GOES_ON
    }
}
