//! x86-64: a call pushes the return address, rbp is the frame pointer where there is one (System V ABI, AMD64
//! supplement, 3.2).

#[cfg(target_arch = "bpf")]
mod saved;

use super::Start;
use crate::{CfaRule, FpRule, PAGE_SHIFT, ReturnRule, UnwindRule};

#[cfg(target_arch = "bpf")]
pub use saved::{
    SavedRegisters, is_foreign, is_user, moves_bytes, of_event, of_task, stack_pointer, system_call,
};

/// As Rust's targets call it.
pub const NAME: &str = "x86_64";

/// One past the last user address with four-level page tables; a process gets memory above only if it
/// asks for it (Documentation/arch/x86/x86_64/5level-paging.rst).
pub const USER_END: u64 = 1 << 47;

/// Whether a call leaves the return address in a register.
pub const LINK_REGISTER: bool = false;

/// Whether the walker knows HotSpot's frames.
pub const HOTSPOT: bool = true;

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

/// From where a signal's frame keeps rsp to where it keeps others (`struct sigcontext`,
/// arch/x86/include/uapi/asm/sigcontext.h): rip is the word above, rbx that above rbp.
const SIGNAL_RBP: u64 = 40;
const SIGNAL_RAX: u64 = 16;
const SIGNAL_R13: u64 = 80;

/// The registers that a signal's frame keeps, by `pair`, which reads two words. `at` is where the stack pointer is kept.
#[inline(always)]
pub fn interrupted(at: u64, mut pair: impl FnMut(u64) -> Option<(u64, u64)>) -> Option<Start<Registers>> {
    let (sp, pc) = pair(at)?;
    let (fp, bx) = pair(at.wrapping_sub(SIGNAL_RBP))?;
    let (ax, _) = pair(at.wrapping_sub(SIGNAL_RAX))?;
    let (r13, _) = pair(at.wrapping_sub(SIGNAL_R13))?;
    Some(Start { pc, sp, fp, registers: Registers { ax, bx, r13 } })
}
