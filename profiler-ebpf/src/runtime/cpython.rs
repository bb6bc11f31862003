//! CPython's frames as the walker sends them, and what it must know of an interpreter, in a map keyed by pid.
//!
//! CPython's functions run in a few native functions, the eval loop, one frame of which stands for one or several Python
//! frames. The native stack is walked as any other; behind its frames come the ranges of the eval loop's code, then the
//! thread's chain of Python frames, innermost first. The daemon puts the two together. Offsets are bytes from the
//! start of the object they belong to. The walker trusts none of them: every one is bounded where it is used.
#![allow(unsafe_code)]

use super::{RuntimeHead, RuntimeId};

/// Kind of a frame of [`RuntimeId::CPYTHON`].
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonFrameTag {
    /// No frame: code of the eval loop begins at `value` and has `cookie` bytes. Comes before the chain.
    EvalRange = 1,
    /// A Python frame: `value` is a [`PythonPlace`], `cookie` the code object's checksum ([`CodeFields::checksum`]).
    Function = 2,
    /// The same, and it is the outermost that one native frame of the eval loop stands for.
    Entry = 3,
    /// No frame: the chain was followed to its end.
    Root = 4,
}

impl PythonFrameTag {
    /// The kind with this number, if there is one.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::EvalRange),
            2 => Some(Self::Function),
            3 => Some(Self::Entry),
            4 => Some(Self::Root),
            _ => None,
        }
    }

    /// In the second word of a [`crate::UserFrame`], with the runtime.
    pub const fn word(self) -> u64 {
        (self as u64) << 32 | (RuntimeId::CPYTHON.0 as u64) << 48
    }
}

/// A code object and an instruction in it, in a word: code objects lie at multiples of eight, below 2^48 (on arm64; x86-64's end at 2^47).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PythonPlace(pub u64);

impl PythonPlace {
    const CODE_BITS: u32 = 45;
    /// The greatest number of an instruction that has room; one beyond is not told.
    pub const MAX_UNIT: u64 = (1 << (64 - Self::CODE_BITS)) - 2;

    /// The instruction by its number: they have two bytes each. One that was not begun has a negative number.
    #[inline(always)]
    pub const fn new(code: u64, unit: i64) -> Self {
        let told = if unit < 0 || unit as u64 > Self::MAX_UNIT { 0 } else { unit as u64 + 1 };
        Self(code >> 3 & ((1 << Self::CODE_BITS) - 1) | told << Self::CODE_BITS)
    }

    /// Where the code object is.
    pub const fn code(self) -> u64 {
        (self.0 & ((1 << Self::CODE_BITS) - 1)) << 3
    }

    /// The instruction's number, where it is told.
    pub const fn unit(self) -> Option<u64> {
        (self.0 >> Self::CODE_BITS).checked_sub(1)
    }
}

/// Fields of a code object by which it is told from another one at the same address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeFields {
    /// Where its file's name is.
    pub filename: u64,
    /// Where its name is.
    pub name: u64,
    /// Where its table of lines is.
    pub lines: u64,
    /// First line and flags.
    pub first_line_flags: u64,
    /// Number of arguments and version (0 before 3.12).
    pub arguments_version: u64,
}

impl CodeFields {
    /// What tells it from others.
    #[inline(always)]
    pub const fn checksum(&self) -> u32 {
        let words = [self.filename, self.name, self.lines, self.first_line_flags, self.arguments_version];
        let mut hash = 0u64;
        let mut at = 0;
        while at < words.len() {
            let mixed = (hash ^ words[at]).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash = mixed ^ mixed >> 32;
            at += 1;
        }
        (hash ^ hash >> 32) as u32
    }
}

/// Code of the eval loop.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvalRange {
    /// First address.
    pub low: u64,
    /// Bytes; 0: no such range.
    pub len: u32,
    /// Zero.
    pub pad: u32,
}

/// Pieces of the eval loop: compilers put what is rarely run into a second one.
pub const MAX_EVAL_RANGES: usize = 2;

/// Native frames of a thread that may run Python, at most: what is left of
/// [`crate::MAX_FRAMES_WITH_PYTHON`] is for the chain.
pub const MAX_NATIVE_BESIDE_PYTHON: usize = 384;

/// Bytes of a Python frame and of a code object that are read at once, at most: where all of [`PythonLayout`]'s fields
/// lie.
pub const MAX_PYTHON_FRAME: usize = 128;
/// See [`MAX_PYTHON_FRAME`].
pub const MAX_PYTHON_CODE: usize = 160;

/// How a frame tells the instruction that it is at.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InstructionKind {
    /// A number of bytes, four of them (up to 3.9).
    #[default]
    Bytes = 0,
    /// A number of instructions (3.10).
    Units = 1,
    /// An address in the code object (3.11 on).
    Pointer = 2,
}

/// How a chain tells which of its frames a native frame of the eval loop stands for.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Each has its own (up to 3.10).
    #[default]
    Each = 0,
    /// The outermost is marked (3.11).
    Mark = 1,
    /// A frame that is no function's comes after them (3.12 on).
    Shim = 2,
}

/// One interpreter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonLayout {
    /// No code: the eval loop is walked as native code.
    pub head: RuntimeHead,
    /// The eval loop's code; the first with no bytes: not known yet.
    pub eval: [EvalRange; MAX_EVAL_RANGES],
    /// `PyCode_Type`: what a code object's type is.
    pub code_type: u64,
    /// From the thread pointer: where the thread's `PyThreadState` is kept, or where what is kept of the thread is.
    pub key_at: i32,
    /// In the latter case, where in that; negative: the first tells.
    pub key_then: i32,
    /// Of a thread's state: its frame, or its `CFrame` (3.11, 3.12).
    pub thread_frame: u16,
    /// Of a `CFrame`: its frame; [`Self::NONE`]: there are none.
    pub cframe_frame: u16,
    /// Of a `CFrame`: the one before.
    pub cframe_previous: u16,
    /// Of a frame: its caller.
    pub previous: u16,
    /// Of a frame: its code object.
    pub code: u16,
    /// Of a frame: its instruction.
    pub instruction: u16,
    /// Of a frame: by what frames are grouped, a byte.
    pub group: u16,
    /// Bytes of a frame that hold these.
    pub frame_bytes: u16,
    /// Of a code object: its first instruction, where that is in there.
    pub bytecode: u16,
    /// Of a code object: its file's name.
    pub filename: u16,
    /// Of a code object: its name.
    pub name: u16,
    /// Of a code object: its table of lines.
    pub lines: u16,
    /// Of a code object: its first line, four bytes.
    pub first_line: u16,
    /// Of a code object: its flags, four bytes.
    pub flags: u16,
    /// Of a code object: its number of arguments, four bytes.
    pub arguments: u16,
    /// Of a code object: its version, four bytes; [`Self::NONE`] where it has none.
    pub version: u16,
    /// Bytes of a code object that hold these.
    pub code_bytes: u16,
    /// An [`InstructionKind`].
    pub instruction_kind: u8,
    /// A [`Grouping`].
    pub grouping: u8,
    /// The least value of the grouping byte that makes a frame no function's.
    pub shim: u8,
    /// Zero.
    pub pad: [u8; 3],
}

impl PythonLayout {
    /// No such field.
    pub const NONE: u16 = u16::MAX;
    /// Of any object: its type.
    pub const TYPE: usize = 8;

    /// As the map has it.
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        // SAFETY: integers without padding between them: their sizes add up to that of the whole, asserted below.
        unsafe { core::mem::transmute(*self) }
    }
}

const _: () = {
    let words = size_of::<RuntimeHead>() + size_of::<EvalRange>() * MAX_EVAL_RANGES + 8 + 2 * 4 + 17 * 2 + 6;
    assert!(size_of::<PythonLayout>() == words);
    assert!(size_of::<EvalRange>() == 16);
    assert!(size_of::<PythonLayout>() == 112);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_any_address_of_either_architecture() {
        for code in [8, 0x7fff_ffff_fff8, 0xaaaa_bbbb_ccc8, 0xffff_ffff_fff8] {
            for unit in [0, 1, PythonPlace::MAX_UNIT as i64] {
                let place = PythonPlace::new(code, unit);
                assert_eq!((place.code(), place.unit()), (code, Some(unit as u64)));
            }
            for unit in [-1, PythonPlace::MAX_UNIT as i64 + 1] {
                let place = PythonPlace::new(code, unit);
                assert_eq!((place.code(), place.unit()), (code, None));
            }
        }
    }
}
