//! arm64 (DWARF for the Arm 64-bit Architecture, 4.1 numbers the registers).
//!
//! Of Debian 12's libjvm, libc and python every row but some hundred of libc has x29 and x30 in their registers or
//! side by side in the frame, and counts from sp; none has an expression. The vdso has no unwind information (the kernel's
//! arch/arm64/kernel/vdso/vdso.lds.S leaves it out): its rows are told by its code.

use super::{Arch, Cfa, Columns, Place, Row};
use profiler_ebpf::{CfaRule, FpRule, ReturnRule, UnwindRule};

/// The facts of this architecture: see [`Arch`].
pub const ARCH: Arch = Arch {
    name: "aarch64",
    machine: 183,
    columns: Columns { fp: X29, sp: SP, return_address: 30 },
    rule,
    signs_returns: true,
    tables: true,
    vdso: Some(vdso),
    // Compilers keep frame records unless they are told otherwise.
    code: None,
    functions: None,
    // `uw` begins with `tp_value` (arch/arm64/include/asm/processor.h). It is what the thread had when it was last
    // switched to or made: the main thread, which sets it later, is told by `start_stack`.
    thread_pointer: "uw",
};

const X29: u16 = 29;
const SP: u16 = 31;
/// From the place of x29 in a frame record to that of x30.
const ABOVE: i64 = 8;

/// The vdso's functions, which leave the return address in x30, and the caller's registers where they are.
const LEAF: UnwindRule = UnwindRule {
    cfa: CfaRule::Sp,
    cfa_offset: 0,
    fp: FpRule::Same,
    fp_offset: 0,
    return_address: ReturnRule::Link,
};
/// Where a signal's handler returns to: sp is kept 560 bytes above. The handler's frame ends with a `siginfo` of 128 bytes,
/// the context with the registers begins 176 bytes behind that, and 31 of them come before sp (`struct rt_sigframe` of
/// arch/arm64/kernel/signal.c, `struct ucontext` and `struct sigcontext` of its uapi headers).
const SIGNAL: UnwindRule = UnwindRule { cfa: CfaRule::Signal, cfa_offset: 560, ..LEAF };
/// `__kernel_rt_sigreturn`: `mov x8, #139` and `svc #0` (arch/arm64/kernel/vdso/sigreturn.S).
const SIGRETURN: [u32; 2] = [0xd280_1168, 0xd400_0001];
const RET: u32 = 0xd65f_03c0;
/// Bytes of an instruction.
const WORD: usize = 4;

/// `stp x29, x30, [sp, #n]!`.
const fn makes_record(instruction: u32) -> bool {
    instruction & 0xffc0_7fff == 0xa980_7bfd
}

/// The rows of the vdso's code, by offset. Behind a frame record there is no rule up to the function's return: the record
/// leads on. A return address is looked up in front of it, so that the handler's counts from the instruction before, which
/// is a `nop` for that reason.
fn vdso(code: &[u8]) -> Vec<(u64, UnwindRule)> {
    let words: Vec<u32> = code
        .chunks_exact(WORD)
        .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)))
        .collect();
    let mut rows = vec![(0, LEAF)];
    let mut put = |at: usize, rule| match rows.last() {
        Some((_, last)) if *last == rule => {}
        _ => rows.push(((at * WORD) as u64, rule)),
    };
    for (at, word) in words.iter().enumerate() {
        if makes_record(*word) {
            put(at + 1, UnwindRule::GAP);
        } else if *word == RET {
            put(at + 1, LEAF);
        } else if words.get(at + 1..).is_some_and(|behind| behind.starts_with(&SIGRETURN)) {
            put(at, SIGNAL);
        } else if at > 0 && words.get(at - 1..=at) == Some(&SIGRETURN) {
            put(at + 1, LEAF);
        }
    }
    rows
}

/// What the walker can do with a row. Those of signals' frames are the vdso's.
fn rule(row: &Row<'_>, _signal: bool) -> UnwindRule {
    if row.return_address == Place::Undefined {
        return UnwindRule::END;
    }
    let (cfa, cfa_offset) = match row.cfa {
        Cfa::Register(SP, offset) => (CfaRule::Sp, offset),
        Cfa::Register(X29, offset) => (CfaRule::Fp, offset),
        _ => return UnwindRule::UNSUPPORTED,
    };
    let saved = match row.fp {
        Place::Untold | Place::Same => None,
        Place::AtCfa(offset) => Some(offset),
        _ => return UnwindRule::UNSUPPORTED,
    };
    let (return_address, fp_offset) = match (row.return_address, saved) {
        (Place::Untold | Place::Same, offset) => (ReturnRule::Link, offset.unwrap_or(0)),
        (Place::AtCfa(at), Some(offset)) if at == offset.saturating_add(ABOVE) => {
            (ReturnRule::AboveFp, offset)
        }
        (Place::AtCfa(at), None) => (ReturnRule::AtCfa, at),
        _ => return UnwindRule::UNSUPPORTED,
    };
    let fp = if saved.is_some() { FpRule::AtCfa } else { FpRule::Same };
    match (i32::try_from(cfa_offset), i16::try_from(fp_offset)) {
        (Ok(cfa_offset), Ok(fp_offset)) if fp_offset % 8 == 0 => {
            UnwindRule { cfa, cfa_offset, fp, fp_offset, return_address }
        }
        _ => UnwindRule::UNSUPPORTED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_compilers_are_rules() {
        let of = |cfa, fp, return_address| rule(&Row { cfa, fp, return_address }, false);
        let here = |offset| Cfa::Register(SP, offset);
        let made = |cfa_offset, fp, fp_offset, return_address| UnwindRule {
            cfa: CfaRule::Sp,
            cfa_offset,
            fp,
            fp_offset,
            return_address,
        };
        // At a function's entry; with its frame record; with x30 alone.
        assert_eq!(of(here(0), Place::Untold, Place::Untold), made(0, FpRule::Same, 0, ReturnRule::Link));
        assert_eq!(
            of(here(32), Place::AtCfa(-32), Place::AtCfa(-24)),
            made(32, FpRule::AtCfa, -32, ReturnRule::AboveFp)
        );
        assert_eq!(
            of(here(16), Place::Same, Place::AtCfa(-16)),
            made(16, FpRule::Same, -16, ReturnRule::AtCfa)
        );
        assert_eq!(of(Cfa::Register(X29, 48), Place::AtCfa(-48), Place::AtCfa(-40)).cfa, CfaRule::Fp);
        assert_eq!(of(here(0), Place::Untold, Place::Undefined), UnwindRule::END);
        // In x15; apart from each other; from x0.
        for odd in [
            of(here(0), Place::Untold, Place::Other),
            of(here(32), Place::AtCfa(-32), Place::AtCfa(-16)),
            of(Cfa::Register(0, 16), Place::Untold, Place::Untold),
            of(Cfa::Expression(&[0x8f, 0]), Place::Untold, Place::Untold),
        ] {
            assert_eq!(odd, UnwindRule::UNSUPPORTED);
        }
    }

    #[test]
    fn the_vdsos_rows_are_told_by_its_code() {
        // A leaf and its return; a function with a record; a nop and the way back from a handler; what lies behind.
        let words = [
            0xd503_233f,
            RET,
            0xa9be_7bfd,
            0x9100_03fd,
            0xa8c2_7bfd,
            RET,
            0xd503_201f,
            SIGRETURN[0],
            SIGRETURN[1],
            0,
        ];
        let code: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        assert_eq!(vdso(&code), [(0, LEAF), (12, UnwindRule::GAP), (24, LEAF), (24, SIGNAL), (36, LEAF)]);
        assert_eq!(vdso(&[]), [(0, LEAF)]);
    }
}
