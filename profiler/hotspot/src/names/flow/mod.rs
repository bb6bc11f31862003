//! Where the instructions of compiled code lead.
//!
//! In: code. Out: its instructions, as far as they say where it goes on, and how long the call before a return address is. A
//! file for each architecture.

// Its decoding is tested wherever the tests run.
#[cfg(any(test, target_arch = "aarch64"))]
#[cfg_attr(not(target_arch = "aarch64"), allow(dead_code))]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::{call_before, steps};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{call_before, steps};

/// Bytes of the longest call of a leaf routine, on all of them.
pub const MAX_CALL: usize = 16;

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Offset of what is behind it.
    pub end: u32,
    /// How the code goes on.
    pub flow: Flow,
}

/// How code goes on behind an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// With the next one.
    Next,
    /// With the next one, or at an offset.
    Conditional(u64),
    /// At an offset.
    Jump(u64),
    /// Nobody knows where, or not at all.
    Away,
    /// With the next one, when what it calls returns.
    Call,
}
