//! The headers of a program file: an open file in, where its parts are out.
//!
//! Nothing that they say is believed: sizes and places are checked against the file's. Layout: elf(5), 64 bits,
//! little endian.

mod code_image;
mod image;
mod place;
mod symbols;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub use code_image::CodeImage;
pub use image::{Image, memory_file};
pub use place::{bias, file_offset};
pub use symbols::{
    Exported, Symbol, each_entry as each_symbol_entry, exported as exported_symbols, find as find_symbols,
    find_sized as find_sized_symbols, find_starting as find_symbols_starting,
};

/// Largest section header table: 4096 sections.
const MAX_HEADERS: u64 = 64 * 4096;
/// Largest note that is kept.
const MAX_NOTE: u64 = 4096;
/// Largest file; libraries of machine-learning packages reach 2 GB.
const MAX_FILE: u64 = 16 << 30;
/// Largest table of sections' names.
const MAX_NAMES: u64 = 1 << 20;

const PT_LOAD: u32 = 1;
const PF_X: u32 = 1;
const SHT_PROGBITS: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_NOTE: u32 = 7;
const SHT_DYNSYM: u32 = 11;
/// .eh_frame, as LLVM writes it (System V ABI, AMD64, 4.2.1).
const SHT_X86_64_UNWIND: u32 = 0x7000_0001;
const SHF_COMPRESSED: u64 = 1 << 11;
const NT_GNU_BUILD_ID: u32 = 3;

/// Why there are no symbols.
#[derive(Debug, thiserror::Error)]
pub enum ElfError {
    /// The system fails to read.
    #[error("reading the file: {0}")]
    Io(#[from] io::Error),
    /// The file is not what we read.
    #[error("not a 64-bit little-endian ELF file")]
    NotElf,
    /// Headers point outside of the file.
    #[error("the headers of the file point outside of it")]
    Malformed,
    /// The symbols take more bytes than may be: how many.
    #[error("its symbols take {0} bytes, more than the limit")]
    TooLarge(u64),
}

#[derive(Clone, Copy)]
struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
}

/// A part of a file that is mapped when it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// The address that the segment wants to be mapped at: as linked.
    pub address: u64,
    /// How many bytes of the file are mapped.
    pub file_size: u64,
    /// How many bytes there are when loaded; beyond the file's they are 0.
    pub memory_size: u64,
    /// Whether the segment is mapped as code.
    pub executable: bool,
}

/// Where a symbol table and its names are: offset and size of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolTable {
    /// The one for other programs (.dynsym), which is never stripped.
    pub dynamic: bool,
    /// Offset and bytes of the entries, 24 bytes each.
    pub symbols: (u64, u64),
    /// Offset and bytes of the names.
    pub strings: (u64, u64),
}

/// The headers of a file, checked against its size.
pub struct Headers {
    raw: [u8; 64],
    size: u64,
    programs: (u64, u64),
    sections_at: (u64, u64),
    sections: Vec<Section>,
}

impl Headers {
    /// Reads the headers of a file of `size` bytes.
    ///
    /// # Errors
    /// [`ElfError::NotElf`]: the file is no ELF of 64 bits, or larger than 16 GiB. [`ElfError::Malformed`]: the tables
    /// of headers are too long or lie outside of the file. [`ElfError::Io`]: reading failed.
    pub fn read(file: &File, size: u64) -> Result<Self, ElfError> {
        let mut raw = [0u8; 64];
        file.read_exact_at(&mut raw, 0).map_err(|_| ElfError::NotElf)?;
        if !raw.starts_with(b"\x7fELF\x02\x01") || size > MAX_FILE {
            return Err(ElfError::NotElf);
        }
        let programs = (u64_at(&raw, 32), u64::from(u16_at(&raw, 54)) * u64::from(u16_at(&raw, 56)));
        let sections_at = (u64_at(&raw, 40), u64::from(u16_at(&raw, 58)) * u64::from(u16_at(&raw, 60)));
        let mut sections = Vec::new();
        if sections_at.1 > 0 {
            if u16_at(&raw, 58) != 64 || sections_at.1 > MAX_HEADERS {
                return Err(ElfError::Malformed);
            }
            for header in part(file, size, sections_at)?.chunks_exact(64) {
                sections.push(Section {
                    name: u32_at(header, 0),
                    kind: u32_at(header, 4),
                    flags: u64_at(header, 8),
                    address: u64_at(header, 16),
                    offset: u64_at(header, 24),
                    size: u64_at(header, 32),
                    link: u32_at(header, 40),
                });
            }
        }
        within(size, programs)?;
        Ok(Self { raw, size, programs, sections_at, sections })
    }

    /// The GNU build id, from the note sections.
    pub fn build_id(&self, file: &File) -> Option<Box<[u8]>> {
        self.sections.iter().filter(|s| s.kind == SHT_NOTE && s.size <= MAX_NOTE).find_map(|s| {
            let bytes = part(file, self.size, (s.offset, s.size)).ok()?;
            build_id_in(&bytes)
        })
    }

    /// Address of the first instruction, as linked.
    pub fn entry(&self) -> u64 {
        u64_at(&self.raw, 24)
    }

    /// The parts of the file that are mapped when it is loaded.
    ///
    /// # Errors
    /// [`ElfError::Malformed`]: program headers have not 56 bytes. [`ElfError::Io`]: reading failed.
    pub fn segments(&self, file: &File) -> Result<Vec<Segment>, ElfError> {
        if u16_at(&self.raw, 54) != 56 {
            return Err(ElfError::Malformed);
        }
        let table = part(file, self.size, self.programs)?;
        let loaded = table.chunks_exact(56).filter(|header| u32_at(header, 0) == PT_LOAD);
        let segment = |header: &[u8]| Segment {
            offset: u64_at(header, 8),
            address: u64_at(header, 16),
            file_size: u64_at(header, 32),
            memory_size: u64_at(header, 40),
            executable: u32_at(header, 4) & PF_X != 0,
        };
        Ok(loaded.map(segment).collect())
    }

    /// The bytes of the section with this name, if there are at most `limit` and they are not compressed.
    pub fn section(&self, file: &File, name: &str, limit: u64) -> Option<Vec<u8>> {
        let found = self.named(file, name)?;
        let kind = matches!(found.kind, SHT_PROGBITS | SHT_X86_64_UNWIND);
        let plain = kind && found.flags & SHF_COMPRESSED == 0 && found.size <= limit;
        plain.then(|| part(file, self.size, (found.offset, found.size)).ok())?
    }

    /// The address that the section with this name wants to be mapped at.
    pub fn section_address(&self, file: &File, name: &str) -> Option<u64> {
        self.named(file, name).map(|section| section.address)
    }

    fn named(&self, file: &File, name: &str) -> Option<Section> {
        let names = self.sections.get(usize::from(u16_at(&self.raw, 62)))?;
        let names = part(file, self.size, (names.offset, names.size.min(MAX_NAMES))).ok()?;
        let called = |section: &&Section| {
            let rest = names.get(section.name as usize..);
            rest.and_then(|rest| rest.strip_prefix(name.as_bytes()))
                .is_some_and(|rest| rest.first() == Some(&0))
        };
        self.sections.iter().find(called).copied()
    }

    /// The symbol tables that lie inside of the file.
    pub fn symbol_tables(&self) -> Vec<SymbolTable> {
        let tables = self.sections.iter().filter(|s| matches!(s.kind, SHT_SYMTAB | SHT_DYNSYM));
        let found = tables.filter_map(|table| {
            let names = self.sections.get(table.link as usize).filter(|s| s.kind == SHT_STRTAB)?;
            Some(SymbolTable {
                dynamic: table.kind == SHT_DYNSYM,
                symbols: (table.offset, table.size),
                strings: (names.offset, names.size),
            })
        });
        let inside = |range| within(self.size, range).is_ok();
        found.filter(|t| inside(t.symbols) && inside(t.strings)).collect()
    }
}

fn part(file: &File, size: u64, range: (u64, u64)) -> Result<Vec<u8>, ElfError> {
    within(size, range)?;
    let mut bytes = vec![0; range.1 as usize];
    file.read_exact_at(&mut bytes, range.0)?;
    Ok(bytes)
}

fn within(size: u64, (offset, len): (u64, u64)) -> Result<(), ElfError> {
    match offset.checked_add(len) {
        Some(end) if len == 0 || end <= size => Ok(()),
        _ => Err(ElfError::Malformed),
    }
}

fn build_id_in(mut notes: &[u8]) -> Option<Box<[u8]>> {
    while notes.len() >= 12 {
        let (name_len, desc_len) = (u32_at(notes, 0) as usize, u32_at(notes, 4) as usize);
        let desc_at = 12usize.checked_add(name_len.checked_next_multiple_of(4)?)?;
        let end = desc_at.checked_add(desc_len)?;
        if u32_at(notes, 8) == NT_GNU_BUILD_ID && notes.get(12..12 + name_len)? == b"GNU\0" {
            return notes.get(desc_at..end).filter(|id| (8..=64).contains(&id.len())).map(Box::from);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
    None
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|s| s.try_into().ok()).unwrap_or([0; N])
}
/// A number of two bytes, little endian, at a place; 0 beyond the end.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}
/// A number of four bytes, little endian, at a place; 0 beyond the end.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}
/// A number of eight bytes, little endian, at a place; 0 beyond the end.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

#[cfg(test)]
mod tests;
