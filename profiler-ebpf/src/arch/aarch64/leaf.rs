//! What the interrupted function's instructions prove of x30 (Arm Architecture Reference Manual for A-profile, C6).
//!
//! In: instructions. Out: whether x30 is the return address and x29 the caller's. Between a function's call of another
//! one and its own exit x30 holds an address in the function itself; that is never taken for a caller.

/// Instructions of a function up to the interrupted one that are looked at, at most.
pub const MAX_LEAF_WORDS: u64 = 64;

const RET: u32 = 0xd65f_03c0;
const RETAA: u32 = 0xd65f_0bff;
const RETAB: u32 = 0xd65f_0fff;
const PACIASP: u32 = 0xd503_233f;
const PACIBSP: u32 = 0xd503_237f;
const AUTIASP: u32 = 0xd503_23bf;
const AUTIBSP: u32 = 0xd503_23ff;
/// Where an indirect call lands.
const BTI_C: u32 = 0xd503_245f;
const FP: u32 = 29;
const LR: u32 = 30;

/// Whether a function that has come to this instruction has no frame yet, or none any more: x30 is the return address,
/// x29 the caller's.
#[inline(always)]
pub const fn is_outside_frame(instruction: u32) -> bool {
    matches!(instruction, RET | RETAA | RETAB | PACIASP | PACIBSP | AUTIASP | AUTIBSP | BTI_C)
        // stp x29, x30, [sp, #n]!
        || instruction & 0xffc0_7fff == 0xa980_7bfd
}

/// Where a call (`bl`) at `address` leads.
#[inline(always)]
pub const fn call_target(address: u64, instruction: u32) -> Option<u64> {
    if instruction >> 26 != 0b10_0101 {
        return None;
    }
    let words = ((instruction << 6) as i32 >> 6) as i64;
    Some(address.wrapping_add((words * 4) as u64))
}

/// Whether code goes on behind this instruction with x29 and x30 as they were: it is no jump, and neither its first nor its
/// second register is one of them.
#[inline(always)]
pub const fn leaves_link_alone(instruction: u32) -> bool {
    let branches = instruction & 0x7c00_0000 == 0x1400_0000 || instruction & 0xfe00_0000 == 0xd600_0000;
    let first = instruction & 31;
    let second = instruction >> 10 & 31;
    !branches && first != FP && first != LR && second != LR
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Debian 12's libc and of its kernel's vdso.
    #[test]
    fn instructions_are_judged() {
        // stp x29, x30, [sp, #-16]! and [sp, #-208]!; stp x29, x30, [sp, #16] is a frame that has its place.
        assert!(is_outside_frame(0xa9bf_7bfd) && is_outside_frame(0xa9b3_7bfd));
        assert!(!is_outside_frame(0xa901_7bfd));
        assert!(is_outside_frame(RET) && is_outside_frame(PACIASP));
        // mov x29, sp; ldp x29, x30, [sp], #16.
        assert!(!is_outside_frame(0x9100_03fd) && !is_outside_frame(0xa8c1_7bfd));
        // bl +8; bl -4; b +8.
        assert_eq!(call_target(0x1000, 0x9400_0002), Some(0x1008));
        assert_eq!(call_target(0x1000, 0x97ff_ffff), Some(0xffc));
        assert_eq!(call_target(0x1000, 0x1400_0002), None);
        // add x0, x0, #1; subs x1, x1, #1; b.ne -8.
        assert!([0x9100_0400, 0xf100_0421, 0x54ff_ffc1].into_iter().all(leaves_link_alone));
        // stp x29, x30, [sp, #16]; str x30, [sp, #-16]!; blr x1; ret; b; mov x29, sp.
        let not = [0xa901_7bfd, 0xf81f_0ffe, 0xd63f_0020, RET, 0x1400_0002, 0x9100_03fd];
        assert!(!not.into_iter().any(leaves_link_alone));
    }
}
