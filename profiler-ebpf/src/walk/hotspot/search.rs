//! Finds a return address that is not where the frame's size says.
//!
//! In: the scratch's rule and the walk's registers. Out: the caller's registers, or an end. Code that was
//! interrupted may have pushed some words (String intrinsics of C2, for one); the stubs of a collector's barriers
//! save registers below the frame before they call the JVM; a virtual thread's lowest frame returns to where its
//! carrier goes on. All bounded.
#![allow(unsafe_code)]

use super::blob;
use super::frameless::top;
use super::frames::frame_bytes;
use super::interp::MAX_FRAME;
use super::maps::JVMS;
use super::slots::FRAME_END;
use super::steps::{lost, rule};
use crate::maps::{FETCH_BYTES, Scratch};
use crate::walk::stack::{at_most, is_user_address, offset_of, pair, read};
use crate::walk::{GUESSED, RETURN_ADDRESS, caller, ended, in_code, push};
use core::ptr::addr_of_mut;
use profiler_ebpf::arch::code_address;
use profiler_ebpf::{JavaFrameTag, StackEnd};

/// Words that the interrupted code may have pushed.
const LEAF_WORDS: u64 = 8;
/// Words that a barrier's stub may have saved: all registers.
const SAVED_WORDS: u64 = 64;
/// Where in `fetched` the last place for them is.
const LAST_SAVED: u64 = FETCH_BYTES as u64 - (SAVED_WORDS * 8 + 8);
/// Bytes of stack arguments between a virtual thread's lowest frame and its carrier's, in steps of 16.
const ARGUMENT_STEPS: u64 = 8;

/// From the end of the frame upwards.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(never)]
pub unsafe fn body(scratch: *mut Scratch) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let walk = &(*scratch).walk;
        let (sp, leaf) = (walk.sp, walk.leaf);
        let bytes = frame_bytes(scratch);
        if bytes < FRAME_END {
            return top(scratch);
        }
        let words = if leaf != 0 { LEAF_WORDS } else { SAVED_WORDS };
        let from = sp + bytes - FRAME_END;
        let at = offset_of(scratch, from, words * 8 + 8);
        if at > LAST_SAVED {
            return top(scratch);
        }
        let low = (*scratch).walk.low;
        let heaps = (*scratch).walk.high.saturating_sub(low);
        let jvm = (*scratch).walk.jvm;
        let (interpreter, len) = (jvm.interpreter, jvm.places.interpreter_len());
        let first =
            addr_of_mut!((*scratch).fetched).cast::<u8>().add(at_most::<LAST_SAVED>(at)).cast::<u64>();
        let mut i = 0;
        while i < SAVED_WORDS && i < words {
            let pc = code_address(first.add(i as usize + 1).read());
            if pc.wrapping_sub(low) < heaps {
                let (fp, above) = (first.add(i as usize).read(), from + i * 8 + FRAME_END);
                // A slot of the frame that nothing was written to may have such an address of earlier calls: the
                // interpreter's frame is where fp says.
                if pc.wrapping_sub(interpreter) >= len || fp.wrapping_sub(above) <= MAX_FRAME {
                    break;
                }
            }
            i += 1;
        }
        // By way of memory: the verifier knows nothing of what it reads there, and looks at the rest once, not for each word.
        addr_of_mut!((*scratch).walk.at).write_volatile(i);
        let i = addr_of_mut!((*scratch).walk.at).read_volatile();
        if i >= words {
            return top(scratch);
        }
        let word = first.add(at_most::<{ SAVED_WORDS - 1 }>(i));
        let goes_on =
            caller(scratch, code_address(word.add(1).read()), from + i * 8 + FRAME_END, word.read());
        if leaf == 0 && i > 0 {
            (*scratch).walk.guessed = GUESSED;
        }
        goes_on
    }
}

/// The lowest thawed frame of a virtual thread returns to a barrier; the carrier goes on in
/// `Continuation.enterSpecial`, whose frame lies above the arguments of that frame (JDK 21 on,
/// continuationFreezeThaw.cpp). What is between them is frozen, in the heap: the barrier's own frame stands for it.
///
/// # Safety
/// As for [`body`].
#[inline(never)]
pub unsafe fn continuation(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let Some(jvm) = JVMS.get_ptr((*scratch).walk.pid as u32) else {
            return lost(scratch, StackEnd::JvmNotReady as u64);
        };
        let returns = read::<u64>(scratch, (*jvm).cont_entry_return).unwrap_or(0);
        if !is_user_address(returns) || !in_code(&(*scratch).walk, returns) {
            return lost(scratch, StackEnd::ContinuationUnknown as u64);
        }
        if !push(scratch, (*scratch).walk.pc, JavaFrameTag::Stub.word() | RETURN_ADDRESS) {
            return false;
        }
        (*scratch).walk.pc = returns;
        if !rule(scratch) {
            return false;
        }
        let bytes = frame_bytes(scratch);
        let sp = (*scratch).walk.sp;
        for i in 0..ARGUMENT_STEPS {
            if bytes >= FRAME_END
                && let Some((_, pc)) = pair(scratch, sp + bytes - FRAME_END + i * 16)
                && let pc = code_address(pc)
                && in_code(&(*scratch).walk, pc)
            {
                // The heaps are large, and what lies on the stack may look like an address in them.
                (*scratch).walk.pc = pc;
                let is_code = blob::is_there(scratch, jvm);
                (*scratch).walk.pc = returns;
                if is_code {
                    (*scratch).walk.sp = sp + i * 16;
                    return true;
                }
            }
        }
        ended(scratch, StackEnd::ContinuationUnknown)
    }
}
