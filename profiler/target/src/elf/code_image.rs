//! The code of a file in which most functions have no unwind information, and what leads to these: for those who read the
//! code itself.
//!
//! musl's C library is such a file, and what is linked with it statically. In: an open file. Out: its code, its constants, and
//! addresses where functions begin or may begin. Go's programs are none: they have tables of their own, and keep frame
//! pointers. Limits: [`MAX_CODE`], [`MAX_MAPPED`], [`MAX_SYMBOLS`].

use super::symbols::{ENTRY, each_entry};
use super::{Headers, Segment, part, u64_at};
use std::fs::File;

/// Most bytes of code; musl's C library has 0.4 MB.
const MAX_CODE: u64 = 2 << 20;
/// Most bytes of all that is mapped of the file.
const MAX_MAPPED: u64 = 4 << 20;
/// Where unwind information has less than one byte for so many of code, most functions have none. It mostly has one for ten.
const RARE: u64 = 32;
/// Symbols of a table that are looked at, and addresses of code that are found elsewhere; musl's library has 1,600 and 900.
const MAX_SYMBOLS: u64 = 1 << 16;
const MAX_POINTERS: usize = 1 << 16;
/// A symbol's kind: a function (elf.h).
const STT_FUNC: u8 = 2;

/// Bytes, and the address of the first, as linked.
type Mapped = (u64, Vec<u8>);

/// A file's code and constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeImage {
    /// The code's first address, as linked.
    pub address: u64,
    /// The code.
    pub code: Vec<u8>,
    /// Where functions begin, by the file's symbols and its header; ascending.
    pub entries: Vec<u64>,
    /// Where they may begin: what looks like an address of code in all that is not code, as relocations have it or pointers
    /// that are linked to their place; ascending.
    pub pointers: Vec<u64>,
    others: Vec<Mapped>,
}

impl CodeImage {
    /// Reads a file with so many bytes of unwind information. None: it has enough of that, or is none that is read so.
    pub fn read(headers: &Headers, file: &File, frames: u64) -> Option<Self> {
        let segments = headers.segments(file).ok()?;
        let mut codes = segments.iter().filter(|segment| segment.executable);
        let (code, None) = (codes.next()?, codes.next()) else { return None };
        let mapped: u64 = segments.iter().map(|segment| segment.file_size).try_fold(0, u64::checked_add)?;
        let is_rare = frames.checked_mul(RARE).is_some_and(|of| of <= code.file_size);
        if code.file_size > MAX_CODE || mapped > MAX_MAPPED || !is_rare {
            return None;
        }
        let of_go = [".gopclntab", ".data.rel.ro.gopclntab"];
        if of_go.iter().any(|name| headers.section_address(file, name).is_some()) {
            return None;
        }
        let read = |segment: &Segment| -> Option<Mapped> {
            Some((segment.address, part(file, headers.size, (segment.offset, segment.file_size)).ok()?))
        };
        let mut entries = vec![headers.entry()];
        for table in headers.symbol_tables() {
            let (at, bytes) = table.symbols;
            let each = each_entry(file, (at, bytes.min(MAX_SYMBOLS * ENTRY as u64)), |symbol| {
                // st_shndx 0: used here, defined elsewhere.
                let is_function = symbol.get(4).is_some_and(|kind| kind & 15 == STT_FUNC);
                if is_function && symbol.get(6..8) != Some(&[0, 0]) {
                    entries.push(u64_at(symbol, 8));
                }
                Ok(())
            });
            each.ok()?;
        }
        let others: Vec<Mapped> =
            segments.iter().filter(|segment| !segment.executable).filter_map(read).collect();
        let (address, code) = read(code)?;
        let end = address.saturating_add(code.len() as u64);
        let words = others.iter().flat_map(|(_, bytes)| bytes.chunks_exact(8));
        let mut pointers: Vec<u64> =
            words.map(|word| u64_at(word, 0)).filter(|at| (address..end).contains(at)).collect();
        for addresses in [&mut entries, &mut pointers] {
            addresses.sort_unstable();
            addresses.dedup();
        }
        pointers.truncate(MAX_POINTERS);
        Some(Self { address, code, entries, pointers, others })
    }

    /// A number of so many bytes, at most eight, at an address of the file.
    pub fn constant(&self, at: u64, len: usize) -> Option<u64> {
        let all = std::iter::once((self.address, &self.code));
        let mut all = all.chain(self.others.iter().map(|(address, bytes)| (*address, bytes)));
        all.find_map(|(address, bytes)| {
            let from = usize::try_from(at.checked_sub(address)?).ok()?;
            let mut word = [0; 8];
            word.get_mut(..len)?.copy_from_slice(bytes.get(from..from.checked_add(len)?)?);
            Some(u64::from_le_bytes(word))
        })
    }

    /// All that was read of the file.
    pub fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.code[..]).chain(self.others.iter().map(|(_, bytes)| &bytes[..]))
    }
}
