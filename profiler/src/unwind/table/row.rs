//! What the walker can make of a row of unwind information: gimli's row in, an [`UnwindRule`] out.
//!
//! Expressions are known by their bytes: those that compilers and linkers write (jump tables, aligned stacks, signal
//! frames).

use super::rules::Bytes;
use gimli::{Register, RegisterRule, UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow};
use profiler_ebpf::{CfaRule, RbpRule, UnwindRule};

const RBP: Register = Register(6);
const RSP: Register = Register(7);
const RETURN_ADDRESS: Register = Register(16);
/// DWARF operations (DWARF 5, 7.7.1).
const DEREF: u8 = 0x06;
const BREG_RBP: u8 = 0x76;
const BREG_RSP: u8 = 0x77;
/// Of a jump table: rsp + 8 + ((rip & 15) >= N) << 3, N as in `lit0` + N. After `breg7 8`.
const PLT_HEAD: [u8; 4] = [0x80, 0x00, 0x3f, 0x1a];
const PLT_TAIL: [u8; 4] = [0x2a, 0x33, 0x24, 0x22];
const LIT0: u8 = 0x30;

/// Rows in the making: x86-64 has 17 registers that compilers tell of, and states are remembered one or two deep. gimli's
/// own storage is copied for each function and is six times as large.
pub struct Small;

impl UnwindContextStorage<usize> for Small {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = Box<[UnwindTableRow<usize, Self>; 8]>;
}

/// What the walker can do with a row.
pub fn rule<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    row: &UnwindTableRow<usize, Small>,
    signal: bool,
) -> UnwindRule {
    let bytes = |expression: &UnwindExpression<usize>| {
        expression.get(section).map(|expression| expression.0.slice()).unwrap_or_default()
    };
    let return_address = match row.register(RETURN_ADDRESS) {
        Some(RegisterRule::Undefined) => return UnwindRule::END,
        // `None`: the psABI's place.
        None | Some(RegisterRule::Offset(-8)) => None,
        Some(RegisterRule::Expression(e)) => Some(based(bytes(&e))),
        Some(_) => return UnwindRule::UNSUPPORTED,
    };
    let (cfa, cfa_offset, threshold) = match row.cfa() {
        gimli::CfaRule::RegisterAndOffset { register: RSP, offset } => (CfaRule::Rsp, *offset, 0),
        gimli::CfaRule::RegisterAndOffset { register: RBP, offset } => (CfaRule::Rbp, *offset, 0),
        gimli::CfaRule::RegisterAndOffset { .. } => return UnwindRule::UNSUPPORTED,
        gimli::CfaRule::Expression(expression) => match computed(bytes(expression)) {
            Some(found) => found,
            None => return UnwindRule::UNSUPPORTED,
        },
    };
    let Ok(cfa_offset) = i32::try_from(cfa_offset) else { return UnwindRule::UNSUPPORTED };
    if let Some(place) = return_address {
        // rsp and rip lie side by side in a signal's frame, and the walker knows where the others do.
        let beside = place == Some((BREG_RSP, i64::from(cfa_offset) + 8));
        return if signal && cfa == CfaRule::AtRsp && beside {
            UnwindRule { cfa: CfaRule::Signal, cfa_offset, rbp: RbpRule::Same, rbp_offset: 0 }
        } else {
            UnwindRule::UNSUPPORTED
        };
    }
    let (rbp, rbp_offset) = match row.register(RBP) {
        None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => (RbpRule::Same, threshold),
        Some(RegisterRule::Offset(offset)) => (RbpRule::AtCfa, offset),
        Some(RegisterRule::Expression(e)) => match based(bytes(&e)) {
            Some((BREG_RBP, offset)) => (RbpRule::AtRbp, offset),
            _ => return UnwindRule::UNSUPPORTED,
        },
        Some(_) => return UnwindRule::UNSUPPORTED,
    };
    match i16::try_from(rbp_offset) {
        Ok(rbp_offset) if rbp_offset % 8 == 0 || cfa == CfaRule::Plt => {
            UnwindRule { cfa, cfa_offset, rbp, rbp_offset }
        }
        _ => UnwindRule::UNSUPPORTED,
    }
}

/// `bregN offset` and nothing more.
fn based(expression: &[u8]) -> Option<(u8, i64)> {
    let (register, rest) = expression.split_first()?;
    let (offset, rest) = sleb(rest)?;
    rest.is_empty().then_some((*register, offset))
}

/// A CFA that is an expression; the third is a jump table's threshold.
fn computed(expression: &[u8]) -> Option<(CfaRule, i64, i64)> {
    let (register, rest) = expression.split_first()?;
    let (offset, rest) = sleb(rest)?;
    if rest == [DEREF] {
        return match *register {
            BREG_RSP => Some((CfaRule::AtRsp, offset, 0)),
            BREG_RBP => Some((CfaRule::AtRbp, offset, 0)),
            _ => None,
        };
    }
    let literal = rest.strip_prefix(&PLT_HEAD)?.strip_suffix(&PLT_TAIL)?;
    match literal {
        [literal @ LIT0..=0x3f] if *register == BREG_RSP => {
            Some((CfaRule::Plt, offset, i64::from(literal - LIT0)))
        }
        _ => None,
    }
}

/// A signed LEB128 of at most five bytes, and what follows.
fn sleb(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut value = 0i64;
    for (i, byte) in bytes.iter().enumerate().take(5) {
        value |= i64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            let unused = 64 - 7 * (i + 1);
            return Some((value << unused >> unused, bytes.get(i + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_compilers_and_linkers_are_known() {
        assert_eq!(sleb(&[0x78, 9]), Some((-8, &[9][..])));
        assert_eq!(sleb(&[0xa0, 0x01]), Some((160, &[][..])));
        assert_eq!(sleb(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]), None);
        assert_eq!(based(&[0x76, 0]), Some((BREG_RBP, 0)));
        assert_eq!(computed(&[0x76, 0x78, 0x06]), Some((CfaRule::AtRbp, -8, 0)));
        assert_eq!(computed(&[0x77, 0xa0, 0x01, 0x06]), Some((CfaRule::AtRsp, 160, 0)));
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(computed(&plt), Some((CfaRule::Plt, 8, 11)));
        assert_eq!(computed(&plt[..10]), None);
        assert_eq!(computed(&[]), None);
    }
}
