//! Takes the symbol tables out of a program file: an open file in, a sealed copy in memory out.
//!
//! The copy is a sparse memfd that holds the headers, the symbol and string tables and the notes at their
//! own offsets and nothing else (5 MB for a libjvm of 29 MB). It is there because the reader of symbols
//! maps the file: a target could truncate its own file meanwhile, and the daemon would die of SIGBUS; it
//! also outlives the process and the file. Sizes are checked before anything is copied. Layout: elf(5),
//! 64 bits, little endian.

use rustix::fs::{MemfdFlags, SealFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Largest section header table: 4096 sections.
const MAX_HEADERS: u64 = 64 * 4096;
/// Largest note that is kept.
const MAX_NOTE: u64 = 4096;
/// Largest file; libraries of machine-learning packages reach 2 GB.
const MAX_FILE: u64 = 16 << 30;

const PT_LOAD: u32 = 1;
const PF_X: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_NOTE: u32 = 7;
const SHT_DYNSYM: u32 = 11;
const NT_GNU_BUILD_ID: u32 = 3;

/// Why there are no symbols.
#[derive(Debug, thiserror::Error)]
pub enum ElfError {
    /// Reading failed.
    #[error("reading the file: {0}")]
    Io(#[from] io::Error),
    /// Not for us.
    #[error("not a 64-bit little-endian ELF file")]
    NotElf,
    /// Headers that lie.
    #[error("the headers of the file point outside of it")]
    Malformed,
    /// Too much.
    #[error("its symbols take {0} bytes, more than the limit")]
    TooLarge(u64),
}

/// What is needed of a file to name its addresses.
#[derive(Debug)]
pub struct Image {
    /// The sparse copy.
    pub file: File,
    /// Bytes copied.
    pub bytes: u64,
}

#[derive(Clone, Copy)]
struct Section {
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

/// A part of a file that is mapped when it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it is in the file.
    pub offset: u64,
    /// Where it wants to be.
    pub address: u64,
    /// Bytes of the file.
    pub file_size: u64,
    /// Bytes when loaded; beyond the file's they are 0.
    pub memory_size: u64,
    /// Holds code.
    pub executable: bool,
}

/// Where a symbol table and its names are: offset and size of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolTable {
    /// The one for other programs (.dynsym), which is never stripped.
    pub dynamic: bool,
    /// Entries of 24 bytes.
    pub symbols: (u64, u64),
    /// Names.
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
    /// Reads them.
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
                let (kind, link) = (u32_at(header, 4), u32_at(header, 40));
                sections.push(Section { kind, offset: u64_at(header, 24), size: u64_at(header, 32), link });
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

    /// What is mapped of it.
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

    /// Its symbol tables that lie inside of it.
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

    /// Copies the symbols, when they take at most `limit` bytes.
    pub fn image(&self, file: &File, limit: u64) -> Result<Image, ElfError> {
        let mut parts = vec![(0, self.raw.len() as u64), self.programs, self.sections_at];
        for section in &self.sections {
            if matches!(section.kind, SHT_SYMTAB | SHT_DYNSYM) {
                parts.push((section.offset, section.size));
                if let Some(strings) =
                    self.sections.get(section.link as usize).filter(|s| s.kind == SHT_STRTAB)
                {
                    parts.push((strings.offset, strings.size));
                }
            }
        }
        // The names of the sections: the symbol reader finds tables by name.
        let names = self.sections.get(usize::from(u16_at(&self.raw, 62)));
        parts.extend(names.filter(|s| s.kind == SHT_STRTAB).map(|s| (s.offset, s.size)));
        let bytes = parts.iter().fold(0u64, |sum, p| sum.saturating_add(p.1));
        if bytes > limit {
            return Err(ElfError::TooLarge(bytes));
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let copy =
            File::from(rustix::fs::memfd_create("emberscope-symbols", flags).map_err(io::Error::from)?);
        copy.set_len(self.size)?;
        for (offset, len) in parts {
            copy_range(file, &copy, self.size, (offset, len))?;
        }
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        rustix::fs::fcntl_add_seals(&copy, seals).map_err(io::Error::from)?;
        Ok(Image { file: copy, bytes })
    }
}

fn copy_range(from: &File, to: &File, size: u64, range: (u64, u64)) -> Result<(), ElfError> {
    within(size, range)?;
    let mut buffer = vec![0u8; 64 << 10];
    let (mut at, end) = (range.0, range.0 + range.1);
    while at < end {
        let len = (end - at).min(buffer.len() as u64) as usize;
        let chunk = buffer.get_mut(..len).ok_or(ElfError::Malformed)?;
        from.read_exact_at(chunk, at)?;
        to.write_all_at(chunk, at)?;
        at += len as u64;
    }
    Ok(())
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
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn own() -> (File, u64) {
        let file = File::open("/proc/self/exe").unwrap();
        let size = file.metadata().unwrap().len();
        (file, size)
    }

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn copies_symbols_and_nothing_else() {
        let (file, size) = own();
        let headers = Headers::read(&file, size).unwrap();
        let image = headers.image(&file, 256 << 20).unwrap();
        assert_eq!(image.file.metadata().unwrap().len(), size);
        assert!(image.bytes > 10_000 && image.bytes < size);
        let mut head = [0u8; 4];
        image.file.read_exact_at(&mut head, 0).unwrap();
        assert_eq!(&head, b"\x7fELF");
        assert!(image.file.set_len(0).is_err(), "sealed");
    }

    #[test]
    fn reads_the_build_id() {
        let path =
            ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6"]
                .into_iter()
                .find(|p| std::path::Path::new(p).exists())
                .unwrap();
        let file = File::open(path).unwrap();
        let headers = Headers::read(&file, file.metadata().unwrap().len()).unwrap();
        assert_eq!(headers.build_id(&file).unwrap().len(), 20);
    }

    #[test]
    fn refuses_lies_and_excess() {
        let (file, size) = own();
        let headers = Headers::read(&file, size).unwrap();
        assert!(matches!(headers.image(&file, 1000), Err(ElfError::TooLarge(_))));
        assert!(matches!(Headers::read(&file_of(b"#!/bin/sh\n"), 10), Err(ElfError::NotElf)));
        let mut head = [0u8; 64];
        file.read_exact_at(&mut head, 0).unwrap();
        let beyond = file_of(&head);
        assert!(matches!(Headers::read(&beyond, 64), Err(ElfError::Malformed)));
    }

    proptest! {
        #[test]
        fn takes_any_headers(mut bytes in proptest::collection::vec(any::<u8>(), 64..512)) {
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            let file = file_of(&bytes);
            if let Ok(headers) = Headers::read(&file, bytes.len() as u64) {
                headers.build_id(&file);
                let _ = headers.segments(&file);
                headers.symbol_tables();
                let _ = headers.image(&file, 1 << 20);
            }
        }
        #[test]
        fn takes_any_notes(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            build_id_in(&bytes);
        }
    }
}
