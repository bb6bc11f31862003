//! x86-64: a call pushes the return address, rbp is the frame pointer where there is one (System V ABI, AMD64
//! supplement, 3.2).

#[cfg(target_arch = "bpf")]
mod saved;

use super::Start;
use crate::{CfaRule, FpRule, PAGE_SHIFT, ReturnRule, UnwindRule};

#[cfg(target_arch = "bpf")]
pub use saved::{
    SavedRegisters, Taken, is_foreign, is_user, moves_bytes, of_event, of_task, stack_pointer, system_call,
};

/// As Rust's targets call it.
pub const NAME: &str = "x86_64";

/// One past the last user address with four-level page tables; a process gets memory above only if it
/// asks for it (Documentation/arch/x86/x86_64/5level-paging.rst).
pub const USER_END: u64 = 1 << 47;

/// Whether a call leaves the return address in a register.
pub const LINK_REGISTER: bool = false;

/// The page of `[vsyscall]`: code that the kernel runs for its caller, whose return address is on top of the stack. Too
/// high for a `CodeRange`.
const VSYSCALL: u64 = 0xffff_ffff_ff60_0000;

/// The rule of code that has no frame.
const NO_FRAME: UnwindRule = UnwindRule {
    cfa: CfaRule::Sp,
    cfa_offset: 8,
    fp: FpRule::Same,
    fp_offset: 0,
    return_address: ReturnRule::BelowCfa,
};

/// The address of code in a word that a call saved, or in a saved pc.
#[inline(always)]
pub const fn code_address(word: u64) -> u64 {
    word
}

/// The rule of a page whose code is the same in all processes, is in no file and has no frame.
#[inline(always)]
pub const fn frameless(page: u64) -> Option<UnwindRule> {
    if page == VSYSCALL >> PAGE_SHIFT { Some(NO_FRAME) } else { None }
}

/// Registers of an interrupted instruction, beside pc, sp and fp: those in which HotSpot has what is not on the stack yet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// rax.
    pub ax: u64,
    /// rbx.
    pub bx: u64,
    /// r13.
    pub r13: u64,
}

impl Registers {
    /// The return address, where a call leaves it in a register: 0, here it is on the stack.
    #[inline(always)]
    pub const fn link(&self) -> u64 {
        0
    }
    /// The return address, where an interpreted frame or an adapter has popped it.
    #[inline(always)]
    pub const fn popped_return(&self) -> u64 {
        self.ax
    }
    /// The `Method*` of an interpreted frame that is being built (templateInterpreterGenerator_x86.cpp,
    /// generate_fixed_frame).
    #[inline(always)]
    pub const fn method(&self) -> u64 {
        self.bx
    }
    /// The caller's sp, until an interpreted frame has it in its slot.
    #[inline(always)]
    pub const fn sender_sp(&self) -> u64 {
        self.r13
    }
    /// The interpreter's bytecode pointer, once there is a frame.
    #[inline(always)]
    pub const fn bytecode(&self) -> u64 {
        self.r13
    }
}

/// Bytes from the first register that is read of a signal's frame, r13, to where rsp is kept there (`struct sigcontext`,
/// arch/x86/include/uapi/asm/sigcontext.h: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip).
pub const SIGNAL_BELOW: u64 = 80;
/// Bytes from there to the last one, and with it.
pub const SIGNAL_BYTES: u64 = SIGNAL_BELOW + 16;

/// The registers that a signal's frame keeps, by `word`, which reads the word at so many bytes from the first.
#[inline(always)]
pub fn interrupted(word: impl Fn(u64) -> u64) -> Start<Registers> {
    let registers = Registers { ax: word(SIGNAL_BELOW - 16), bx: word(SIGNAL_BELOW - 32), r13: word(0) };
    Start { pc: word(SIGNAL_BELOW + 8), sp: word(SIGNAL_BELOW), fp: word(SIGNAL_BELOW - 40), registers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signals_frame_keeps_registers_side_by_side() {
        let start = interrupted(|bytes| 1000 + bytes / 8);
        // r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
        assert_eq!((start.fp, start.sp, start.pc), (1005, 1010, 1011));
        assert_eq!((start.registers.r13, start.registers.bx, start.registers.ax), (1000, 1006, 1008));
        assert_eq!(SIGNAL_BYTES, 12 * 8);
    }
}
