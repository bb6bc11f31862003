//! Where HotSpot keeps what in frames on arm64; in which registers, `profiler_ebpf::arch::Registers` says.
//!
//! The instructions that make and unmake a frame are in `profiler_ebpf::hotspot_arm64`. Facts: frame_aarch64.hpp,
//! templateInterpreterGenerator_aarch64.cpp (generate_fixed_frame), macroAssembler_aarch64.cpp (build_frame); JDK 8 to 25.

use profiler_ebpf::{JvmLayout, hotspot_arm64};

/// Words of an interpreted frame below the frame pointer that are read; nine and the pair at it.
pub const BELOW: u64 = 9;
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
/// From the frame pointer down to where an interpreted frame that is being made has its `Method*`: sp is lower before x29 is set.
pub const METHOD_BYTES: u64 = 24;
/// What ends a compiled frame: the caller's x29, and above that the return address.
pub const FRAME_END: u64 = 16;
/// What a call pushes: nothing.
pub const CALL: u64 = 0;
/// Bytes of code that are looked at: where an interpreted method is entered.
pub const CODE_BYTES: usize = hotspot_arm64::ENTRY_WORDS * 4;

/// The slot of the bytecode pointer (at -9, or -7 in JDK 8), counted from [`BELOW`] words below the frame pointer.
#[inline(always)]
pub fn bcp_slot(jvm: &JvmLayout) -> u64 {
    (BELOW as i64 + i64::from(jvm.bcp_slot)) as u64 & 7
}
