//! Tables of jumps: what compilers make of a switch.

use super::inside;
use crate::Code;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use std::collections::VecDeque;

/// Entries of one table.
const MAX_TABLE: u64 = 512;

/// Where an indirect jump leads, by the table that is read before it and the comparison that keeps the index within it.
/// None: there is none that is understood.
pub fn table(code: &Code<'_>, jump: &Instruction, before: &VecDeque<Instruction>) -> Option<Vec<u64>> {
    let compares = |i: &&Instruction| i.mnemonic() == Mnemonic::Cmp && i.op_count() == 2;
    let most = before.iter().rev().find(compares).filter(|i| i.op1_kind() != OpKind::Register)?;
    let most = matches!(
        most.op1_kind(),
        OpKind::Immediate8
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32
            | OpKind::Immediate32to64
            | OpKind::Immediate16
            | OpKind::Immediate8to16
    )
    .then(|| most.immediate(1))?;
    let count = most.checked_add(1).filter(|count| *count <= MAX_TABLE)?;
    let targets: Option<Vec<u64>> = if jump.op0_kind() == OpKind::Memory {
        // Addresses, of a program that is linked to its place.
        let absolute = jump.memory_base() == Register::None && jump.memory_index_scale() == 8;
        let at = absolute.then(|| jump.memory_displacement64())?;
        (0..count).map(|i| (code.constant)(at.wrapping_add(8 * i), 8)).collect()
    } else {
        // Distances from the table, four bytes each.
        let loads = |i: &&Instruction| i.mnemonic() == Mnemonic::Lea && i.is_ip_rel_memory_operand();
        let mut tables = before.iter().rev().filter(loads).map(Instruction::ip_rel_memory_address);
        let at = tables.find(|at| !inside(code, *at))?;
        let target = |i| {
            Some(at.wrapping_add((code.constant)(at.wrapping_add(4 * i), 4)? as u32 as i32 as i64 as u64))
        };
        (0..count).map(target).collect()
    };
    targets.filter(|targets| targets.iter().all(|target| inside(code, *target)))
}
