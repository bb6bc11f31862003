//! What program files and kernels of an architecture say in numbers of their own.
//!
//! In: a file's machine, rows of unwind information, names of the kernel's fields. Out: what the rest of the daemon
//! works with; outside of this room no register has a name or a number. A file an architecture, all of them compiled
//! and tested everywhere; [`OWN`] is this build's. What the kernel programs need is in `profiler_ebpf::arch`.

mod aarch64;
mod row;
mod x86_64;

use profiler_ebpf::UnwindRule;
use std::ops::Range;

pub use row::{Cfa, Place, Row};

/// What differs from one architecture to another.
#[derive(Clone, Copy, Debug)]
pub struct Arch {
    /// The name as Rust's targets have it: `x86_64`.
    pub name: &'static str,
    /// `e_machine` of the architecture's program files (elf.h).
    pub machine: u16,
    /// The numbers of its registers in unwind information.
    pub columns: Columns,
    /// What the walker can make of a row; the flag says that it is of a signal's frame.
    pub rule: fn(&Row<'_>, signal: bool) -> UnwindRule,
    /// Whether unwind information may tell of signed return addresses (`DW_CFA_AARCH64_negate_ra_state`).
    pub signs_returns: bool,
    /// Whether the walker goes by unwind tables here; else native code is walked by frame pointers, and by the link
    /// register where the code proves it.
    pub tables: bool,
    /// The rows of the vdso, from its code: offsets from the code's first byte, in order, from which rules hold. None: the
    /// vdso has unwind information.
    pub vdso: Option<VdsoRows>,
    /// The rows of functions that have no unwind information, from their code. None: they are walked by frame pointers.
    pub code: Option<CodeRows>,
    /// The functions that are found in code, where there is no unwind information to tell. None: none are.
    pub functions: Option<CodeFunctions>,
    /// The field of `thread_struct` that is the thread's pointer to its TLS, or begins with it.
    pub thread_pointer: &'static str,
}

/// Rows of a vdso, made from the bytes of its code.
pub type VdsoRows = fn(&[u8]) -> Vec<(u64, UnwindRule)>;

/// Rows of a file's code: addresses from which they hold, in order.
pub type CodeRows = fn(&Code<'_>) -> Vec<(u64, UnwindRule)>;

/// Where functions of a file's code begin and end, by address, apart from each other.
pub type CodeFunctions = fn(&Code<'_>) -> Vec<Range<u64>>;

/// A file's code, in the file's own address space.
pub struct Code<'a> {
    /// Address of the first byte.
    pub address: u64,
    /// The code.
    pub bytes: &'a [u8],
    /// Where functions begin, as far as the file tells.
    pub entries: &'a [u64],
    /// Where functions may begin: addresses that the file keeps.
    pub pointers: &'a [u64],
    /// A number of so many bytes, at most eight, at an address of the file's constants.
    pub constant: &'a dyn Fn(u64, usize) -> Option<u64>,
}

/// DWARF's numbers of the registers that the walker follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Number of the frame pointer.
    pub fp: u16,
    /// Number of the stack pointer.
    pub sp: u16,
    /// Number of the return address, or of the register that holds it.
    pub return_address: u16,
}

/// All architectures that are compiled in.
pub const ALL: [&Arch; 2] = [&x86_64::ARCH, &aarch64::ARCH];

/// The one that this daemon is built for.
#[cfg(target_arch = "x86_64")]
pub const OWN: &Arch = &x86_64::ARCH;
/// The one that this daemon is built for.
#[cfg(target_arch = "aarch64")]
pub const OWN: &Arch = &aarch64::ARCH;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_are_of_one_architecture() {
        assert_eq!((OWN.name, OWN.name), (std::env::consts::ARCH, profiler_ebpf::arch::NAME));
        assert!(ALL.iter().any(|arch| arch.name == OWN.name));
    }
}
