//! What a function's stack is like before an instruction, and what the instruction does to it.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use profiler_ebpf::{CfaRule, FpRule, ReturnRule, UnwindRule};

/// The largest frame.
const MAX_FRAME: i32 = 1 << 20;

/// What the stack is like before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Bytes from rsp up to the CFA, where rsp is followed.
    sp: Option<i32>,
    /// Bytes from rbp up to the CFA, while rbp is the frame's base.
    base: Option<i32>,
    /// Where the caller's rbp is, from the CFA; None: in the register.
    saved: Option<i32>,
}

impl State {
    /// Where a function begins: a call has pushed the return address.
    pub const ENTRY: Self = Self { sp: Some(8), base: None, saved: None };

    /// The row; None: the stack is not known.
    pub fn rule(self) -> Option<UnwindRule> {
        let (cfa, cfa_offset) = match (self.sp, self.base) {
            (Some(sp), _) => (CfaRule::Sp, sp),
            (None, Some(base)) => (CfaRule::Fp, base),
            (None, None) => return None,
        };
        let (fp, fp_offset) = match self.saved {
            Some(at) => (FpRule::AtCfa, i16::try_from(at).ok()?),
            None => (FpRule::Same, 0),
        };
        Some(UnwindRule { cfa, cfa_offset, fp, fp_offset, return_address: ReturnRule::BelowCfa })
    }

    /// With rsp moved down by so many bytes; None: to where no frame is.
    fn down(self, bytes: i64) -> Option<Self> {
        let sp = match self.sp {
            Some(sp) => {
                Some(i32::try_from(i64::from(sp) + bytes).ok().filter(|sp| (8..MAX_FRAME).contains(sp))?)
            }
            None => None,
        };
        Some(Self { sp, ..self })
    }

    /// The state behind an instruction that goes on to the next; None: it does to the stack what is not followed.
    pub fn behind(self, instruction: &Instruction, info: &mut InstructionInfoFactory) -> Option<State> {
        use Register::{RBP, RSP};
        let state = self;
        let (to, from) = (instruction.op0_register(), instruction.op1_register());
        let number = |operand| {
            let kind = instruction.op_kind(operand);
            let is = matches!(kind, OpKind::Immediate8to64 | OpKind::Immediate32to64);
            is.then(|| instruction.immediate(operand) as i64)
        };
        // The place of a memory operand that counts from rsp or the frame's base alone, from the CFA.
        let place = || {
            let plain = instruction.memory_index() == Register::None;
            let moved = i32::try_from(instruction.memory_displacement64() as i64).ok()?;
            match instruction.memory_base() {
                RSP if plain => moved.checked_sub(state.sp?),
                RBP if plain => moved.checked_sub(state.base?),
                _ => None,
            }
        };
        let in_memory = |operand| instruction.op_kind(operand) == OpKind::Memory;
        match instruction.mnemonic() {
            Mnemonic::Push => {
                let state = state.down(8)?;
                let saves = to == RBP && state.saved.is_none();
                Some(if saves { State { saved: Some(-state.sp?), ..state } } else { state })
            }
            Mnemonic::Pop if to == RSP => None,
            Mnemonic::Pop if to == RBP => {
                let is_there = state.saved.is_some() && state.saved == state.sp.map(|sp| -sp);
                is_there.then(|| State { base: None, saved: None, ..state }.down(-8))?
            }
            Mnemonic::Pop => state.down(-8),
            Mnemonic::Pushfq => state.down(8),
            Mnemonic::Popfq => state.down(-8),
            Mnemonic::Sub if to == RSP => match number(1) {
                Some(bytes) => state.down(bytes),
                None => Some(State { sp: None, ..state }),
            },
            Mnemonic::Add if to == RSP => state.down(-number(1)?),
            Mnemonic::And if to == RSP => Some(State { sp: None, ..state }),
            Mnemonic::Lea if to == RSP => {
                let below = place()?.checked_neg()?;
                Some(State { sp: Some(below).filter(|below| (8..MAX_FRAME).contains(below)), ..state })
            }
            Mnemonic::Mov if to == RSP && from == RBP => Some(State { sp: Some(state.base?), ..state }),
            Mnemonic::Mov if to == RBP && from == RSP => {
                state.saved?;
                Some(State { base: Some(state.sp?), ..state })
            }
            Mnemonic::Mov if in_memory(0) && from == RBP && state.saved.is_none() => {
                Some(State { saved: place(), ..state })
            }
            Mnemonic::Mov if to == RBP && in_memory(1) && state.saved.is_some() && place() == state.saved => {
                Some(State { base: None, saved: None, ..state })
            }
            Mnemonic::Leave => {
                let base = state.base.filter(|base| state.saved == Some(-base))?;
                State { sp: Some(base), base: None, saved: None }.down(-8)
            }
            _ => self.behind_other(instruction, info),
        }
    }

    /// Any other instruction: it may change rbp once that is saved, and never rsp.
    fn behind_other(self, instruction: &Instruction, info: &mut InstructionInfoFactory) -> Option<State> {
        let info = info.info(instruction);
        let writes = |register: Register| {
            info.used_registers().iter().any(|used| {
                let written = matches!(
                    used.access(),
                    OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite
                );
                written && used.register().full_register() == register
            })
        };
        if writes(Register::RSP) {
            return None;
        }
        if !writes(Register::RBP) {
            return Some(self);
        }
        self.saved.map(|_| State { base: None, ..self })
    }
}
