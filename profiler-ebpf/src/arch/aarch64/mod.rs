//! arm64: a call leaves the return address in x30, x29 leads from frame record to frame record (Procedure Call Standard
//! for the Arm 64-bit Architecture, 6.4.6: two words, the caller's x29 and x30).
//!
//! Frame records are followed, and x30 where the interrupted instruction proves what it holds (`leaf`). Frames of 32-bit
//! programs end a walk with `arch_unsupported`.

mod leaf;
#[cfg(target_arch = "bpf")]
mod saved;

use super::Start;
use crate::UnwindRule;

pub use leaf::{MAX_LEAF_WORDS, call_target, is_outside_frame, leaves_link_alone};
#[cfg(target_arch = "bpf")]
pub use saved::{
    SavedRegisters, Taken, is_foreign, is_user, moves_bytes, of_event, of_task, stack_pointer, system_call,
};

/// As Rust's targets call it.
pub const NAME: &str = "aarch64";

/// One past the last user address with 48-bit addresses. Where the CPU has 52, a process gets memory above only if it asks
/// for it (Documentation/arch/arm64/memory.rst).
pub const USER_END: u64 = 1 << 48;

/// Whether a call leaves the return address in a register.
pub const LINK_REGISTER: bool = true;

/// Bits that a signature never has: bit 55 says whose half of the address space it is, those above are a tag, which no
/// address of code has (Documentation/arch/arm64/pointer-authentication.rst).
const NEVER_SIGNED: u64 = !((1 << 55) - 1);

/// The address of code in a word that a call saved, or in a saved pc: without its signature, which is in bits 54 to 48 (to
/// 52 where addresses have 52 bits).
#[inline(always)]
pub const fn code_address(word: u64) -> u64 {
    if word & NEVER_SIGNED == 0 { word & (USER_END - 1) } else { word }
}

/// The rule of a page whose code is the same in all processes, is in no file and has no frame: there is none.
#[inline(always)]
pub const fn frameless(_: u64) -> Option<UnwindRule> {
    None
}

/// Registers of an interrupted instruction, beside pc, sp and x29: the link register, and those in which HotSpot has what is
/// not on the stack yet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// x30.
    pub lr: u64,
    /// x12.
    pub x12: u64,
    /// x13.
    pub x13: u64,
    /// x19.
    pub x19: u64,
    /// x22.
    pub x22: u64,
}

impl Registers {
    /// The return address, as long as nothing has saved it.
    #[inline(always)]
    pub const fn link(&self) -> u64 {
        code_address(self.lr)
    }
    /// The return address of an adapter.
    #[inline(always)]
    pub const fn popped_return(&self) -> u64 {
        self.link()
    }
    /// The `Method*` of an interpreted frame that is being built (templateInterpreterGenerator_aarch64.cpp).
    #[inline(always)]
    pub const fn method(&self) -> u64 {
        self.x12
    }
    /// The caller's sp behind an adapter whose own is `sp`, at most so many bytes above it, where a register has such a number:
    /// x13 up to JDK 19, x19 from JDK 20 on (sharedRuntime_aarch64.cpp, gen_c2i_adapter).
    #[inline(always)]
    pub const fn sender_sp(&self, sp: u64, bytes: u64) -> u64 {
        if self.x13 & 7 == 0 && self.x13.wrapping_sub(sp) <= bytes {
            self.x13
        } else if self.x19 & 7 == 0 && self.x19.wrapping_sub(sp) <= bytes {
            self.x19
        } else {
            sp
        }
    }
    /// The interpreter's bytecode pointer, once there is a frame.
    #[inline(always)]
    pub const fn bytecode(&self) -> u64 {
        self.x22
    }
}

/// Bytes from the first register that is read of a signal's frame, x12, to where sp is kept there (`struct sigcontext`,
/// arch/arm64/include/uapi/asm/sigcontext.h: x0 to x30, sp, pc).
pub const SIGNAL_BELOW: u64 = (31 - FIRST) * 8;
/// Bytes from there to the last one, and with it.
pub const SIGNAL_BYTES: u64 = SIGNAL_BELOW + 16;
const FIRST: u64 = 12;

/// The registers that a signal's frame keeps, by `word`, which reads the word at so many bytes from the first.
#[inline(always)]
pub fn interrupted(word: impl Fn(u64) -> u64) -> Start<Registers> {
    let x = |register: u64| word((register - FIRST) * 8);
    let registers = Registers { lr: x(30), x12: x(12), x13: x(13), x19: x(19), x22: x(22) };
    Start { pc: code_address(word(SIGNAL_BELOW + 8)), sp: word(SIGNAL_BELOW), fp: x(29), registers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_taken_off_and_nothing_else() {
        assert_eq!(code_address(0x0035_ffff_8000_1234), 0xffff_8000_1234);
        assert_eq!(code_address(0xffff_8000_1234), 0xffff_8000_1234);
        // The kernel's, and what has a tag.
        assert_eq!(code_address(0xffff_8000_0800_1234), 0xffff_8000_0800_1234);
        assert_eq!(code_address(0x0100_ffff_8000_1234), 0x0100_ffff_8000_1234);
    }

    #[test]
    fn a_signals_frame_keeps_registers_side_by_side() {
        let start = interrupted(|bytes| 1012 + bytes / 8);
        assert_eq!((start.fp, start.registers.lr, start.sp, start.pc), (1029, 1030, 1031, 1032));
        let found = start.registers;
        assert_eq!((found.x12, found.x13, found.x19, found.x22), (1012, 1013, 1019, 1022));
        assert_eq!(SIGNAL_BYTES, 21 * 8);
    }
}
