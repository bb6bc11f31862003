//! What the walker can make of a row of unwind information: gimli's row in, an [`UnwindRule`] out.
//!
//! Which registers are asked for, and what their places mean, is the architecture's ([`emberscope_arch`]).

use super::rules::Bytes;
use emberscope_arch::{Arch, Cfa, Place, Row};
use gimli::{Register, RegisterRule, UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow};
use profiler_ebpf::UnwindRule;

const ARCH: &Arch = emberscope_arch::OWN;

/// Rows in the making: compilers tell of 17 registers on x86-64 and of some 20 on arm64, and states are remembered one or
/// two deep. gimli's own storage is copied for each function and is six times as large.
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
    let place = |column: u16| match row.register(Register(column)) {
        None => Place::Untold,
        Some(RegisterRule::SameValue) => Place::Same,
        Some(RegisterRule::Undefined) => Place::Undefined,
        Some(RegisterRule::Offset(offset)) => Place::AtCfa(offset),
        Some(RegisterRule::Expression(expression)) => Place::Expression(bytes(&expression)),
        Some(_) => Place::Other,
    };
    let cfa = match row.cfa() {
        gimli::CfaRule::RegisterAndOffset { register, offset } => Cfa::Register(register.0, *offset),
        gimli::CfaRule::Expression(expression) => Cfa::Expression(bytes(expression)),
    };
    let columns = ARCH.columns;
    (ARCH.rule)(&Row { cfa, fp: place(columns.fp), return_address: place(columns.return_address) }, signal)
}
