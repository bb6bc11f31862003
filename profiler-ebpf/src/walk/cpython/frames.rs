//! Python frames, one after the other.
//!
//! In: the walk's chain. Out: a frame for each Python function: its code object with a checksum over what tells it from
//! another one at the same address, and its instruction. Two reads a frame. A frame whose code is no code object ends
//! the chain, without its mark: the interpreter was changing it, or it is not as the daemon told.
#![allow(unsafe_code)]

use super::maps::PYTHONS;
use crate::maps::Scratch;
use crate::walk::stack::{at_most, is_user_address, read};
use crate::walk::{LAST_FRAME, mix, push};
use aya_ebpf::helpers::generated::bpf_probe_read_user;
use core::ffi::c_void;
use core::ptr::addr_of_mut;
use profiler_ebpf::{
    CodeFields, Grouping, InstructionKind, MAX_FRAMES_WITH_PYTHON, MAX_PYTHON_CODE, MAX_PYTHON_FRAME,
    PythonFrameTag, PythonLayout, PythonPlace,
};

/// Frames between two rounds.
const FRAMES_A_ROUND: usize = 2;
/// In a frame's second word: from a frame of a group to its outermost.
const TO_ENTRY: u64 = PythonFrameTag::Function.word() ^ PythonFrameTag::Entry.word();
/// The lowest bits of a pointer to a code object are a tag (3.14).
const TAG: u64 = 3;
/// Where in `fetched` the frame and its code object are read to.
const FRAME: usize = 0;
const CODE: usize = MAX_PYTHON_FRAME;

/// Some frames more; false at the end.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn steps(scratch: *mut Scratch) -> bool {
    for _ in 0..FRAMES_A_ROUND {
        // SAFETY: by contract.
        if !unsafe { step(scratch) } {
            return false;
        }
    }
    true
}

/// One frame; false at the end.
#[inline(never)]
unsafe fn step(scratch: *mut Scratch) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let walk = &(*scratch).walk;
        let frame = walk.python.frame;
        // Without room for the mark of the end the chain is cut.
        if walk.frames >= MAX_FRAMES_WITH_PYTHON as u64 {
            return false;
        }
        if frame == 0 {
            push(scratch, 0, PythonFrameTag::Root.word());
            return false;
        }
        let Some(layout) = PYTHONS.get_ptr(walk.pid as u32) else { return false };
        let layout: &PythonLayout = &*layout;
        if !fetch::<FRAME, { MAX_PYTHON_FRAME as u64 }>(scratch, frame, u64::from(layout.frame_bytes)) {
            return other(scratch, layout);
        }
        let group = word::<FRAME, { MAX_PYTHON_FRAME as u64 - 8 }, u8>(scratch, layout.group);
        let previous = word::<FRAME, { MAX_PYTHON_FRAME as u64 - 8 }, u64>(scratch, layout.previous);
        if layout.grouping == Grouping::Shim as u8 && group >= layout.shim {
            return shim(scratch, previous);
        }
        let code = word::<FRAME, { MAX_PYTHON_FRAME as u64 - 8 }, u64>(scratch, layout.code) & !TAG;
        if !is_user_address(code)
            || !fetch::<CODE, { MAX_PYTHON_CODE as u64 }>(scratch, code, u64::from(layout.code_bytes))
            || word::<CODE, { MAX_PYTHON_CODE as u64 - 8 }, u64>(scratch, PythonLayout::TYPE as u16)
                != layout.code_type
        {
            return other(scratch, layout);
        }
        let place = PythonPlace::new(code, unit(scratch, layout, code)).0;
        let fields = fields(scratch, layout);
        let entry =
            layout.grouping == Grouping::Each as u8 || layout.grouping == Grouping::Mark as u8 && group != 0;
        let tag = if entry { PythonFrameTag::Entry } else { PythonFrameTag::Function };
        let walk = &mut (*scratch).walk;
        walk.python.open = if entry { 0 } else { 1 };
        (walk.python.frame, walk.python.cframe) = (previous, 0);
        push(scratch, place, tag.word() | u64::from(fields.checksum()))
    }
}

/// A frame that is no function's: the one sent last is the outermost of its group.
#[inline(always)]
unsafe fn shim(scratch: *mut Scratch, previous: u64) -> bool {
    // SAFETY: as above; the index is checked.
    unsafe {
        let walk = &mut (*scratch).walk;
        let last = walk.words.wrapping_sub(2);
        if walk.python.open != 0 && last <= LAST_FRAME {
            let frame = addr_of_mut!((*scratch).body).cast::<u64>().add(at_most::<LAST_FRAME>(last)).add(1);
            frame.write(frame.read() ^ TO_ENTRY);
            walk.hash = mix(walk.hash, TO_ENTRY);
        }
        (walk.python.open, walk.python.frame) = (0, previous);
        true
    }
}

/// What was taken for the innermost frame is none: until the interpreter has set it, the `CFrame` before tells.
#[inline(always)]
unsafe fn other(scratch: *mut Scratch, layout: &PythonLayout) -> bool {
    // SAFETY: as above.
    unsafe {
        let cframe = (*scratch).walk.python.cframe;
        if cframe == 0 || layout.cframe_frame == PythonLayout::NONE {
            return false;
        }
        let Some(before) = read::<u64>(scratch, cframe + u64::from(layout.cframe_previous)) else {
            return false;
        };
        let Some(frame) = read::<u64>(scratch, before + u64::from(layout.cframe_frame)) else { return false };
        (*scratch).walk.python.cframe = 0;
        (*scratch).walk.python.frame = frame;
        frame != 0
    }
}

/// The number of the frame's instruction; negative where it was not begun.
#[inline(always)]
unsafe fn unit(scratch: *mut Scratch, layout: &PythonLayout, code: u64) -> i64 {
    // SAFETY: as above.
    unsafe {
        if layout.instruction_kind == InstructionKind::Pointer as u8 {
            let at = word::<FRAME, { MAX_PYTHON_FRAME as u64 - 8 }, u64>(scratch, layout.instruction);
            return at.wrapping_sub(code + u64::from(layout.bytecode)) as i64 >> 1;
        }
        let at = word::<FRAME, { MAX_PYTHON_FRAME as u64 - 8 }, u32>(scratch, layout.instruction) as i32;
        if layout.instruction_kind == InstructionKind::Bytes as u8 {
            i64::from(at >> 1)
        } else {
            i64::from(at)
        }
    }
}

/// What tells the code object from others.
#[inline(always)]
unsafe fn fields(scratch: *mut Scratch, layout: &PythonLayout) -> CodeFields {
    const LAST: u64 = MAX_PYTHON_CODE as u64 - 8;
    // SAFETY: as above.
    unsafe {
        let pair = |high: u16, low: u16| {
            u64::from(word::<CODE, LAST, u32>(scratch, high)) << 32
                | u64::from(word::<CODE, LAST, u32>(scratch, low))
        };
        let arguments_version = if layout.version == PythonLayout::NONE {
            u64::from(word::<CODE, LAST, u32>(scratch, layout.arguments))
        } else {
            pair(layout.version, layout.arguments)
        };
        CodeFields {
            filename: word::<CODE, LAST, u64>(scratch, layout.filename),
            name: word::<CODE, LAST, u64>(scratch, layout.name),
            lines: word::<CODE, LAST, u64>(scratch, layout.lines),
            first_line_flags: pair(layout.first_line, layout.flags),
            arguments_version,
        }
    }
}

/// Reads bytes of the target to a place in `fetched`.
#[inline(always)]
unsafe fn fetch<const AT: usize, const MOST: u64>(scratch: *mut Scratch, address: u64, bytes: u64) -> bool {
    // SAFETY: no more than the place has.
    unsafe {
        (*scratch).walk.reads += 1;
        let to = addr_of_mut!((*scratch).fetched).cast::<u8>().add(AT).cast::<c_void>();
        bpf_probe_read_user(to, at_most::<MOST>(bytes) as u32, address as *const c_void) == 0
    }
}

/// A value of what was read to a place in `fetched`.
#[inline(always)]
unsafe fn word<const AT: usize, const LAST: u64, T: Copy>(scratch: *mut Scratch, offset: u16) -> T {
    // SAFETY: bounded; the memory is the scratch's.
    unsafe {
        let from = addr_of_mut!((*scratch).fetched).cast::<u8>().add(AT);
        from.add(at_most::<LAST>(u64::from(offset))).cast::<T>().read()
    }
}
