//! What the processor, its calling convention and its Linux fix for a walk.
//!
//! A folder for each architecture, all with the same names; `cfg(emberscope_arch)` of build.rs picks one. The programs
//! and the daemon ask `arch` and name no register. No map and no global is used here: words in, numbers out. What a
//! runtime does on an architecture (HotSpot's prologues, slots of its frames) is in that runtime's room, in files of the
//! architecture's name.
//!
//! Each gives: [`NAME`], [`USER_END`], [`LINK_REGISTER`], [`code_address`], [`frameless`], [`Registers`],
//! [`SIGNAL_BELOW`], [`SIGNAL_BYTES`] and [`interrupted`]; for the programs also `SavedRegisters`, `Taken`, `is_user`, `is_foreign`, `of_event`,
//! `of_task`, `system_call`, `stack_pointer` and `moves_bytes`.

// Its decoding of instructions and words is tested wherever the tests run.
#[cfg_attr(all(test, not(emberscope_arch = "aarch64")), allow(dead_code, unused_imports))]
#[cfg(any(test, emberscope_arch = "aarch64"))]
mod aarch64;
#[cfg(emberscope_arch = "x86_64")]
mod x86_64;

#[cfg(emberscope_arch = "aarch64")]
pub use aarch64::*;
#[cfg(emberscope_arch = "x86_64")]
pub use x86_64::*;

/// Where a thread's user code stands; `R` are the registers of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start<R = Registers> {
    /// The next instruction.
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
    /// The register that the calling convention has for the frame pointer, whatever it holds.
    pub fp: u64,
    /// The others that a walk needs.
    pub registers: R,
}
