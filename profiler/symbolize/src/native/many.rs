//! The symbols of a file that has many, packed: a third of what they take in the file, and no index beside them.
//!
//! In: a copy of the file's symbol tables, and where its code is. Out: the symbol of an address, and the addresses around it that
//! have the same. It answers as blazesym does, which reads the tables of smaller files ([`super::symbols`]): of the symbols that begin
//! last at or before an address the longest, if it reaches there. One without a size (hand-written code) reaches to the next in
//! .symtab, and nowhere in .dynsym; what .symtab does not know is looked for in .dynsym. Of several names for one place a global
//! one is taken before a weak and a local one.
//!
//! Why: a libjvm's tables are 5 MB in a file, those of a program in Rust or C++ easily 12, of which two did not fit beside each other,
//! so that one was read again for each new function of the other.

use crate::packed::{Packed, Packer};
use emberscope_target::elf::{ElfError, Headers, Image, Segment, SymbolTable, u32_at, u64_at};
use std::cmp::Reverse;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes of an entry of a symbol table (Elf64_Sym, elf.h).
const ENTRY: usize = 24;
/// Entries that are read at once.
const AT_ONCE: usize = 4096;
/// Longest name; a symbol with a longer one has none.
const MAX_NAME: usize = 64 << 10;
/// Names may lie within each other, in a file that wants to be read for ever: so many times the bytes that there are of them.
const MAX_OVERLAP: u64 = 4;
/// What is left of 32 bits for a size, beside the binding.
const MAX_SIZE: u64 = (1 << 30) - 1;

/// The symbols of both tables.
#[derive(Debug)]
pub struct Many {
    own: Packed,
    exported: Packed,
}

/// A symbol of code, as it stands in the file.
struct Entry {
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

    fn size(&self) -> u64 {
        u64::from(self.size_and_rank) & MAX_SIZE
    }

    /// The order in which they are asked: by place, the longest first.
    fn order(&self) -> (u64, Reverse<u64>, u32, u32) {
        (self.start, Reverse(self.size()), self.size_and_rank >> 30, self.name)
    }
}

impl Many {
    /// Of a file's tables. They and what becomes of them take at most about twice `limit` bytes meanwhile.
    ///
    /// # Errors
    /// [`ElfError::TooLarge`]: the symbols take more than `limit` bytes, or packed more than half of it, or their names lie within
    /// each other. [`ElfError::Io`]: reading failed.
    pub fn of(image: &Image, code: &[Segment], limit: u64) -> Result<Self, ElfError> {
        let headers = Headers::read(&image.file, image.file.metadata()?.len())?;
        let code: Vec<_> = code.iter().filter(|segment| segment.executable).collect();
        let code: Vec<_> =
            code.iter().map(|it| it.address..it.address.saturating_add(it.memory_size)).collect();
        let (mut own, mut exported) = (Packed::default(), Packed::default());
        for table in headers.symbol_tables() {
            let packed = packed(&image.file, &table, &code, limit)?;
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
        let reaches = |size: u64, start: u64| size > address - start;
        if let Some(found) = self.own.find(address)
            && (found.more == 0 || reaches(found.more, found.start))
        {
            let holds = match found.more {
                0 => address..address.checked_add(1)?,
                size => found.start..found.next.min(found.start.saturating_add(size)),
            };
            return Some((found.name, holds));
        }
        let found = self.exported.find(address)?;
        let here = found.more == 0 && found.start == address;
        if !here && !reaches(found.more, found.start) {
            return None;
        }
        let holds = match found.more {
            // Around it there may be some of the other table.
            size if size > 0 && self.own.len() == 0 => {
                found.start..found.next.min(found.start.saturating_add(size))
            }
            _ => address..address.checked_add(1)?,
        };
        Some((found.name, holds))
    }
}

/// The symbols of one table.
fn packed(file: &File, table: &SymbolTable, code: &[Range<u64>], limit: u64) -> Result<Packed, ElfError> {
    let mut entries = Vec::new();
    let room = limit.checked_sub(table.strings.1).ok_or(ElfError::TooLarge(table.strings.1))?;
    let mut buffer = vec![0; ENTRY * AT_ONCE];
    let (mut at, end) = (table.symbols.0, table.symbols.0 + table.symbols.1);
    while at < end {
        let len = buffer.len().min((end - at) as usize);
        let read = buffer.get_mut(..len).ok_or(ElfError::Malformed)?;
        file.read_exact_at(read, at)?;
        entries.extend(read.chunks_exact(ENTRY).filter_map(|entry| Entry::of(entry, code)));
        let bytes = (entries.len() * size_of::<Entry>()) as u64;
        if bytes > room {
            return Err(ElfError::TooLarge(table.strings.1 + bytes));
        }
        at += len as u64;
    }
    let mut names = vec![0; table.strings.1 as usize];
    file.read_exact_at(&mut names, table.strings.0)?;
    pack(entries, &names, limit / 2)
}

/// Packs them, into at most about `limit` bytes.
fn pack(mut entries: Vec<Entry>, names: &[u8], limit: u64) -> Result<Packed, ElfError> {
    entries.sort_unstable_by_key(Entry::order);
    let (mut packer, mut read) = (Packer::default(), 0);
    let mut groups = entries.chunk_by(|a, b| a.start == b.start).peekable();
    while let Some(group) = groups.next() {
        let next = groups.peek().and_then(|group| group.first()).map_or(u64::MAX, |next| next.start);
        let Some(longest) = group.first() else { continue };
        let end = longest.start.saturating_add(longest.size());
        // One of the same place that has no size goes on where the longest ends.
        let endless = group.iter().find(|it| it.size() == 0).filter(|_| longest.size() > 0 && end < next);
        let both = [Some((longest.start, longest)), endless.map(|it| (end, it))];
        for (start, symbol) in both.into_iter().flatten() {
            let name = name(names, symbol.name);
            packer.push(start, name, symbol.size());
            read += name.len() as u64;
        }
        if packer.bytes() as u64 > limit || read > MAX_OVERLAP * names.len() as u64 {
            return Err(ElfError::TooLarge(packer.bytes() as u64));
        }
    }
    Ok(packer.done())
}

/// The name at an offset; none where it is no text, or does not end.
fn name(names: &[u8], offset: u32) -> &str {
    let name = names.get(offset as usize..).unwrap_or_default();
    let name = name.get(..name.len().min(MAX_NAME)).unwrap_or_default();
    let end = name.iter().position(|byte| *byte == 0);
    end.and_then(|end| std::str::from_utf8(name.get(..end)?).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
