//! What the kernel program must know of a JVM to tell how much a thread has allocated.

/// Where a thread keeps that: bytes from the start of its `JavaThread`. All zero: not known.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferLayout {
    /// `Thread::_allocated_bytes`, 8 bytes.
    pub allocated: u16,
    /// `ThreadLocalAllocBuffer::_start` of `Thread::_tlab`, a pointer.
    pub start: u16,
    /// Its `_top`: where the next object goes.
    pub top: u16,
    /// Its `_end`: where none may go any more.
    pub end: u16,
}

const _: () = assert!(size_of::<BufferLayout>() == 8);
