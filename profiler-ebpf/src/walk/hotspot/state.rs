//! What the walk keeps of a JVM and of the blob around a pc, in the scratch and from walk to walk.

use profiler_ebpf::{JvmLayout, MAX_BLOB_HEAD};

/// Words for the head of a blob: with the block's header in front, and one more, as a field's load takes eight bytes.
pub const HEAD_WORDS: usize = MAX_BLOB_HEAD / 8 + 4;

/// What a walk needs of a JVM at each step.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Known {
    /// The interpreter's first instruction; 0: not met yet.
    pub interpreter: u64,
    /// See [`Places`].
    pub places: Places,
    /// Where Java returns to the C++ that called it.
    pub entry: u64,
    /// What a virtual thread's lowest frame returns to.
    pub barrier: u64,
    /// 1: the compiled frames among those of the last walk may be believed.
    pub believed: u64,
}

/// Three numbers of a JVM in a word.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Places(pub u64);

impl Places {
    /// The interpreter's bytes of code, the slot of the bytecode pointer (counted from `slots::BELOW` words below the
    /// frame pointer), and where a blob has its compile id.
    #[inline(always)]
    pub fn of(jvm: &JvmLayout, bcp_slot: u64) -> Self {
        let len = jvm.interpreter_high.wrapping_sub(jvm.interpreter_low) & 0xffff_ffff;
        Self(len << 32 | u64::from(jvm.compile_id.offset) << 8 | bcp_slot)
    }

    /// Bytes of the interpreter's code.
    #[inline(always)]
    pub fn interpreter_len(self) -> u64 {
        self.0 >> 32
    }

    /// The slot of the bytecode pointer.
    #[inline(always)]
    pub fn bcp_slot(self) -> u64 {
        self.0 & 7
    }

    /// Where a blob has its compile id.
    #[inline(always)]
    pub fn id_offset(self) -> u64 {
        self.0 >> 8 & 0xffff
    }
}

/// How to step: bits 56 to 63 of a rule's `what`. In bits 48 to 55 is a `JavaFrameTag`, below the blob's address. The
/// rule's `how` has the compile id, the frame's size in words in bits 32 to 47, and in bits 48 to 63 where a deoptimised
/// frame keeps its pc, in words.
#[repr(u64)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole frame of the size told: the return address is its last word, the caller's fp the one before.
    Whole = 1,
    /// The same in the interrupted frame, which may have pushed words below.
    Body = 2,
    /// No frame: the return address is on top of the stack, or in the link register.
    ReturnOnTop = 3,
    /// The same, and the caller may be native.
    ReturnOnTopAny = 4,
    /// fp was pushed, on arm64 behind the return address, and nothing more.
    FpOnTop = 5,
    /// A whole frame in which fp is not saved yet; on arm64 the return address neither, or both are loaded again.
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
