//! Unwind tables of native code: a program file in, rows for the kernel's walker out.
//!
//! `elf` and `image` find the unwind information in a file or in the vdso, `rules` and `row` read it, `build` compacts
//! it to a [`Table`] and `disk` keeps that; `plain` has the rows of code that has none; of what is too large `sparse` reads the parts that run; `file` does all of it for a
//! mapped file. [`Keeper`] holds which file and
//! which process has which table, in a space of words that `space` divides up, with rules that `dictionary` numbers.
//! What a target's file says is bounded at each step: bytes, entries, instructions, rows.

mod build;
mod dictionary;
mod disk;
mod elf;
mod file;
mod image;
mod keeper;
mod plain;
mod ranges;
mod row;
mod rules;
mod space;
mod sparse;
// They hold bytes and libraries of that architecture.
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
mod vdso;

pub use build::Table;
pub use disk::{Disk, MAX_BYTES as MAX_DISK_BYTES};
pub use file::{Found, Inode, Keys, Made, New, Sizes, Stamp, Wanted, make, part_of};
pub use image::Image;
pub use keeper::{Counts, Held, Keeper, Limits, Missing, Walker, WalkerError};

/// Why a file has no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The file is no ELF of 64 bits for this machine.
    #[error("it is no 64-bit little-endian ELF file for this machine")]
    NotElf,
    /// Headers point outside of the file, or a compressed section is none.
    #[error("its headers point outside of it")]
    Malformed,
    /// The file cannot be opened or read.
    #[error("reading it failed")]
    Unreadable,
    /// The file does not come in time.
    #[error("reading it takes too long")]
    Late,
    /// The file has neither .eh_frame nor .debug_frame, or nothing in them that can be read.
    #[error("it has no unwind information")]
    Nothing,
    /// Over what was asked for.
    #[error("it has much unwind information")]
    Large,
    /// More than a limit: of what, as a noun in the plural.
    #[error("its {0} are more than the limit")]
    TooMuch(&'static str),
}

/// Builds the table of an image.
///
/// # Errors
/// [`TableError::Nothing`]: the image has no code, or no entry of its unwind information can be read.
/// [`TableError::Malformed`]: its code goes on behind the last address. [`TableError::TooMuch`]: there are more pages
/// of code, functions, rows or instructions than the limits.
pub fn table_of(image: &Image) -> Result<Table, TableError> {
    match &image.plain {
        Some(code) => plain::table(image, code),
        None => build::build(image),
    }
}
