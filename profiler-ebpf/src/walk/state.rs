//! What the walk keeps from step to step, in the per-CPU scratch.
//!
//! The verifier takes what it reads from a map for any number, and so looks at one step instead of hundreds. A
//! program's stack would be too small, too.

use profiler_ebpf::MAX_BLOB_HEAD;
use profiler_ebpf::arch::Registers;

/// Words for the head of a blob: with the block's header in front, and one more, as a field's load takes eight bytes.
pub const HEAD_WORDS: usize = MAX_BLOB_HEAD / 8 + 4;

/// Bytes of code that are looked at: the prologue of a method.
pub const CODE_BYTES: usize = 64;

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
    /// What the sample counts (a `SampleKindTag`), and how much.
    pub kind: u64,
    /// See `kind`.
    pub weight: u64,
    /// User frames in `body`.
    pub frames: u64,
    /// Lowest and one past the highest address of the JVM's code; both 0: no JVM.
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
    /// As in the stack's record.
    pub unloads: u64,
    /// The thread's slot in `RECENT`.
    pub slot: u64,
    /// Its bank that the last walk wrote.
    pub bank: u64,
    /// Frames in it.
    pub count: u64,
    /// 1: the compiled ones among them may be believed.
    pub believed: u64,
    /// The next of them.
    pub cursor: u64,
    /// Frames written for the next walk.
    pub kept: u64,
    /// The interpreter's first instruction; 0: not met yet.
    pub interpreter: u64,
    /// As in the thread's slot.
    pub interpreter_len: u64,
    /// Where Java returns to the C++ that called it.
    pub entry: u64,
    /// What a virtual thread's lowest frame returns to.
    pub barrier: u64,
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
    /// Address of the blob; a `FrameKindTag` in bits 48 to 55; a [`Kind`] in bits 56 to 63.
    pub what: u64,
    /// Compile id; frame size in words in bits 32 to 47; in bits 48 to 63 where a deoptimised frame keeps its pc, in
    /// words.
    pub how: u64,
}

/// How to step.
#[repr(u64)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole frame of the size told: the return address is its last word, the saved fp the one before.
    Whole = 1,
    /// The same in the interrupted frame, which may have pushed words below.
    Body = 2,
    /// No frame: the return address is on top of the stack.
    ReturnOnTop = 3,
    /// The same, and the caller may be native.
    ReturnOnTopAny = 4,
    /// fp was pushed and nothing more.
    FpOnTop = 5,
    /// A whole frame in which fp is not saved yet.
    FpLive = 6,
    /// A deoptimised frame: the stack holds the real pc.
    Deoptimized = 7,
    /// An interpreted frame.
    Interpreted = 8,
    /// Interrupted in the interpreter.
    InterpretedLeaf = 9,
    /// The stub that C++ calls Java by: a frame by frame pointer, whose caller is native.
    Entry = 10,
    /// A stub: by frame pointer, or no frame.
    Stub = 11,
    /// An adapter between calling conventions.
    Adapter = 12,
    /// As `Whole`, of a blob that replaces frames while it has one.
    Rebuilding = 13,
}

/// What was read of a blob.
#[repr(C)]
pub struct Blob {
    /// Where it is.
    pub address: u64,
    /// First eight bytes of its name.
    pub name: u64,
    /// First instruction.
    pub begin: u64,
    /// One past the last.
    pub end: u64,
    /// Words of its frames; negative: not told.
    pub frame_size: u64,
    /// Bytes from `begin` to where the frame is whole.
    pub frame_complete: u64,
    /// See `JvmLayout`.
    pub compile_id: u64,
    /// See `JvmLayout`.
    pub orig_pc: u64,
    /// See `JvmLayout`.
    pub deopt: u64,
    /// See `JvmLayout`.
    pub deopt_mh: u64,
    /// See `JvmLayout`.
    pub verified_entry: u64,
}
