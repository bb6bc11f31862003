//! The symbols of a file that has many, packed: a quarter of what they take in the file or less, and no index beside them.
//!
//! In: a copy of the file's symbol tables, and where its code is. Out: the symbol of an address, and the addresses around it that
//! have the same. It answers as blazesym does, which reads the tables of smaller files ([`super::symbols`]): of the symbols that begin
//! last at or before an address the longest, if it reaches there. One without a size (hand-written code) reaches to the next in
//! .symtab, and nowhere in .dynsym; what .symtab does not know is looked for in .dynsym. Of several names for one place a global
//! one is taken before a weak and a local one.
//!
//! Why: a libjvm's tables are 4 MB in a file (packed 0.8), those of a program in Rust or C++ easily 12 (packed 3.3). Two that do not fit
//! beside each other are read again and again, one for each new function of the other.

use crate::packed::{Packed, Packer, Symbol};
use emberscope_target::elf::{ElfError, Headers, Image, Segment, each_symbol_entry, u32_at, u64_at};
use std::cmp::Reverse;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Longest name; a symbol with a longer one has none.
const MAX_NAME: usize = 64 << 10;
/// The table of names is read in pieces of so many bytes, of which so many are held: 10 MiB. Nearly all tables are smaller.
const PIECE: usize = 4096;
const PIECES: u64 = 2560;
/// Names may lie within each other, in a file that wants to be read for ever: so many times the bytes that there are of them.
const MAX_OVERLAP: u64 = 16;
/// What is left of 32 bits for a size, beside the binding.
const MAX_SIZE: u64 = (1 << 30) - 1;

/// The symbols of both tables.
#[derive(Debug)]
pub struct Many {
    own: Packed,
    exported: Packed,
}

/// A symbol of code, as it stands in the file.
pub struct Entry {
    start: u64,
    /// At most [`MAX_SIZE`]; above, how much others come before it.
    size_and_rank: u32,
    /// Offset in the table of names.
    name: u32,
}

impl Entry {
    /// Of a symbol that is defined in its file, and may be code: a function, one that chooses (`STT_GNU_IFUNC`), or of no type,
    /// as in hand-written code. Those of data in `code` end others.
    fn of(entry: &[u8], code: &[Range<u64>]) -> Option<Self> {
        let (info, section) = (*entry.get(4)?, entry.get(6..8)?);
        let (start, size) = (u64_at(entry, 8), u64_at(entry, 16));
        let inside = || code.iter().any(|code| code.contains(&start));
        // STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC.
        if !matches!(info & 15, 0 | 1 | 2 | 10) || section == [0, 0] || !inside() {
            return None;
        }
        // STB_GLOBAL, STB_WEAK, STB_LOCAL and all others.
        let rank = match info >> 4 {
            1 => 0,
            2 => 1,
            _ => 2,
        };
        Some(Self { start, size_and_rank: size.min(MAX_SIZE) as u32 | rank << 30, name: u32_at(entry, 0) })
    }

    /// Bytes of code; 0: not told.
    pub fn size(&self) -> u64 {
        u64::from(self.size_and_rank) & MAX_SIZE
    }

    /// Offset in the table of names.
    pub fn name(&self) -> u32 {
        self.name
    }

    /// The order in which they are asked: by place, the longest first.
    fn order(&self) -> (u64, Reverse<u64>, u32, u32) {
        (self.start, Reverse(self.size()), self.size_and_rank >> 30, self.name)
    }
}

impl Many {
    /// Of a copy of a file's tables. What is packed takes at most about `limit` bytes, and half of it meanwhile.
    ///
    /// # Errors
    /// [`ElfError::TooLarge`]: the symbols take more, or their names lie within each other. [`ElfError::Io`]: reading failed.
    pub fn of(image: &Image, code: &[Segment], limit: u64) -> Result<Self, ElfError> {
        let headers = Headers::read(&image.file, image.file.metadata()?.len())?;
        let (mut own, mut exported) = (Packed::default(), Packed::default());
        for table in headers.symbol_tables() {
            let entries = entries(&image.file, table.symbols, code, limit / 2)?;
            let packed = pack(entries, &mut Names::of(&image.file, table.strings), limit)?;
            *if table.dynamic { &mut exported } else { &mut own } = packed;
        }
        Ok(Self { own, exported })
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        (self.own.bytes() + self.exported.bytes()) as u64
    }

    /// The name of an address, and the addresses around it that have it too.
    pub fn name(&self, address: u64) -> Option<(String, Range<u64>)> {
        let reaches = |found: &Symbol| found.more > address - found.start;
        let whole = |found: &Symbol| found.start..found.next.min(found.start.saturating_add(found.more));
        let here = || Some(address..address.checked_add(1)?);
        if let Some(found) = self.own.find(address).filter(|found| found.more == 0 || reaches(found)) {
            let holds = if found.more == 0 { here()? } else { whole(&found) };
            return Some((found.name, holds));
        }
        let found = self.exported.find(address)?;
        if !reaches(&found) && (found.more, found.start) != (0, address) {
            return None;
        }
        // Around it there may be some of the other table.
        let alone = found.more > 0 && self.own.len() == 0;
        let holds = if alone { whole(&found) } else { here()? };
        Some((found.name, holds))
    }
}

/// The symbols of code in one table, at most about `limit` bytes of them.
///
/// # Errors
/// [`ElfError::TooLarge`]: there are more. [`ElfError::Io`]: reading failed.
pub fn entries(
    file: &File,
    symbols: (u64, u64),
    code: &[Segment],
    limit: u64,
) -> Result<Vec<Entry>, ElfError> {
    let code = code.iter().filter(|segment| segment.executable);
    let code: Vec<_> = code.map(|it| it.address..it.address.saturating_add(it.memory_size)).collect();
    let mut entries = Vec::new();
    each_symbol_entry(file, symbols, |entry| {
        entries.extend(Entry::of(entry, &code));
        match (entries.len() * size_of::<Entry>()) as u64 {
            bytes if bytes > limit => Err(ElfError::TooLarge(bytes)),
            _ => Ok(()),
        }
    })?;
    Ok(entries)
}

/// Hands out the symbols by address, one for each place, and where it holds from.
///
/// # Errors
/// What `take` says, which ends it.
pub fn in_order(
    entries: &mut [Entry],
    mut take: impl FnMut(u64, &Entry) -> Result<(), ElfError>,
) -> Result<(), ElfError> {
    entries.sort_unstable_by_key(Entry::order);
    let mut groups = entries.chunk_by(|a, b| a.start == b.start).peekable();
    while let Some(group) = groups.next() {
        let next = groups.peek().and_then(|group| group.first()).map_or(u64::MAX, |next| next.start);
        let Some(longest) = group.first() else { continue };
        let end = longest.start.saturating_add(longest.size());
        // One of the same place that has no size goes on where the longest ends.
        let endless = group.iter().find(|it| it.size() == 0).filter(|_| longest.size() > 0 && end < next);
        let both = [Some((longest.start, longest)), endless.map(|it| (end, it))];
        both.into_iter().flatten().try_for_each(|(start, symbol)| take(start, symbol))?;
    }
    Ok(())
}

/// Packs them, into at most about `limit` bytes.
fn pack(mut entries: Vec<Entry>, names: &mut Names<'_>, limit: u64) -> Result<Packed, ElfError> {
    let (mut packer, mut name) = (Packer::default(), Vec::new());
    in_order(&mut entries, |start, symbol| {
        packer.push(start, names.at(symbol.name, &mut name)?, symbol.size());
        match packer.bytes() as u64 {
            bytes if bytes > limit || names.looked_at > MAX_OVERLAP * names.range.1 => {
                Err(ElfError::TooLarge(bytes))
            }
            _ => Ok(()),
        }
    })?;
    Ok(packer.done())
}

/// A table of names, which may have more bytes than all that is packed of it.
struct Names<'a> {
    file: &'a File,
    /// Offset and bytes.
    range: (u64, u64),
    /// Pieces that were read, each in the place that its number leaves as a remainder, and which they are.
    pieces: (Vec<u8>, Vec<u64>),
    /// Bytes of names that were looked at.
    looked_at: u64,
}

impl<'a> Names<'a> {
    fn of(file: &'a File, range: (u64, u64)) -> Self {
        let pieces = range.1.div_ceil(PIECE as u64).min(PIECES) as usize;
        Self { file, range, pieces: (vec![0; pieces * PIECE], vec![u64::MAX; pieces]), looked_at: 0 }
    }

    /// The name at an offset; empty where it is no text, or does not end.
    fn at<'b>(&mut self, offset: u32, name: &'b mut Vec<u8>) -> Result<&'b str, ElfError> {
        name.clear();
        let mut offset = u64::from(offset);
        while offset < self.range.1 && name.len() < MAX_NAME {
            let piece = self.piece(offset / PIECE as u64)?;
            let rest = piece.get(offset as usize % PIECE..).unwrap_or_default();
            let end = rest.iter().position(|byte| *byte == 0);
            let more = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            name.extend_from_slice(more);
            offset += more.len() as u64;
            self.looked_at += more.len() as u64;
            if end.is_some() {
                return Ok(std::str::from_utf8(name).unwrap_or_default());
            }
        }
        Ok("")
    }

    fn piece(&mut self, nth: u64) -> Result<&[u8], ElfError> {
        let (bytes, held) = &mut self.pieces;
        let place = (nth % held.len().max(1) as u64) as usize;
        let (held, at) = (held.get_mut(place).ok_or(ElfError::Malformed)?, nth * PIECE as u64);
        let len = (self.range.1 - at).min(PIECE as u64) as usize;
        let piece = bytes.get_mut(place * PIECE..place * PIECE + len).ok_or(ElfError::Malformed)?;
        if *held != nth {
            self.file.read_exact_at(piece, self.range.0 + at)?;
            *held = nth;
        }
        Ok(piece)
    }
}

#[cfg(test)]
mod tests;
