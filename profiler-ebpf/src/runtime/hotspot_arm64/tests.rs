//! Code as HotSpot 17 writes it, at each of its instructions.

extern crate std;

use super::*;
use std::{vec, vec::Vec};

const NOP: u32 = 0xd503_201f;

/// The state at each instruction of `code`; the first `made` of them make the frame.
fn states(code: &[u32], made: usize, bytes: u64) -> Vec<FrameState> {
    let word = |from: usize| move |at: usize| code.get(from + at).copied().unwrap_or(NOP);
    (0..code.len()).map(|at| frame_state(word(at), made.saturating_sub(at) as u64, bytes, false)).collect()
}

#[test]
fn a_small_frame_is_followed_from_entry_to_return() {
    use FrameState::{Absent, Reserved, Whole};
    let code = [
        NOP,
        0xd140_53e9, // sub x9, sp, #0x14, lsl #12
        0xf900_013f, // str xzr, [x9]
        0xd100_83ff, // sub sp, sp, #0x20
        0xa901_7bfd, // stp x29, x30, [sp, #16]
        0x1840_0048, // ldr w8, <guard>: the entry's barrier
        0xd503_39bf, // dmb ishld
        0xb940_2789, // ldr w9, [x28, #36]
        0x6b09_011f, // cmp w8, w9
        0x5400_0060, // b.eq
        0x8b01_0000, // add x0, x0, x1
        0xa941_7bfd, // ldp x29, x30, [sp, #16]
        0x9100_83ff, // add sp, sp, #0x20
        0xf941_a388, // ldr x8, [x28, #832]
        0xeb28_63ff, // cmp sp, x8
        0x5400_0048, // b.hi
        RET,
    ];
    let mut want = vec![Absent; 4];
    want.push(Reserved);
    want.extend([Whole; 7]);
    want.push(Reserved);
    want.extend([Absent; 4]);
    assert_eq!(states(&code, 10, 32), want);
}

#[test]
fn a_large_frame_has_its_record_pushed_first() {
    use FrameState::{Absent, Record, Whole};
    let large = [
        NOP,
        PUSH_RECORD,
        0xd108_03ff, // sub sp, sp, #0x200
        0x9108_03ff, // add sp, sp, #0x200
        POP_RECORD,
        RET,
    ];
    assert_eq!(states(&large, 3, 0x210), [Absent, Absent, Record, Whole, Record, Absent]);
    let page = [
        PUSH_RECORD,
        0xd282_0008, // mov x8, #0x1000
        SUB_SP_X8,
        0xd282_0008,
        ADD_SP_X8,
        POP_RECORD,
        RET,
    ];
    assert_eq!(states(&page, 3, 0x1010), [Absent, Record, Record, Whole, Whole, Record, Absent]);
}

#[test]
fn a_wrapper_of_a_native_method_goes_by_its_frame_pointer() {
    use FrameState::{Absent, Record, Whole};
    let code = [
        PUSH_RECORD,
        SET_FP,
        0xd101_43ff, // sub sp, sp, #0x50
        0xd63f_0100, // blr x8
        RESET_SP,
        POP_RECORD,
        0xf940_0788, // ldr x8, [x28, #8]
        0xb500_0048, // cbnz x8
        RET,
    ];
    assert_eq!(
        states(&code, 3, 0x60),
        [Absent, Record, Record, Whole, Whole, Record, Absent, Absent, Absent]
    );
}

#[test]
fn what_jumps_away_tells_nothing() {
    let state = |word: u32, jumps| frame_state(|at| if at == 0 { word } else { RET }, 0, 32, jumps);
    // b, bl, blr x8, br x8, b.eq.
    let words = [0x1400_0002, 0x9400_0002, 0xd63f_0100, 0xd61f_0100];
    assert!(words.into_iter().all(|word| state(word, false) == FrameState::Whole));
    assert_eq!(state(0xd61f_0100, true), FrameState::Absent);
    assert_eq!(state(0x5400_0040, false), FrameState::Absent);
    // A pop of something else.
    assert_eq!(state(0x9100_43ff, false), FrameState::Whole);
}

/// generate_fixed_frame of JDK 17, and of 21, where more is done between x29 and the sender's sp.
#[test]
fn an_interpreted_frame_is_made_in_steps() {
    let entry_at = |code: &[u32], from: usize| entry(|at| code.get(from + at).copied().unwrap_or(BR_X9));
    let jdk_17 = [
        0xf940_0583, // ldr x3, [x12, #8]
        0xa9ba_5bf4, // stp x20, x22, [sp, #-96]!
        0xa903_33e8, // stp x8, x12, [sp, #48]
        0xa905_7bfd, // stp x29, x30, [sp, #80]
        0x9101_43fd, // add x29, sp, #80
        0xa904_37ff, // stp xzr, x13, [sp, #64]
        0xcb28_4fe8, // sub x8, sp, w8, uxtw #3
    ];
    let x13 = SenderRegister::X13;
    let states: Vec<Entry> = (0..jdk_17.len()).map(|from| entry_at(&jdk_17, from)).collect();
    let mut want = vec![Entry::Linked(x13); 5];
    want.extend([Entry::Recorded(x13), Entry::Made]);
    assert_eq!(states, want);
    let jdk_21 = [0xa905_7bfd, 0x9101_43fd, 0xf940_0588, 0xa902_6be8, 0xa904_4fff, NOP];
    let x19 = SenderRegister::X19;
    let states: Vec<Entry> = (0..jdk_21.len()).map(|from| entry_at(&jdk_21, from)).collect();
    let (linked, recorded) = (Entry::Linked(x19), Entry::Recorded(x19));
    assert_eq!(states, [linked, linked, recorded, recorded, recorded, Entry::Made]);
}

#[test]
fn a_bytecode_is_no_entry_whatever_lies_behind_it() {
    // The next method's entry comes behind the jump to the next bytecode, or behind a return.
    for end in [BR_X9, RET] {
        let code = [NOP, end, 0xa905_7bfd, 0x9101_43fd, 0xa904_37ff];
        assert_eq!(entry(|at| code.get(at).copied().unwrap_or(NOP)), Entry::Made);
    }
    assert_eq!(entry(|_| NOP), Entry::Made);
    // and sp, x20, #-16; ret.
    assert_eq!(entry(|at| [ALIGNED_SENDER_SP, RET][at.min(1)]), Entry::Left);
    assert_eq!(entry(|_| RET), Entry::Left);
}
