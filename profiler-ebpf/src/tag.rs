//! The kinds of samples, as records number them.

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
}
