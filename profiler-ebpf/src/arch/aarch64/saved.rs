//! The kernel's `user_pt_regs` of arm64, with which its `pt_regs` begins.
#![allow(unsafe_code)]

use super::{Registers, Start, code_address};
use aya_ebpf::bindings::user_pt_regs;
use core::ptr::{addr_of, read_volatile};

/// What the kernel saves of the registers.
pub type SavedRegisters = user_pt_regs;

/// Of `pstate`: the exception level and the stack pointer, 0 in user mode (arch/arm64/include/uapi/asm/ptrace.h).
const PSR_MODE_MASK: u64 = 0xf;
/// Of `pstate`: a 32-bit process.
const PSR_MODE32_BIT: u64 = 0x10;

/// Whether they are those of user code.
///
/// # Safety
/// `regs` may be read in whole words.
#[inline(always)]
pub unsafe fn is_user(regs: *const SavedRegisters) -> bool {
    // SAFETY: by contract.
    unsafe { read_volatile(addr_of!((*regs).pstate)) & PSR_MODE_MASK == 0 }
}

/// Whether user code runs in a mode whose frames are others: a 32-bit process.
///
/// # Safety
/// As for [`is_user`].
#[inline(always)]
pub unsafe fn is_foreign(regs: *const SavedRegisters) -> bool {
    // SAFETY: by contract.
    unsafe { read_volatile(addr_of!((*regs).pstate)) & PSR_MODE32_BIT != 0 }
}

/// Registers of an event, whose context programs may read only in whole words.
///
/// # Safety
/// As for [`is_user`].
#[inline(always)]
pub unsafe fn of_event(regs: *const SavedRegisters) -> Start<Registers> {
    // SAFETY: by contract; the verifier checks each access.
    unsafe {
        Start {
            pc: code_address(read_volatile(addr_of!((*regs).pc))),
            sp: read_volatile(addr_of!((*regs).sp)),
            fp: read_volatile(addr_of!((*regs).regs[29])),
            registers: Registers {
                lr: read_volatile(addr_of!((*regs).regs[30])),
                x12: read_volatile(addr_of!((*regs).regs[12])),
                x19: read_volatile(addr_of!((*regs).regs[19])),
                x22: read_volatile(addr_of!((*regs).regs[22])),
            },
        }
    }
}

/// Registers with which a task entered the kernel.
#[inline(always)]
pub fn of_task(regs: &SavedRegisters) -> Start<Registers> {
    let x = &regs.regs;
    let registers = Registers { lr: x[30], x12: x[12], x19: x[19], x22: x[22] };
    Start { pc: code_address(regs.pc), sp: regs.sp, fp: x[29], registers }
}

/// Where the number of the system call is that a task is in: x8. Of a task that an interrupt stopped it is anything.
#[inline(always)]
pub fn system_call(regs: *const SavedRegisters) -> *const u64 {
    // Never read here.
    regs.cast::<u8>().wrapping_add(core::mem::offset_of!(SavedRegisters, regs) + 8 * 8).cast()
}

/// Where a task's stack pointer is.
#[inline(always)]
pub fn stack_pointer(regs: *const SavedRegisters) -> *const u64 {
    // Never read here.
    regs.cast::<u8>().wrapping_add(core::mem::offset_of!(SavedRegisters, sp)).cast()
}

/// Whether a system call reads from a descriptor or writes to it, by its number: read, write, readv, writev, sendto,
/// recvfrom, sendmsg, recvmsg (include/uapi/asm-generic/unistd.h).
#[inline(always)]
pub fn moves_bytes(system_call: u64) -> bool {
    matches!(system_call, 63..=66 | 206 | 207 | 211 | 212)
}
