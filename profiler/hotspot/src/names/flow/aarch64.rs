//! arm64 (Arm Architecture Reference Manual for A-profile, C4.1: branches, exception generating, reserved).

use super::{Flow, MAX_CALL, Step};

/// Bytes of an instruction.
const WORD: usize = 4;

/// The instructions of code whose first byte has this offset.
pub fn steps(code: &[u8], from: u64) -> impl Iterator<Item = Step> {
    code.chunks_exact(WORD).zip((from..).step_by(WORD)).map(|(bytes, at)| {
        let word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        Step { end: (at + WORD as u64) as u32, flow: flow(word, at) }
    })
}

fn flow(word: u32, at: u64) -> Flow {
    // A number of words, of so many bits from this one on.
    let target = |from: u32, bits: u32| {
        let words = (word << (32 - from - bits)) as i32 >> (32 - bits);
        at.wrapping_add((i64::from(words) * WORD as i64) as u64)
    };
    match word >> 26 {
        // b
        0b00_0101 => return Flow::Jump(target(0, 26)),
        // bl
        0b10_0101 => return Flow::Call,
        _ => {}
    }
    match word >> 24 {
        // b.cond
        0x54 => Flow::Conditional(target(5, 19)),
        // cbz, cbnz
        0x34 | 0x35 | 0xb4 | 0xb5 => Flow::Conditional(target(5, 19)),
        // tbz, tbnz
        0x36 | 0x37 | 0xb6 | 0xb7 => Flow::Conditional(target(5, 14)),
        // blr and those that check a signature; br, ret and the like.
        0xd6 | 0xd7 if word >> 21 & 7 == 1 => Flow::Call,
        0xd6 | 0xd7 => Flow::Away,
        // brk, hlt; not svc.
        0xd4 if word >> 21 & 7 != 0 => Flow::Away,
        // udf
        0 if word >> 16 == 0 => Flow::Away,
        _ => Flow::Next,
    }
}

/// How many of these bytes, which end where a call returns, are that call's: `bl` or `blr`; 1 where it is neither.
pub fn call_before(bytes: &[u8; MAX_CALL]) -> u64 {
    let is_call = steps(bytes, 0).last().is_some_and(|step| step.flow == Flow::Call);
    if is_call { WORD as u64 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_lead_where_they_say() {
        let of = |word| flow(word, 0x100);
        // b +8; b -4; bl; blr x8; br x8; ret; brk #0; svc #0; udf.
        assert_eq!([0x1400_0002, 0x17ff_ffff].map(of), [Flow::Jump(0x108), Flow::Jump(0xfc)]);
        assert_eq!([0x9400_0002, 0xd63f_0100].map(of), [Flow::Call; 2]);
        assert_eq!([0xd61f_0100, 0xd65f_03c0, 0xd420_0000, 0].map(of), [Flow::Away; 4]);
        assert_eq!(of(0xd400_0001), Flow::Next);
        // b.ne -8; cbz x0, +12; cbnz w1, -4; tbz w2, #3, +16; tbnz x3, #40, -12.
        let branches = [0x54ff_ffc1, 0xb400_0060, 0x35ff_ffe1, 0x3618_0082, 0xb747_ffa3];
        let targets = [0xf8, 0x10c, 0xfc, 0x110, 0xf4];
        assert_eq!(branches.map(of), targets.map(Flow::Conditional));
        // add x0, x0, #1; ldp x29, x30, [sp], #16; nop.
        assert_eq!([0x9100_0400, 0xa8c1_7bfd, 0xd503_201f].map(of), [Flow::Next; 3]);
    }

    #[test]
    fn calls_are_an_instruction() {
        let mut bytes = [0; MAX_CALL];
        assert_eq!(call_before(&bytes), 1);
        bytes[12..].copy_from_slice(&0xd63f_0100_u32.to_le_bytes());
        assert_eq!(call_before(&bytes), 4);
        let ends: Vec<u32> = steps(&bytes, 64).map(|step| step.end).collect();
        assert_eq!(ends, [68, 72, 76, 80]);
        assert_eq!(steps(&bytes[..6], 0).count(), 1);
    }
}
