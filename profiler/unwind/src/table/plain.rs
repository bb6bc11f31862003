//! Files whose functions have no unwind information: what little there is goes before what the code itself tells
//! ([`emberscope_arch::Arch::code`]). In: a file. Out: its table.

use super::build::{Table, of_rows};
use super::{Image, TableError, rules};
use emberscope_arch::Code;
use emberscope_target::elf::{CodeImage, Headers};
use profiler_ebpf::UnwindRule;
use std::fs::File;

/// The code of a file of `size` bytes, with so many of unwind information, where its rows are read from that.
pub fn code_of(file: &File, size: u64, frames: usize) -> Option<CodeImage> {
    emberscope_arch::OWN.code?;
    CodeImage::read(&Headers::read(file, size).ok()?, file, frames as u64)
}

/// The table of an image with this code.
///
/// # Errors
/// As [`super::table_of`].
pub fn table(image: &Image, code: &CodeImage) -> Result<Table, TableError> {
    let (low, high) = image.code()?;
    let mut told = Vec::new();
    let read = rules::read(image, (low, high), |function| {
        let rows: Vec<(u64, u16)> = function.rows.to_vec();
        told.push((function.start..function.end.min(function.next), rows));
        Ok(())
    });
    let known = match read {
        Err(TableError::Nothing) => Vec::new(),
        read => read?.rules,
    };
    let of_code = OfCode::of(code);
    let mut rows = Vec::new();
    let mut at = low;
    for (function, of_function) in &told {
        of_code.between(at, function.start, &mut rows);
        rows.extend(of_function.iter().filter_map(|(at, nth)| Some((*at, *known.get(usize::from(*nth))?))));
        at = at.max(function.end);
    }
    of_code.between(at, high, &mut rows);
    of_rows(image, &rows)
}

/// Rows of code, in order.
struct OfCode(Vec<(u64, UnwindRule)>);

impl OfCode {
    fn of(code: &CodeImage) -> Self {
        let Some(rows) = emberscope_arch::OWN.code else { return Self(Vec::new()) };
        Self(rows(&Code {
            address: code.address,
            bytes: &code.code,
            entries: &code.entries,
            pointers: &code.pointers,
            constant: &|at, len| code.constant(at, len),
        }))
    }

    /// Adds what holds from one address to another.
    fn between(&self, from: u64, to: u64, rows: &mut Vec<(u64, UnwindRule)>) {
        if from >= to {
            return;
        }
        let after = self.0.partition_point(|(at, _)| *at <= from);
        let (before, rest) = self.0.split_at(after);
        rows.push((from, before.last().map_or(UnwindRule::GAP, |(_, rule)| *rule)));
        rows.extend(rest.iter().take_while(|(at, _)| *at < to));
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
