//! CPython: the chain of Python frames of a thread, behind its native frames.
//!
//! In: what the daemon tells of an interpreter ([`maps`]), and the walk whose native frames are all there: the eval
//! loop is walked as any native code. Out: the eval loop's ranges and the thread's Python frames (`frames`), of kind
//! [`PythonFrameTag`]. The two are put together in the daemon: which native frame stands for which Python frames
//! can be told from the root only, as the interpreter's own account of its innermost frame lags behind. This file is
//! the room's door, for `walk::runtime` alone.
#![allow(unsafe_code)]

mod frames;
mod maps;

use super::{push, stack};
use crate::maps::Scratch;
use crate::regs;
use maps::PYTHONS;
use profiler_ebpf::{MAX_EVAL_RANGES, MAX_FRAMES_WITH_PYTHON, PythonFrameTag, PythonLayout, RuntimeHead};

pub use frames::steps;

/// What the walk keeps of a thread's chain.
#[repr(C)]
pub struct Chain {
    /// 1: the native frames are there, and the chain is followed.
    pub follows: u64,
    /// The next frame; 0: that was the last.
    pub frame: u64,
    /// Where the next frame is asked for if this one is none: the `CFrame` before; 0: nowhere.
    pub cframe: u64,
    /// 1: the last frame sent is not yet marked as the outermost of its group.
    pub open: u64,
}

/// Whether a process is an interpreter, with its layout's head.
#[inline(always)]
pub fn look_up(pid: u32) -> Option<RuntimeHead> {
    // SAFETY: an entry of the map.
    PYTHONS.get_ptr(pid).map(|layout| unsafe { (*layout).head })
}

/// The native frames are there: the chain comes next, if the thread has one.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(never)]
pub unsafe fn after(scratch: *mut Scratch) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let Some(layout) = PYTHONS.get_ptr((*scratch).walk.pid as u32) else { return false };
        let layout: &PythonLayout = &*layout;
        if layout.eval[0].len == 0 {
            return false;
        }
        let Some(thread) = thread(scratch, layout) else { return false };
        let Some(mut frame) = stack::read::<u64>(scratch, thread + u64::from(layout.thread_frame)) else {
            return false;
        };
        let mut cframe = 0;
        if layout.cframe_frame != PythonLayout::NONE {
            cframe = frame;
            match stack::read::<u64>(scratch, cframe + u64::from(layout.cframe_frame)) {
                Some(first) => frame = first,
                None => return false,
            }
        }
        let walk = &mut (*scratch).walk;
        walk.most = MAX_FRAMES_WITH_PYTHON as u64;
        // What was fetched of the stack gives way to what is read here.
        (walk.base, walk.limit) = (0, 0);
        (walk.python.follows, walk.python.open) = (1, 0);
        (walk.python.frame, walk.python.cframe) = (frame, cframe);
        for range in 0..MAX_EVAL_RANGES {
            let range = layout.eval[range];
            if range.len != 0
                && !push(scratch, range.low, PythonFrameTag::EvalRange.word() | u64::from(range.len))
            {
                return false;
            }
        }
        true
    }
}

/// The thread's `PyThreadState`; None: it has none, or it cannot be read.
#[inline(always)]
unsafe fn thread(scratch: *mut Scratch, layout: &PythonLayout) -> Option<u64> {
    // SAFETY: as above.
    unsafe {
        let pointer = regs::thread_pointer();
        if pointer == 0 {
            return None;
        }
        let mut kept = stack::read::<u64>(scratch, pointer.wrapping_add(layout.key_at as i64 as u64))?;
        if layout.key_then >= 0 {
            if kept == 0 {
                return None;
            }
            kept = stack::read::<u64>(scratch, kept + layout.key_then as u64)?;
        }
        if kept == 0 { None } else { Some(kept) }
    }
}

/// A new process has the interpreter of the one that made it.
#[inline(always)]
pub fn inherit(parent: u32, child: u32) {
    if let Some(layout) = PYTHONS.get_ptr(parent) {
        // SAFETY: an entry of the map.
        let _ = PYTHONS.insert(child, unsafe { &*layout }, 0);
    }
}

/// The process ended or runs another program.
#[inline(always)]
pub fn forget(pid: u32) {
    let _ = PYTHONS.remove(pid);
}
