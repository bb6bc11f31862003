//! The slots of the per-CPU array `COUNTERS`, which the programs add to and the daemon sums up.
//!
//! The first [`DROP_SLOTS`] slots count losses by [`crate::DropReason`]; a [`Counter`] each follows.

/// Slots kept for the numbers of [`crate::DropReason`].
pub const DROP_SLOTS: usize = 16;

/// Slots of the array: losses, then counters, then room.
pub const COUNTER_SLOTS: usize = 32;

/// What is counted besides losses; the value is the slot.
#[repr(usize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Runs of the sampling program for CPU time, those on an idle CPU included.
    Ticks = DROP_SLOTS,
    /// Runs that found the CPU idle.
    Idle,
    /// Samples that went up.
    Samples,
    /// User frames walked, of stacks already sent too.
    UserFrames,
    /// Kernel frames taken, of stacks already sent too.
    KernelFrames,
    /// Stacks that went up.
    Stacks,
    /// Reads of user stack memory (at most a page each).
    StackReads,
    /// Names that threads were given. Names are numbered by it, so it is added to in one instruction.
    Names,
    /// Runs of the sampling programs for other kinds.
    OtherRuns,
}

const _: () = {
    assert!(crate::DropReason::COUNT <= DROP_SLOTS);
    assert!((Counter::OtherRuns as usize) < COUNTER_SLOTS);
};
