//! What HotSpot's instructions on arm64 say of the frame of a thread that was interrupted among them.
//!
//! In: the instructions from the interrupted one on. Out: how much of the frame is there. Code that falls through to a
//! return without unmaking a frame has none any more, code that falls through to what makes one has none yet: branches that
//! are conditional may be passed, no other ones.
//!
//! Facts (macroAssembler_aarch64.cpp, build_frame and remove_frame; aarch64.ad, MachPrologNode and MachEpilogNode;
//! sharedRuntime_aarch64.cpp, generate_native_wrapper; JDK 8 to 25): a frame below 528 bytes is made by
//! `sub sp,sp,#S`, `stp x29,x30,[sp,#S-16]`, and unmade by `ldp x29,x30,[sp,#S-16]`, `add sp,sp,#S`; a larger one, and that of
//! a native method's wrapper, by `stp x29,x30,[sp,#-16]!`, `sub sp,sp,#S-16` (or a register), and `add`, or `mov sp,x29`,
//! before `ldp x29,x30,[sp],#16`. A poll comes before the return.

/// Instructions that are looked at of a method or a stub: bytes of them are read at once.
pub const FRAME_WORDS: usize = 16;
/// The same of where an interpreted method is entered: some 50 until its frame has its sender.
pub const ENTRY_WORDS: usize = 64;

/// `ret`.
pub const RET: u32 = 0xd65f_03c0;
/// `stp x29, x30, [sp, #-16]!`, as stubs begin.
pub const PUSH_RECORD: u32 = 0xa9bf_7bfd;
/// `mov x29, sp`, with which they go on.
pub const SET_FP: u32 = 0x9100_03fd;
/// `mov sp, x29`.
const RESET_SP: u32 = 0x9100_03bf;
/// `ldp x29, x30, [sp], #16`.
const POP_RECORD: u32 = 0xa8c1_7bfd;
/// `sub sp, sp, x8` and `add sp, sp, x8`, for frames of a page.
const SUB_SP_X8: u32 = 0xcb28_63ff;
const ADD_SP_X8: u32 = 0x8b28_63ff;
/// `br x9`: the interpreter goes on with the next bytecode.
const BR_X9: u32 = 0xd61f_0120;
/// `and sp, x20, #-16` and `mov sp, x20`: the interpreter's last instruction before a return.
const ALIGNED_SENDER_SP: u32 = 0x927c_ee9f;
const SENDER_SP: u32 = 0x9100_029f;

/// A pair of registers that is loaded or stored at sp and a number, whatever that is.
const PAIR_MASK: u32 = 0xffc0_7fff;
/// `stp x29, x30, [sp, #n]`, the same with `!`, and `ldp`.
const SAVE_RECORD: u32 = 0xa900_7bfd;
const SAVE_RECORD_BELOW: u32 = 0xa980_7bfd;
const LOAD_RECORD: u32 = 0xa940_7bfd;
/// `stp xzr, x13, [sp, #n]` and `stp xzr, x19, [sp, #n]`: the interpreter saves the sender's sp.
const SAVE_X13: u32 = 0xa900_37ff;
const SAVE_X19: u32 = 0xa900_4fff;

/// `add sp, sp, #n`, `sub sp, sp, #n` and `add x29, sp, #n`, n below 4096.
const NUMBER_MASK: u32 = 0xffc0_03ff;
const ADD_SP: u32 = 0x9100_03ff;
const SUB_SP: u32 = 0xd100_03ff;
const ADD_FP_SP: u32 = 0x9100_03fd;

/// The call of a leaf routine of the JVM in JDK 8 to 20, as a word of eight bytes: `stp xzr, x9, [sp, #-16]!`, which leaves the
/// return address to the JVM, and `blr x8` (aarch64.ad, aarch64_enc_java_to_runtime).
pub const LEAF_CALL: u64 = 0xd63f_0100_a9bf_27ff;
/// Bytes that it pushes.
pub const LEAF_CALL_BYTES: u64 = 16;

/// How much of a frame is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameState {
    /// All, or it is not told: the frame record ends the frame.
    Whole,
    /// Nothing: x30, x29 and sp are as the caller had them.
    Absent,
    /// Its place: x30 and x29 are the caller's, sp is lower by the frame.
    Reserved,
    /// The frame record, on top of the stack.
    Record,
}

/// What an interrupted method or stub with frames of `bytes` has of one. The first `making` words may belong to the code that makes
/// it; `jumps`: code that ends with a jump, and makes no other one.
#[inline(always)]
pub fn frame_state(word: impl Fn(usize) -> u32, making: u64, bytes: u64, jumps: bool) -> FrameState {
    for at in 0..FRAME_WORDS {
        let word = word(at);
        if (at as u64) < making {
            if word & PAIR_MASK == SAVE_RECORD_BELOW {
                return FrameState::Absent;
            }
            if word & NUMBER_MASK == SUB_SP {
                return if number(word) == bytes {
                    FrameState::Absent
                } else if number(word) + 16 == bytes {
                    FrameState::Record
                } else {
                    FrameState::Whole
                };
            }
            if word == SUB_SP_X8 {
                return FrameState::Record;
            }
            if at == 0 && word & PAIR_MASK == SAVE_RECORD {
                return FrameState::Reserved;
            }
        }
        if word == RET || jumps && word & 0xffff_fc1f == 0xd61f_0000 {
            return FrameState::Absent;
        }
        if word & NUMBER_MASK == ADD_SP {
            return if number(word) == bytes { FrameState::Reserved } else { FrameState::Whole };
        }
        if word == POP_RECORD {
            return FrameState::Record;
        }
        if word & PAIR_MASK == LOAD_RECORD || word == RESET_SP || word == ADD_SP_X8 || goes_away(word) {
            return FrameState::Whole;
        }
    }
    FrameState::Whole
}

/// The number of an addition or a subtraction.
#[inline(always)]
const fn number(word: u32) -> u64 {
    (word >> 10 & 0xfff) as u64
}

/// `b`, `bl`, `br`, `blr` and the like.
#[inline(always)]
const fn goes_away(word: u32) -> bool {
    word & 0x7c00_0000 == 0x1400_0000 || word & 0xfe00_0000 == 0xd600_0000
}

/// How far the interpreter is with a method's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It is made, or this is not told.
    Made,
    /// It is gone, and the next instruction but one at most returns.
    Left,
    /// x30 and x29 are the caller's, whose sp is in a register.
    Linked(SenderRegister),
    /// The frame record is at x29; the caller's sp is in a register.
    Recorded(SenderRegister),
}

/// Where the interpreter has the caller's sp until it is in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderRegister {
    /// Up to JDK 19.
    X13,
    /// From JDK 20 on.
    X19,
}

/// How far an interrupted method is with its frame, by the interpreter's code (templateInterpreterGenerator_aarch64.cpp,
/// generate_fixed_frame: the frame record is saved, x29 set, and then the sender's sp saved; interp_masm_aarch64.cpp,
/// remove_activation). The jump that this passes is to what throws a StackOverflowError.
#[inline(always)]
pub fn entry(word: impl Fn(usize) -> u32) -> Entry {
    let first = word(0);
    if first == RET || (first == ALIGNED_SENDER_SP || first == SENDER_SP) && word(1) == RET {
        return Entry::Left;
    }
    let mut recorded = first & NUMBER_MASK != ADD_FP_SP;
    for at in 0..ENTRY_WORDS {
        let word = word(at);
        if word & PAIR_MASK == SAVE_RECORD {
            recorded = false;
        }
        let register = match word & PAIR_MASK {
            SAVE_X13 => SenderRegister::X13,
            SAVE_X19 => SenderRegister::X19,
            _ if word == RET || word == BR_X9 => break,
            _ => continue,
        };
        return if recorded { Entry::Recorded(register) } else { Entry::Linked(register) };
    }
    Entry::Made
}

#[cfg(test)]
mod tests;
