//! Where HotSpot keeps what in frames on x86-64, as far as the walker is told of it; the rest is in the walker's own
//! file of this name (`profiler-ebpf/src/walk/hotspot/x86_64.rs`).

/// Words from the frame pointer to the saved bytecode pointer of an interpreted frame (frame_x86.hpp).
pub struct BcpSlots {
    /// In JDK 8: before the mirror came into the frame.
    pub jdk8: i8,
    /// In JDK 9 to 25.
    pub since_9: i8,
}

/// The slots of x86-64.
pub const BCP_SLOTS: BcpSlots = BcpSlots { jdk8: -7, since_9: -8 };
