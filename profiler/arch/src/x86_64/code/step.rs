//! One instruction further on a way through a function.

use super::jumps::table;
use super::stack::State;
use super::{Reader, inside};
use iced_x86::{FlowControl, Instruction, Mnemonic};
use std::collections::VecDeque;

/// What becomes of a way at an instruction.
#[derive(Default)]
pub struct Next {
    /// The state behind it; None: the way ends.
    pub on: Option<State>,
    /// Where it may jump to, in the state before it.
    pub jumps: Vec<u64>,
    /// It leaves the function as it must, or as it must not.
    pub leaves: Option<bool>,
    /// It does to the stack what is not followed, or what no function does.
    pub strays: bool,
    /// A function that it calls.
    pub calls: Option<u64>,
    /// Code whose address it loads.
    pub loads: Option<u64>,
}

impl Reader<'_> {
    /// What becomes of a way with this state at an instruction; `before` are those that led there.
    pub fn next(&mut self, state: State, instruction: &Instruction, before: &VecDeque<Instruction>) -> Next {
        let target = |instruction: &Instruction| {
            let target = instruction.near_branch_target();
            inside(self.code, target).then_some(target)
        };
        let left = Some(state == State::ENTRY);
        match instruction.flow_control() {
            FlowControl::Return => Next { leaves: left, ..Next::default() },
            FlowControl::UnconditionalBranch => match target(instruction) {
                Some(target) => Next { jumps: vec![target], ..Next::default() },
                None => Next { leaves: left, ..Next::default() },
            },
            FlowControl::ConditionalBranch => {
                let jumps = target(instruction).into_iter().collect();
                Next { on: Some(state), jumps, ..Next::default() }
            }
            FlowControl::IndirectBranch => match table(self.code, instruction, before) {
                Some(jumps) => Next { jumps, ..Next::default() },
                // Out of the function, if rsp is where it was; else what is reached by it alone has no rows.
                None => Next { leaves: Some(true), ..Next::default() },
            },
            FlowControl::Call => {
                let calls = target(instruction);
                let on = calls.is_none_or(|called| !self.endless.contains(&called)).then_some(state);
                Next { on, calls, ..Next::default() }
            }
            FlowControl::IndirectCall => Next { on: Some(state), ..Next::default() },
            FlowControl::Exception | FlowControl::Interrupt => Next::default(),
            FlowControl::XbeginXabortXend => Next::default(),
            FlowControl::Next => {
                let loads = instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand();
                let loads = loads.then(|| instruction.ip_rel_memory_address());
                let on = state.behind(instruction, &mut self.info);
                Next {
                    on,
                    strays: on.is_none(),
                    loads: loads.filter(|at| inside(self.code, *at)),
                    ..Next::default()
                }
            }
        }
    }
}
