//! What the walk keeps from step to step, in the per-CPU scratch.
//!
//! The verifier takes what it reads from a map for any number, and so looks at one step instead of hundreds. A
//! program's stack would be too small, too.

use super::{cpython, hotspot};
use profiler_ebpf::arch::Registers;

/// The walk's state between two steps.
#[repr(C)]
pub struct Walk {
    /// Instruction of the frame that comes next.
    pub pc: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// Its frame pointer register, whatever that holds.
    pub fp: u64,
    /// 1 while `pc` is the interrupted instruction, 0 while it is a return address.
    pub leaf: u64,
    /// User address of `fetched`.
    pub base: u64,
    /// Greatest offset in `fetched` at which two words may be read.
    pub limit: u64,
    /// Hash over what was walked.
    pub hash: u64,
    /// Words used in `body`.
    pub words: u64,
    /// What the sample counts (a `SampleKindTag`), above it 16 bits of the slot of a named event and 32 of the record's
    /// `detail`; and how much.
    pub kind: u64,
    /// See `kind`.
    pub weight: u64,
    /// User frames in `body`.
    pub frames: u64,
    /// The most that there may be.
    pub most: u64,
    /// The process's runtime, a [`profiler_ebpf::RuntimeId`]; 0: none.
    pub runtime: u64,
    /// Lowest and one past the highest address of the code that the runtime steps through; both 0: none.
    pub low: u64,
    /// See `low`.
    pub high: u64,
    /// The layout's incarnation.
    pub incarnation: u64,
    /// Time, in the cache's unit.
    pub now: u64,
    /// Most bytes that the next read takes.
    pub budget: u64,
    /// Reads of user memory.
    pub reads: u64,
    /// Why it ended (a `StackEnd`).
    pub end: u64,
    /// `UserFrame::FLAG_GUESSED`, in the second word of a frame, when the next frame is a guess; else 0.
    pub guessed: u64,
    /// The runtime's, as in the stack's record.
    pub generation: u64,
    /// The thread's slot in `RECENT`.
    pub slot: u64,
    /// Its bank that the last walk wrote.
    pub bank: u64,
    /// Frames in it.
    pub count: u64,
    /// The next of them.
    pub cursor: u64,
    /// Frames written for the next walk.
    pub kept: u64,
    /// HotSpot's part.
    pub jvm: hotspot::Known,
    /// CPython's part.
    pub python: cpython::Chain,
    /// What frames are mixed with.
    pub mask: u64,
    /// Number of the thread's name.
    pub name_seq: u64,
    /// The process.
    pub pid: u64,
    /// Of the interrupted instruction.
    pub registers: Registers,
    /// The process's list of tables, as [`profiler_ebpf::ProcessTables`] has it; `ranges` 0: it has none.
    pub list: u64,
    /// See `list`.
    pub ranges: u64,
    /// See `list`.
    pub tables: u64,
    /// The range in it that was found last.
    pub range: u64,
    /// Why code had no table and was walked by frame pointers (a `StackEnd`); 0: none was.
    pub untabled: u64,
    /// 1: a mark in the code said that the frame is the first.
    pub marked: u64,
    /// Where a search is.
    pub at: u64,
    /// Kernel frames in `body`.
    pub kernel_frames: u64,
    /// When the sample was taken, nanoseconds.
    pub taken_ns: u64,
}

/// How to step from a pc to its caller, as it is found or kept in the cache.
#[repr(C)]
pub struct Rule {
    /// Whose rule it is: `rows::NATIVE`, or as the runtime has it.
    pub what: u64,
    /// The words of a native one, or as the runtime has it.
    pub how: u64,
}
