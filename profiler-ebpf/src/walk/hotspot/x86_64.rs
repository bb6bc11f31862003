//! Where HotSpot keeps what in frames on x86-64; in which registers, `profiler_ebpf::arch::Registers` says.
//!
//! The instructions that make and unmake a frame are in `walk::leaf`. Facts: frame_x86.hpp,
//! templateInterpreterGenerator_x86.cpp (generate_fixed_frame), sharedRuntime_x86_64.cpp (gen_i2c_adapter); JDK 8 to 25.

use profiler_ebpf::JvmLayout;

/// Words of an interpreted frame below the frame pointer that are read; eight and the pair at it.
pub const BELOW: u64 = 8;
/// Bytes of all of them.
pub const SLOTS_BYTES: u64 = (BELOW + 2) * 8;
/// The `Method*`, counted from [`BELOW`] words below the frame pointer: at -3.
pub const METHOD: usize = BELOW as usize - 3;
/// The caller's stack pointer: at -1.
pub const SENDER: usize = BELOW as usize - 1;
/// The caller's frame pointer: at 0.
pub const SAVED_FP: usize = BELOW as usize;
/// The return address: at 1.
pub const RETURN: usize = BELOW as usize + 1;
/// From the frame pointer down to where an interpreted frame that is being made has its `Method*`.
pub const METHOD_BYTES: u64 = 24;
/// Bytes below the frame pointer while the sender's register (`Registers::sender_sp`) has the caller's stack pointer: that itself, and a zero.
pub const MADE: u64 = 16;
/// What ends a compiled frame: the caller's frame pointer, and above that the return address.
pub const FRAME_END: u64 = 16;
/// What a call pushes.
pub const CALL: u64 = 8;
/// Bytes of code that are looked at: the prologue of a method.
pub const CODE_BYTES: usize = 64;

/// The slot of the bytecode pointer (at -8, or -7 in JDK 8), counted from [`BELOW`] words below the frame pointer.
#[inline(always)]
pub fn bcp_slot(jvm: &JvmLayout) -> u64 {
    (BELOW as i64 + i64::from(jvm.bcp_slot)) as u64 & 7
}
