//! The kinds of samples, as records number them.

/// Which way a disk's request goes, or what it does (`blk_fill_rwbs`, kernel/trace/blktrace.c).
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockWay {
    /// None of the others.
    Other = 0,
    /// From the disk.
    Read = 1,
    /// To the disk.
    Write = 2,
    /// What is no more wanted.
    Discard = 3,
}

/// What a sample counts, and so the unit of its weight.
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKindTag {
    /// Time on a CPU; weight in nanoseconds.
    Cpu = 1,
    /// Faults of memory; weight in faults.
    PageFaults = 2,
    /// Time in which a thread stood still; weight in nanoseconds. Comes in [`crate::WaitRecord`]s.
    OffCpu = 3,
    /// Memory that a JVM's threads took from its heap; weight in bytes.
    Alloc = 4,
    /// Faults of memory for which something was read; weight in faults.
    MajorFaults = 5,
    /// Threads that left a CPU; weight in switches.
    Switches = 6,
    /// Events that the user named; weight in events. The record says which, by its slot.
    Event = 7,
    /// Time in which a disk's request was out; weight in nanoseconds. The record says which disk, and which way.
    BlockIo = 8,
}
