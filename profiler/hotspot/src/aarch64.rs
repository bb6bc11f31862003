//! Where HotSpot keeps what in frames on arm64, as far as the walker is told of it; the rest is in the walker's own
//! file of this name (`profiler-ebpf/src/walk/hotspot/aarch64.rs`).

/// Words from the frame pointer to the saved bytecode pointer of an interpreted frame in JDK 8, before the mirror came into
/// the frame (frame_aarch64.hpp).
pub const BCP_SLOT_JDK8: i8 = -7;
/// The same in JDK 9 to 25.
pub const BCP_SLOT: i8 = -9;
