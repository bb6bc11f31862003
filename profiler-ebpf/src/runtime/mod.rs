//! Whose a deferred frame is, and what the walker must know of a process's runtime.
//!
//! A runtime (HotSpot, CPython) makes code or frames that a native walk cannot step through or name. The daemon
//! recognises its processes and writes a layout of each into the runtime's map, by pid; the walker steps through the
//! runtime's code by that layout and sends frames that the daemon names later. A layout begins with a [`RuntimeHead`];
//! the rest, and what a frame's `kind`, `value` and `cookie` mean, is the runtime's own.

mod buffers;
mod cpython;
mod hotspot;
// Its decoding of instructions is tested wherever the tests run.
#[cfg_attr(all(test, not(emberscope_arch = "aarch64")), allow(dead_code))]
#[cfg(any(test, emberscope_arch = "aarch64"))]
pub mod hotspot_arm64;
mod locks;
mod strings;

pub use buffers::BufferLayout;
pub use cpython::{
    CodeFields, EvalRange, Grouping, InstructionKind, MAX_EVAL_RANGES, MAX_NATIVE_BESIDE_PYTHON,
    MAX_PYTHON_CODE, MAX_PYTHON_FRAME, PythonFrameTag, PythonLayout, PythonPlace,
};
pub use hotspot::{CodeHeap, Field, FieldKind, JavaFrameTag, JvmLayout, MAX_BLOB_HEAD, MAX_CODE_HEAPS};
pub use locks::{ClassWordKind, LockLayout, OWNER_ID_BITS};
pub use strings::StringLayout;

/// A runtime, by a number that stays.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuntimeId(pub u8);

impl RuntimeId {
    /// None: a frame is an address, and a process is walked as native code.
    pub const NATIVE: Self = Self(0);
    /// HotSpot JVMs.
    pub const HOTSPOT: Self = Self(1);
    /// CPython.
    pub const CPYTHON: Self = Self(2);
}

/// What every runtime's layout begins with: when the walker hands over to the runtime. All zero: the process is
/// expected, and not read yet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuntimeHead {
    /// First address of the code that the runtime steps through; 0: none.
    pub low: u64,
    /// One past the last.
    pub high: u64,
    /// A number that no other layout of this daemon has had, not 0: the key of what the walker remembers of the code.
    pub incarnation: u32,
    /// Zero.
    pub pad: u32,
}

impl RuntimeHead {
    /// Where a layout has its incarnation, in bytes.
    pub const INCARNATION_AT: usize = core::mem::offset_of!(Self, incarnation);
}

const _: () = assert!(size_of::<RuntimeHead>() == 24);
