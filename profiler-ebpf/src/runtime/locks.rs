//! What the kernel program must know of a JVM to tell which lock a thread waits for, and who holds it.
//!
//! A thread that waits for a monitor has that in `JavaThread::_current_pending_monitor` (objectMonitor.cpp, JDK 8 to 25); one
//! that waits for a lock of java.util.concurrent is parked with the lock's object in `Thread.parkBlocker`
//! (LockSupport.java), whose `exclusiveOwnerThread` is who holds it (AbstractOwnableSynchronizer.java).

/// Where a JVM keeps that. Offsets are bytes from the start of what the field belongs to. All zero: not known.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockLayout {
    /// What narrow references count from.
    pub base: u64,
    /// What narrow `Klass*` count from.
    pub class_base: u64,
    /// Where the JVM keeps the mask of ZGC's colours that make a reference stale; 0: there is none.
    pub bad_mask: u64,
    /// `JavaThread::_threadObj`; 0: nothing is told of locks.
    pub thread_object: u16,
    /// `JavaThread::_current_pending_monitor` (JDK 8 to 11: Thread's).
    pub pending_monitor: u16,
    /// The field `eetop` of a `java.lang.Thread`: its `JavaThread*`.
    pub eetop: u16,
    /// The field `parkBlocker` of a `java.lang.Thread`.
    pub park_blocker: u16,
    /// The field `exclusiveOwnerThread` of an `AbstractOwnableSynchronizer`: its only one, the first of an object.
    pub exclusive_owner: u16,
    /// `ObjectMonitor::_object`.
    pub monitor_object: u16,
    /// `ObjectMonitor::_owner`.
    pub monitor_owner: u16,
    /// `JavaThread::_osthread`.
    pub os_thread: u16,
    /// `OSThread::_thread_id`.
    pub thread_id: u16,
    /// The word of an object that tells its class.
    pub class_word: u16,
    /// A [`ClassWordKind`].
    pub class_kind: u8,
    /// Of narrow `Klass*`, bits; below 32.
    pub class_shift: u8,
    /// Bits below the narrow `Klass*` in a mark; below 64.
    pub class_from: u8,
    /// 1: references in the heap have 4 bytes.
    pub narrow: u8,
    /// Of narrow references, bits; below 32.
    pub shift: u8,
    /// 1: references in the heap, and those to it, are those of generational ZGC.
    pub coloured: u8,
    /// 1: `_threadObj` and `_object` are handles: pointers to the reference (JDK 16 on).
    pub by_handle: u8,
    /// Zero.
    pub pad: [u8; 5],
}

/// Of the `cookie` of a frame for a lock's owner, the bits that are the thread's id as the JVM has it; 0: not read. The kernel has
/// no more of them (`PID_MAX_LIMIT`, include/linux/threads.h). The others count epochs.
pub const OWNER_ID_BITS: u32 = 22;

/// How an object tells its class.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassWordKind {
    /// The word is the `Klass*`.
    Pointer = 0,
    /// Its lower half is, narrow.
    Narrow = 1,
    /// The upper bits of the mark are, narrow (compact headers).
    InMark = 2,
}

const _: () = assert!(size_of::<LockLayout>() == 56);
