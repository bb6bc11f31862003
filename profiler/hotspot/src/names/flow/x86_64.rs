//! x86-64, decoded by iced.

use super::{Flow, MAX_CALL, Step};
use iced_x86::{Decoder, DecoderOptions, FlowControl};

/// The instructions of code whose first byte has this offset.
pub fn steps(code: &[u8], from: u64) -> impl Iterator<Item = Step> {
    Decoder::with_ip(64, code, from, DecoderOptions::NONE).into_iter().map(|instruction| {
        let flow = match instruction.flow_control() {
            FlowControl::ConditionalBranch => Flow::Conditional(instruction.near_branch_target()),
            FlowControl::UnconditionalBranch => Flow::Jump(instruction.near_branch_target()),
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => Flow::Away,
            FlowControl::Call | FlowControl::IndirectCall => Flow::Call,
            _ => Flow::Next,
        };
        Step { end: instruction.next_ip() as u32, flow }
    })
}

/// How many of these bytes, which end where a call returns, are that call's; 1 where it is of another form. C2 clears the
/// upper halves of vector registers first (`vzeroupper`), and where the routine is too far away loads its address
/// (`CallLeafDirect` and `Java_To_Runtime`, x86_64.ad, JDK 8 to 25).
pub fn call_before(bytes: &[u8; MAX_CALL]) -> u64 {
    let len = match bytes {
        // call rel32
        [.., 0xe8, _, _, _, _] => 5,
        // mov r10, imm64; call r10
        [_, _, _, 0x49, 0xba, .., 0x41, 0xff, 0xd2] => 13,
        // call r8 to r15
        [.., 0x41, 0xff, 0xd0..=0xd7] => 3,
        // call rax to rdi
        [.., 0xff, 0xd0..=0xd7] => 2,
        _ => return 1,
    };
    // vzeroupper
    let cleared = bytes.get(..MAX_CALL - len).is_some_and(|before| before.ends_with(&[0xc5, 0xf8, 0x77]));
    len as u64 + if cleared { 3 } else { 0 }
}
