//! The code of the eval loop: `_PyEval_EvalFrameDefault`, and the part of it that the compiler put elsewhere.
//!
//! In: an interpreter's file. Out: up to [`MAX_EVAL_RANGES`] ranges of it, as linked. Where .symtab names the second
//! part (`.cold`) that is it. Where it was stripped, the direct jumps that leave the main part tell: in Debian's builds of
//! 3.11, 3.13 and 3.14 all of them lead into the middle of one entry of .eh_frame_hdr, which is that part; no such jump,
//! no such part. A jump to an entry's start is a call at the end of a function.

use super::problem::PythonProblem;
use emberscope_target::elf::{Headers, Segment, Symbol, file_offset};
use profiler_ebpf::MAX_EVAL_RANGES;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Largest main part that is read; those seen have 1 to 82 KB.
const MAX_CODE: u64 = 1 << 20;
/// Largest index that is read: an entry has eight bytes, and libpython some 8,000.
const MAX_INDEX: u64 = 8 << 20;
/// Least size of both parts together: those seen have 34 to 95 KB. One with less is a loop made otherwise
/// (`--with-tail-call-interp`, 3.14), whose functions have other names.
const LEAST: u64 = 16 << 10;
/// Encoding of an index's addresses: four bytes, counted from its start (DW_EH_PE_datarel | DW_EH_PE_sdata4).
const FROM_START: u8 = 0x3b;

/// A run of code, in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Address of its first byte.
    pub low: u64,
    /// Bytes of code from there on.
    pub len: u32,
}

/// Where the eval loop's code is: what is known of both parts by their symbols.
///
/// # Errors
/// [`PythonProblem::EvalRange`]: the main part has no size or more than [`MAX_CODE`], its code or the index of
/// functions cannot be read, its jumps lead to several functions, or both parts together are smaller than [`LEAST`].
pub fn ranges(
    file: &File,
    headers: &Headers,
    segments: &[Segment],
    (main, cold): (Option<Symbol>, Option<Symbol>),
) -> Result<Vec<Range>, PythonProblem> {
    let unknown = PythonProblem::EvalRange;
    let main = main.filter(|main| main.size > 0 && main.size <= MAX_CODE).ok_or(unknown("it has no size"))?;
    let cold = match cold.filter(|cold| cold.size > 0) {
        Some(cold) => Some((cold.address, cold.size)),
        None => by_jumps(file, headers, segments, main)?,
    };
    let parts = [Some((main.address, main.size)), cold];
    let found: Vec<Range> = parts
        .into_iter()
        .flatten()
        .filter_map(|(low, len)| Some(Range { low, len: u32::try_from(len).ok()? }))
        .take(MAX_EVAL_RANGES)
        .collect();
    if found.iter().map(|range| u64::from(range.len)).sum::<u64>() < LEAST {
        return Err(unknown("its code is too small: it is one of functions that call each other"));
    }
    Ok(found)
}

/// The part that the main part's jumps lead into, if they lead into one.
fn by_jumps(
    file: &File,
    headers: &Headers,
    segments: &[Segment],
    main: Symbol,
) -> Result<Option<(u64, u64)>, PythonProblem> {
    let unreadable = PythonProblem::EvalRange("its code cannot be read");
    let from = file_offset(segments, main.address).ok_or(unreadable.clone())?;
    let mut code = vec![0; main.size as usize];
    file.read_exact_at(&mut code, from).map_err(|_| unreadable)?;
    let end = main.address.wrapping_add(main.size);
    let leaves = |to: &u64| !(main.address..end).contains(to) && file_offset(segments, *to).is_some();
    let targets: Vec<u64> = jumps(&code, main.address).into_iter().filter(leaves).collect();
    if targets.is_empty() {
        return Ok(None);
    }
    let starts = starts(file, headers)?;
    let mut entries: HashMap<(u64, u64), usize> = HashMap::new();
    for to in targets {
        let after = starts.partition_point(|start| *start <= to);
        let (start, next) = (after.checked_sub(1).and_then(|at| starts.get(at)), starts.get(after));
        let (Some(start), Some(next)) = (start, next) else { continue };
        if *start != to {
            *entries.entry((*start, *next)).or_default() += 1;
        }
    }
    let all: usize = entries.values().sum();
    let Some(((low, high), most)) = entries.into_iter().max_by_key(|(_, jumps)| *jumps) else {
        return Ok(None);
    };
    // Not exactly all: what follows a jump need not be code.
    if most * 10 < all * 9 {
        return Err(PythonProblem::EvalRange("its jumps lead to several functions"));
    }
    Ok(Some((low, high - low)))
}

/// Where direct jumps in the code lead.
#[cfg(target_arch = "x86_64")]
fn jumps(code: &[u8], address: u64) -> Vec<u64> {
    use iced_x86::{Decoder, DecoderOptions, FlowControl};
    let decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let direct = |flow| matches!(flow, FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch);
    let near = decoder.into_iter().filter(|instruction| direct(instruction.flow_control()));
    near.map(|instruction| instruction.near_branch_target()).filter(|to| *to != 0).collect()
}

/// The same of arm64: `b`, `b.cond`, `cbz`, `cbnz`, `tbz` and `tbnz` (Arm ARM, C4.1.66).
#[cfg(not(target_arch = "x86_64"))]
fn jumps(code: &[u8], address: u64) -> Vec<u64> {
    let signed = |value: u32, bits: u32| i64::from(((value << (32 - bits)) as i32) >> (32 - bits)) * 4;
    let to = |(nth, word): (usize, &[u8])| {
        let word = u32::from_le_bytes(word.try_into().ok()?);
        let distance = match word >> 24 {
            0x14..=0x17 => signed(word & 0x3ff_ffff, 26),
            0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => signed(word >> 5 & 0x7_ffff, 19),
            0x36 | 0x37 | 0xb6 | 0xb7 => signed(word >> 5 & 0x3fff, 14),
            _ => return None,
        };
        Some(address.wrapping_add(nth as u64 * 4).wrapping_add_signed(distance))
    };
    code.chunks_exact(4).enumerate().filter_map(to).collect()
}

/// Where functions begin, by the index of the unwind information, sorted.
fn starts(file: &File, headers: &Headers) -> Result<Vec<u64>, PythonProblem> {
    let unknown = PythonProblem::EvalRange("the file has no index of its functions");
    let index = headers.section(file, ".eh_frame_hdr", MAX_INDEX).ok_or(unknown.clone())?;
    let address = headers.section_address(file, ".eh_frame_hdr").ok_or(unknown.clone())?;
    starts_in(&index, address).ok_or(unknown)
}

/// Layout: Linux Standard Base, Core 5.0, 10.6.2. Version, encodings of the pointer, the count and the entries; then the
/// pointer and the count, of four bytes each, and the entries.
fn starts_in(index: &[u8], address: u64) -> Option<Vec<u64>> {
    let [1, _, 0x03, FROM_START] = *index.first_chunk::<4>()? else { return None };
    let count = u32::from_le_bytes(*index.get(8..)?.first_chunk()?) as usize;
    let entries = index.get(12..12usize.checked_add(count.checked_mul(8)?)?)?;
    let start = |entry: &[u8]| {
        let offset = i32::from_le_bytes(*entry.first_chunk()?);
        Some(address.wrapping_add_signed(i64::from(offset)))
    };
    let mut starts: Vec<u64> = entries.chunks_exact(8).filter_map(start).collect();
    starts.sort_unstable();
    Some(starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_index_is_read_and_a_cut_one_is_none() {
        let mut index = vec![1, 0x1b, 0x03, FROM_START, 0, 0, 0, 0, 2, 0, 0, 0];
        for (start, entry) in [(0x100i32, 1i32), (-16, 2)] {
            index.extend(start.to_le_bytes());
            index.extend(entry.to_le_bytes());
        }
        assert_eq!(starts_in(&index, 0x1000), Some(vec![0xff0, 0x1100]));
        for len in 0..index.len() {
            assert_eq!(starts_in(&index[..len], 0x1000), None);
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn jumps_are_those_that_are_told_in_the_instruction() {
        // jmp +0x10; je -2; jmp rax; call +0; mov eax, 0xe9e9e9e9.
        let code = [
            0xe9, 0x10, 0, 0, 0, 0x0f, 0x84, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xe0, 0xe8, 0, 0, 0, 0, 0xb8,
            0xe9, 0xe9, 0xe9, 0xe9,
        ];
        assert_eq!(jumps(&code, 0x1000), [0x1015, 0x1009]);
    }

    proptest! {
        #[test]
        fn takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), address: u64) {
            starts_in(&bytes, address);
            jumps(&bytes, address);
        }
    }
}
