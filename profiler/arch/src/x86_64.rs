//! x86-64 (System V ABI, AMD64 supplement: 3.6.2 numbers the registers).
//!
//! Expressions are known by their bytes: those that compilers and linkers write (jump tables, aligned stacks, signal
//! frames).

mod code;

use super::row::based;
use super::{Arch, Cfa, Columns, Place, Row};
use profiler_ebpf::{CfaRule, FpRule, ReturnRule, UnwindRule};

/// The facts of this architecture: see [`Arch`].
pub const ARCH: Arch = Arch {
    name: "x86_64",
    machine: 62,
    columns: Columns { fp: RBP, sp: RSP, return_address: 16 },
    rule,
    signs_returns: false,
    tables: true,
    vdso: None,
    code: Some(code::rows),
    functions: Some(code::functions),
    thread_pointer: "fsbase",
};

const RBP: u16 = 6;
const RSP: u16 = 7;
/// DWARF's operation (DWARF 5, 7.7.1).
const DEREF: u8 = 0x06;
/// Of a jump table: rsp + 8 + ((rip & 15) >= N) << 3, N as in `lit0` + N. After `breg7 8`.
const PLT_HEAD: [u8; 4] = [0x80, 0x00, 0x3f, 0x1a];
const PLT_TAIL: [u8; 4] = [0x2a, 0x33, 0x24, 0x22];
const LIT0: u8 = 0x30;
/// Where a call pushes the return address, from the CFA.
const PUSHED: i64 = -8;

/// What the walker can do with a row.
fn rule(row: &Row<'_>, signal: bool) -> UnwindRule {
    let return_place = match row.return_address {
        Place::Undefined => return UnwindRule::END,
        Place::Untold | Place::AtCfa(PUSHED) => None,
        Place::Expression(expression) => Some(whole(expression)),
        _ => return UnwindRule::UNSUPPORTED,
    };
    let (cfa, cfa_offset, threshold) = match row.cfa {
        Cfa::Register(RSP, offset) => (CfaRule::Sp, offset, 0),
        Cfa::Register(RBP, offset) => (CfaRule::Fp, offset, 0),
        Cfa::Register(..) => return UnwindRule::UNSUPPORTED,
        Cfa::Expression(expression) => match computed(expression) {
            Some(found) => found,
            None => return UnwindRule::UNSUPPORTED,
        },
    };
    let Ok(cfa_offset) = i32::try_from(cfa_offset) else { return UnwindRule::UNSUPPORTED };
    let return_address = ReturnRule::BelowCfa;
    if let Some(place) = return_place {
        // rsp and rip lie side by side in a signal's frame, and the walker knows where the others do.
        let beside = place == Some((RSP, i64::from(cfa_offset) + 8));
        return if signal && cfa == CfaRule::AtSp && beside {
            UnwindRule { cfa: CfaRule::Signal, cfa_offset, fp: FpRule::Same, fp_offset: 0, return_address }
        } else {
            UnwindRule::UNSUPPORTED
        };
    }
    let (fp, fp_offset) = match row.fp {
        Place::Untold | Place::Same | Place::Undefined => (FpRule::Same, threshold),
        Place::AtCfa(offset) => (FpRule::AtCfa, offset),
        Place::Expression(expression) => match whole(expression) {
            Some((RBP, offset)) => (FpRule::AtFp, offset),
            _ => return UnwindRule::UNSUPPORTED,
        },
        Place::Other => return UnwindRule::UNSUPPORTED,
    };
    match i16::try_from(fp_offset) {
        Ok(fp_offset) if fp_offset % 8 == 0 || cfa == CfaRule::Plt => {
            UnwindRule { cfa, cfa_offset, fp, fp_offset, return_address }
        }
        _ => UnwindRule::UNSUPPORTED,
    }
}

/// `bregN offset` and nothing more.
fn whole(expression: &[u8]) -> Option<(u16, i64)> {
    let (register, offset, rest) = based(expression)?;
    rest.is_empty().then_some((register, offset))
}

/// A CFA that is an expression; the third is a jump table's threshold.
fn computed(expression: &[u8]) -> Option<(CfaRule, i64, i64)> {
    let (register, offset, rest) = based(expression)?;
    if rest == [DEREF] {
        return match register {
            RSP => Some((CfaRule::AtSp, offset, 0)),
            RBP => Some((CfaRule::AtFp, offset, 0)),
            _ => None,
        };
    }
    let literal = rest.strip_prefix(&PLT_HEAD)?.strip_suffix(&PLT_TAIL)?;
    match literal {
        [literal @ LIT0..=0x3f] if register == RSP => Some((CfaRule::Plt, offset, i64::from(literal - LIT0))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_compilers_and_linkers_are_known() {
        assert_eq!(whole(&[0x76, 0]), Some((RBP, 0)));
        assert_eq!(computed(&[0x76, 0x78, 0x06]), Some((CfaRule::AtFp, -8, 0)));
        assert_eq!(computed(&[0x77, 0xa0, 0x01, 0x06]), Some((CfaRule::AtSp, 160, 0)));
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(computed(&plt), Some((CfaRule::Plt, 8, 11)));
        assert_eq!(computed(&plt[..10]), None);
        assert_eq!(computed(&[]), None);
    }
}
