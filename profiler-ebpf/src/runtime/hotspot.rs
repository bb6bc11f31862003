//! HotSpot's frames as the walker sends them, and what it must know of a JVM, in a map keyed by pid.
//!
//! Read from the JVM's own vmStructs (`src/hotspot/share/runtime/vmStructs.cpp`) by the daemon. Offsets are
//! bytes from the start of the object they belong to; [`Field::NONE`] where this JDK has no such field. The walker
//! trusts none of them: every index that comes from here is bounded where it is used.
#![allow(unsafe_code)]

use super::{BufferLayout, LockLayout, RuntimeHead, RuntimeId};

/// Kind of a frame of [`RuntimeId::HOTSPOT`].
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JavaFrameTag {
    /// `value` is an instruction address in an nmethod (compiled Java, or the wrapper of a native method); `cookie` is
    /// its compile id, which no other nmethod of that JVM has.
    Compiled = 1,
    /// `value` is the `Method*` of an interpreted frame; `cookie` the low half of its bytecode pointer, 0 where that
    /// is not known or the method is native.
    Interpreted = 2,
    /// `value` is an instruction address in code that HotSpot made and that is no method: interpreter, stubs,
    /// adapters.
    Stub = 3,
    /// No code: `value` is the `Klass*` of what a thread allocated, innermost in a stack of
    /// [`crate::SampleKindTag::Alloc`]; or of the object whose lock it waits for, at the leaf's side of its frames in a stack
    /// of [`crate::SampleKindTag::OffCpu`].
    Class = 4,
    /// No code: the thread that holds the lock of the [`Self::Class`] before it. `value` is its `JavaThread*`; `cookie` has the
    /// thread's id ([`super::OWNER_ID_BITS`]), as another may soon be at the
    /// same address, and changes every [`crate::EPOCH_NS`], as a thread's name does not stay.
    Owner = 5,
    /// No code: the same, where the JVM itself has not looked yet who holds the lock (from JDK 22 on a thread that takes a lock for which
    /// nobody waits notes it in its own lock stack alone). `value` is the `ObjectMonitor*`, `cookie` as above.
    OwnerUnknown = 6,
    /// No code: the same, where the JVM has the owner otherwise. `value` is an address in the thread's stack (a lock that was taken on
    /// the stack: JDK 8 to 21), or the thread's number in the JVM (from 24 on); `cookie` is as above, but has a hash of the
    /// monitor for the id: the next thread to have a stack there rarely holds the same one.
    OwnerElsewhere = 7,
}

impl JavaFrameTag {
    /// The kind with this number, if there is one.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Compiled),
            2 => Some(Self::Interpreted),
            3 => Some(Self::Stub),
            4 => Some(Self::Class),
            5 => Some(Self::Owner),
            6 => Some(Self::OwnerUnknown),
            7 => Some(Self::OwnerElsewhere),
            _ => None,
        }
    }

    /// Whether it is of no method or class, which a JVM may unload.
    pub const fn outlives_methods(self) -> bool {
        matches!(self, Self::Stub | Self::Owner | Self::OwnerUnknown | Self::OwnerElsewhere)
    }

    /// In the second word of a [`crate::UserFrame`], with the runtime.
    pub const fn word(self) -> u64 {
        (self as u64) << 32 | (RuntimeId::HOTSPOT.0 as u64) << 48
    }
}

/// Code heaps of one JVM, at most: three when the code cache is segmented, one when not (codeCache.cpp).
pub const MAX_CODE_HEAPS: usize = 4;

/// Bytes of a code blob's head that are read at once, at most: where all of [`JvmLayout`]'s fields lie.
pub const MAX_BLOB_HEAD: usize = 512;

/// A code heap: memory cut in segments, and a map with a byte for each, which leads back to its block's first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeHeap {
    /// First byte of the memory reserved for code; 0: no such heap.
    pub low: u64,
    /// One past the last reserved byte.
    pub high: u64,
    /// Where the segment map's first byte is.
    pub segmap: u64,
}

/// How a field of a blob is stored.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldKind {
    /// This JDK has none.
    #[default]
    None = 0,
    /// A pointer, 8 bytes.
    Pointer = 1,
    /// 4 bytes, signed.
    I32 = 2,
    /// 2 bytes, signed.
    I16 = 3,
    /// 2 bytes, unsigned.
    U16 = 4,
    /// 1 byte.
    U8 = 5,
}

/// A field of a code blob.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Bytes from the blob's start.
    pub offset: u16,
    /// A [`FieldKind`].
    pub kind: u8,
    /// What a value that is no pointer counts from, where it is a place: 0 the blob, 1 the first instruction.
    pub from_code: u8,
}

impl Field {
    /// No such field.
    pub const NONE: Self = Self { offset: 0, kind: FieldKind::None as u8, from_code: 0 };
}

/// One JVM.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JvmLayout {
    /// Lowest and one past the highest address of all code heaps.
    pub head: RuntimeHead,
    /// Its code heaps.
    pub heaps: [CodeHeap; MAX_CODE_HEAPS],
    /// `StubRoutines::_call_stub_return_address`: where Java returns to the C++ that called it.
    pub call_stub_return: u64,
    /// `StubRoutines::_cont_returnBarrier`, where a virtual thread's lowest thawed frame returns; 0: none or
    /// not known. A frame with this address stands for those that are frozen.
    pub cont_return_barrier: u64,
    /// log2 of a segment's bytes.
    pub segment_shift: u8,
    /// Bytes of the `HeapBlock` in front of each blob.
    pub block_header: u8,
    /// Of `HeapBlock::Header::_used` in it; 1 byte.
    pub block_used: u8,
    /// Words from the frame pointer to the saved bytecode pointer in an interpreted frame, negative
    /// (`frame::interpreter_frame_bcp_offset`).
    pub bcp_slot: i8,
    /// Bytes of a blob's head that hold all the fields below.
    pub head_bytes: u16,
    /// Zero.
    pub pad: u16,
    /// `CodeBlob::_name`: a C string.
    pub name: Field,
    /// `CodeBlob::_frame_size`, in words.
    pub frame_size: Field,
    /// `CodeBlob::_frame_complete_offset`, bytes from the first instruction.
    pub frame_complete: Field,
    /// First instruction.
    pub code_begin: Field,
    /// One past the last.
    pub code_end: Field,
    /// `nmethod::_compile_id`.
    pub compile_id: Field,
    /// `nmethod::_orig_pc_offset`: bytes from the stack pointer to where a deoptimised frame keeps its pc.
    pub orig_pc: Field,
    /// Where deoptimised frames return to.
    pub deopt: Field,
    /// The same for method handle calls; gone in 26.
    pub deopt_mh: Field,
    /// `nmethod::_verified_entry_point`.
    pub verified_entry: Field,
    /// Where the JVM counts the classes that it has unloaded, 8 bytes; 0: it does not.
    pub unloads: u64,
    /// Where it counts the compilations that it has finished, 8 bytes; 0: it does not.
    pub compiles: u64,
    /// The interpreter's code; both 0 until the walker has met it. The daemon leaves that to the walker.
    pub interpreter_low: u64,
    /// See `interpreter_low`.
    pub interpreter_high: u64,
    /// Where the JVM keeps `ContinuationEntry::_return_pc` (it is set with the first virtual thread), at which a
    /// carrier goes on below a mounted virtual thread; 0: none or not known.
    pub cont_entry_return: u64,
    /// How it keeps locks.
    pub locks: LockLayout,
    /// Where threads keep what they allocated.
    pub buffers: BufferLayout,
}

impl JvmLayout {
    /// As the map has it.
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        // SAFETY: integers without padding between them: their sizes add up to that of the whole, asserted below.
        unsafe { core::mem::transmute(*self) }
    }
}

const _: () = {
    let words =
        size_of::<RuntimeHead>() + size_of::<CodeHeap>() * MAX_CODE_HEAPS + 2 * 8 + 8 + 10 * 4 + 5 * 8;
    assert!(size_of::<JvmLayout>() == words + size_of::<LockLayout>() + size_of::<BufferLayout>());
    assert!(size_of::<CodeHeap>() == 24);
    assert!(size_of::<Field>() == 4);
    assert!(size_of::<JvmLayout>() == 224 + 56 + 8);
};
