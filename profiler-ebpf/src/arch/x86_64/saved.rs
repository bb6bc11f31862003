//! The kernel's `pt_regs` of x86-64.
#![allow(unsafe_code)]

use super::{Registers, Start};
use aya_ebpf::bindings::pt_regs;
use core::ptr::{addr_of, read_volatile};

/// What the kernel saves of the registers.
pub type SavedRegisters = pt_regs;

/// Privilege level in `cs`: 3 is user mode.
const USER_RPL: u16 = 3;

/// Whether they are those of user code.
///
/// # Safety
/// `regs` may be read in whole words.
#[inline(always)]
pub unsafe fn is_user(regs: *const SavedRegisters) -> bool {
    // SAFETY: by contract.
    let cs = unsafe { read_volatile(addr_of!((*regs).cs)) };
    cs as u16 & USER_RPL == USER_RPL
}

/// Whether user code runs in a mode whose frames are others. A 32-bit process is not told apart: its stack is read as far
/// as that goes.
///
/// # Safety
/// As for [`is_user`].
#[inline(always)]
pub unsafe fn is_foreign(_: *const SavedRegisters) -> bool {
    false
}

/// Registers as a program has them before a walk.
pub type Taken = Start<Registers>;

impl Taken {
    /// The next instruction.
    #[inline(always)]
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// Puts pc, sp, fp and the others where a walk has them.
    #[inline(always)]
    pub fn put(&self, to: [&mut u64; 3], registers: &mut Registers) {
        let [pc, sp, fp] = to;
        (*pc, *sp, *fp) = (self.pc, self.sp, self.fp);
        *registers = self.registers;
    }
}

/// Registers of an event, whose context programs may read only in whole words; they are not copied.
///
/// # Safety
/// As for [`is_user`].
#[inline(always)]
pub unsafe fn of_event(regs: *const SavedRegisters, _: *mut SavedRegisters) -> Taken {
    // SAFETY: by contract; the verifier checks each access.
    unsafe {
        Start {
            pc: read_volatile(addr_of!((*regs).rip)),
            sp: read_volatile(addr_of!((*regs).rsp)),
            fp: read_volatile(addr_of!((*regs).rbp)),
            registers: Registers {
                ax: read_volatile(addr_of!((*regs).rax)),
                bx: read_volatile(addr_of!((*regs).rbx)),
                r13: read_volatile(addr_of!((*regs).r13)),
            },
        }
    }
}

/// Registers with which a task entered the kernel.
#[inline(always)]
pub fn of_task(regs: &SavedRegisters) -> Taken {
    let registers = Registers { ax: regs.rax, bx: regs.rbx, r13: regs.r13 };
    Start { pc: regs.rip, sp: regs.rsp, fp: regs.rbp, registers }
}

/// Where the number of the system call is that a task is in; of a task that an interrupt stopped it is none.
#[inline(always)]
pub fn system_call(regs: *const SavedRegisters) -> *const u64 {
    // Never read here.
    regs.cast::<u8>().wrapping_add(core::mem::offset_of!(SavedRegisters, orig_rax)).cast()
}

/// Where a task's stack pointer is.
#[inline(always)]
pub fn stack_pointer(regs: *const SavedRegisters) -> *const u64 {
    // Never read here.
    regs.cast::<u8>().wrapping_add(core::mem::offset_of!(SavedRegisters, rsp)).cast()
}

/// Whether a system call reads from a descriptor or writes to it, by its number: read, write, readv, writev, sendto,
/// recvfrom, sendmsg, recvmsg (arch/x86/entry/syscalls/syscall_64.tbl).
#[inline(always)]
pub fn moves_bytes(system_call: u64) -> bool {
    matches!(system_call, 0 | 1 | 19 | 20 | 44..=47)
}
