//! The kernel's `user_pt_regs` of arm64, with which its `pt_regs` begins.
#![allow(unsafe_code)]

use super::{Registers, code_address};
use aya_ebpf::bindings::user_pt_regs;
use core::ptr::{addr_of, addr_of_mut, read_volatile, write_volatile};

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

/// Registers as a program has them before a walk: a copy of what the kernel saved. One by one they would take too much of the
/// program's stack.
pub struct Taken(*const SavedRegisters);

impl Taken {
    /// The next instruction.
    #[inline(always)]
    pub fn pc(&self) -> u64 {
        // SAFETY: who made it had memory for the copy, and no other writes there.
        code_address(unsafe { (*self.0).pc })
    }

    /// Puts pc, sp, x29 and the others where a walk has them.
    #[inline(always)]
    pub fn put(&self, to: [&mut u64; 3], registers: &mut Registers) {
        let [pc, sp, fp] = to;
        *pc = self.pc();
        // SAFETY: as above.
        unsafe {
            *sp = (*self.0).sp;
            *fp = (*self.0).regs[29];
            registers.lr = (*self.0).regs[30];
            registers.x12 = (*self.0).regs[12];
            registers.x13 = (*self.0).regs[13];
            registers.x19 = (*self.0).regs[19];
            registers.x22 = (*self.0).regs[22];
        }
    }
}

/// Registers of an event, whose context programs may read only in whole words: copied.
///
/// # Safety
/// As for [`is_user`]; `copy` may be written, and stays until the registers are put somewhere.
#[inline(always)]
pub unsafe fn of_event(regs: *const SavedRegisters, copy: *mut SavedRegisters) -> Taken {
    // SAFETY: by contract; the verifier checks each access.
    unsafe {
        write_volatile(addr_of_mut!((*copy).pc), read_volatile(addr_of!((*regs).pc)));
        write_volatile(addr_of_mut!((*copy).sp), read_volatile(addr_of!((*regs).sp)));
        let (from, to) = (addr_of!((*regs).regs).cast::<u64>(), addr_of_mut!((*copy).regs).cast::<u64>());
        // Each by its number: the verifier wants to know where in the context a load is.
        let one = |register: usize| write_volatile(to.add(register), read_volatile(from.add(register)));
        one(12);
        one(13);
        one(19);
        one(22);
        one(29);
        one(30);
    }
    Taken(copy)
}

/// Registers with which a task entered the kernel.
#[inline(always)]
pub fn of_task(regs: &SavedRegisters) -> Taken {
    Taken(regs)
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
