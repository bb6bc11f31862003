//! Finds the unwind information in an ELF image: an open file or the bytes of a vdso in, sections out.
//!
//! `.eh_frame` by its section header, or where these are stripped by the program header of its index
//! (PT_GNU_EH_FRAME); `.debug_frame` only where there is no `.eh_frame`. Compressed sections are left out. Limits:
//! 4096 sections, 64 MiB of unwind information. Layout: elf(5), 64 bits, little endian, x86-64.

use super::TableError;
use std::fs::File;
use std::hash::Hasher;
use std::os::unix::fs::FileExt;

/// Largest section that is read; libtorch_cpu's has 20 MB.
const MAX_SECTION: u64 = 64 << 20;
const MAX_HEADERS: u64 = 4096;
/// Names of sections.
const MAX_NAMES: u64 = 1 << 20;
const MACHINE_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PF_X: u32 = 1;
const SHT_NOBITS: u32 = 8;
const SHF_COMPRESSED: u64 = 0x800;
/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`: how every linker writes the pointer in .eh_frame_hdr.
const PCREL_SDATA4: u8 = 0x1b;

/// A part of the file that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// In the file.
    pub offset: u64,
    /// In the file's own address space.
    pub address: u64,
    /// Bytes of the file.
    pub size: u64,
    /// Holds code.
    pub code: bool,
}

/// A section's bytes and where they would be mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Its address.
    pub address: u64,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// What a table is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// What is mapped.
    pub segments: Vec<Segment>,
    /// The unwind information.
    pub frames: Section,
    /// It is .debug_frame, which is encoded otherwise.
    pub debug: bool,
}

trait Bytes {
    fn part(&self, offset: u64, len: u64) -> Result<Vec<u8>, TableError>;
}

struct OfFile<'a>(&'a File, u64);

impl Bytes for OfFile<'_> {
    fn part(&self, offset: u64, len: u64) -> Result<Vec<u8>, TableError> {
        if offset.checked_add(len).is_none_or(|end| end > self.1) {
            return Err(TableError::Malformed);
        }
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| TableError::Malformed)?];
        self.0.read_exact_at(&mut bytes, offset).map_err(|_| TableError::Unreadable)?;
        Ok(bytes)
    }
}

impl Bytes for &[u8] {
    fn part(&self, offset: u64, len: u64) -> Result<Vec<u8>, TableError> {
        let range = usize::try_from(offset).ok().zip(offset.checked_add(len).map(|end| end as usize));
        let part = range.and_then(|(from, to)| self.get(from..to));
        part.map(<[u8]>::to_vec).ok_or(TableError::Malformed)
    }
}

impl Image {
    /// Of a file with this many bytes, when it has at most `most` bytes of unwind information.
    pub fn of_file(file: &File, size: u64, most: u64) -> Result<Self, TableError> {
        read(&OfFile(file, size), most)
    }

    /// Of memory that holds a whole file.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, TableError> {
        read(&bytes, MAX_SECTION)
    }

    /// First and one past the last address of the code.
    pub fn code(&self) -> Result<(u64, u64), TableError> {
        let code = || self.segments.iter().filter(|segment| segment.code);
        let low = code().map(|s| s.address).min().ok_or(TableError::Nothing)?;
        let ends = code().map(|s| s.address.checked_add(s.size));
        let high = ends.max().flatten().ok_or(TableError::Malformed)?;
        Ok((low, high))
    }

    /// The same for all files whose table is the same; not for defence: who makes two files with one key makes
    /// the walks through both wrong.
    pub fn key(&self) -> u64 {
        // SipHash with a fixed key: the same in every run.
        let mut hash = std::hash::DefaultHasher::new();
        for segment in &self.segments {
            for word in [segment.offset, segment.address, segment.size, u64::from(segment.code)] {
                hash.write_u64(word);
            }
        }
        hash.write_u64(self.frames.address);
        hash.write_u8(u8::from(self.debug));
        hash.write(&self.frames.bytes);
        // 0 stands for no file.
        hash.finish().max(1)
    }

    /// The address, in the file's own space, of a mapping that begins at this offset of the file.
    pub fn address_at(&self, offset: u64) -> Option<u64> {
        let page = |at: u64| at & !0xfff;
        let holds = |s: &&Segment| offset >= page(s.offset) && offset < s.offset.saturating_add(s.size);
        // Two segments may share a page of the file; the code's is meant.
        let segment = self.segments.iter().filter(|s| s.code).find(holds)?;
        segment.address.checked_sub(segment.offset)?.checked_add(offset)
    }
}

fn read(bytes: &dyn Bytes, most: u64) -> Result<Image, TableError> {
    let head = bytes.part(0, 64).map_err(|_| TableError::NotElf)?;
    if !head.starts_with(b"\x7fELF\x02\x01") || u16_at(&head, 18) != MACHINE_X86_64 {
        return Err(TableError::NotElf);
    }
    let programs = u64::from(u16_at(&head, 56));
    if programs > 0 && u16_at(&head, 54) != 56 {
        return Err(TableError::Malformed);
    }
    let programs = bytes.part(u64_at(&head, 32), programs * 56)?;
    let loaded = programs.chunks_exact(56).filter(|p| u32_at(p, 0) == PT_LOAD);
    let segments: Vec<Segment> = loaded
        .map(|p| Segment {
            offset: u64_at(p, 8),
            address: u64_at(p, 16),
            size: u64_at(p, 32),
            code: u32_at(p, 4) & PF_X != 0,
        })
        .collect();
    let (mut eh_frame, debug_frame) = sections(bytes, &head)?;
    if eh_frame.is_none() {
        let index = programs.chunks_exact(56).find(|p| u32_at(p, 0) == PT_GNU_EH_FRAME);
        eh_frame = index.and_then(|p| by_index(bytes, &segments, u64_at(p, 8), u64_at(p, 16)));
    }
    let found = |section: &Found| -> Result<Section, TableError> {
        if section.size > MAX_SECTION {
            return Err(TableError::TooMuch("bytes of unwind information"));
        }
        if section.size > most {
            return Err(TableError::Large);
        }
        let bytes = bytes.part(section.offset, section.size)?;
        Ok(Section { address: section.address, bytes })
    };
    let (section, debug) = match (eh_frame, debug_frame) {
        (Some(section), _) => (found(&section)?, false),
        (None, Some(section)) => (found(&section)?, true),
        (None, None) => return Err(TableError::Nothing),
    };
    Ok(Image { segments, frames: section, debug })
}

struct Found {
    address: u64,
    offset: u64,
    size: u64,
}

/// `.eh_frame` and `.debug_frame`, by name.
fn sections(bytes: &dyn Bytes, head: &[u8]) -> Result<(Option<Found>, Option<Found>), TableError> {
    let (at, count) = (u64_at(head, 40), u64::from(u16_at(head, 60)));
    if count == 0 || at == 0 {
        return Ok((None, None));
    }
    if u16_at(head, 58) != 64 || count > MAX_HEADERS {
        return Err(TableError::Malformed);
    }
    // A vdso's need not be mapped.
    let Ok(headers) = bytes.part(at, count * 64) else { return Ok((None, None)) };
    let names = headers.chunks_exact(64).nth(usize::from(u16_at(head, 62)));
    let names = names.map(|header| (u64_at(header, 24), u64_at(header, 32)));
    let Some((offset, size)) = names.filter(|(_, size)| *size <= MAX_NAMES) else { return Ok((None, None)) };
    let Ok(names) = bytes.part(offset, size) else { return Ok((None, None)) };
    let mut found = (None, None);
    for header in headers.chunks_exact(64) {
        let name = names.get(u32_at(header, 0) as usize..).unwrap_or_default();
        let usable = u32_at(header, 4) != SHT_NOBITS && u64_at(header, 8) & SHF_COMPRESSED == 0;
        let size = u64_at(header, 32);
        if !usable || size == 0 {
            continue;
        }
        let section = Some(Found { address: u64_at(header, 16), offset: u64_at(header, 24), size });
        if name.starts_with(b".eh_frame\0") {
            found.0 = section;
        } else if name.starts_with(b".debug_frame\0") {
            found.1 = section;
        }
    }
    Ok(found)
}

/// `.eh_frame` by its index: from where that points to up to the segment's end.
fn by_index(bytes: &dyn Bytes, segments: &[Segment], offset: u64, address: u64) -> Option<Found> {
    let head = bytes.part(offset, 8).ok()?;
    if head.first() != Some(&1) || head.get(1) != Some(&PCREL_SDATA4) {
        return None;
    }
    let from = address.checked_add(4)?.checked_add_signed(i64::from(u32_at(&head, 4) as i32))?;
    let holds = |s: &&Segment| from >= s.address && from - s.address < s.size;
    let segment = segments.iter().find(holds)?;
    let skipped = from - segment.address;
    Some(Found { address: from, offset: segment.offset.checked_add(skipped)?, size: segment.size - skipped })
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

    fn libc() -> Vec<u8> {
        std::fs::read("/usr/lib/x86_64-linux-gnu/libc.so.6")
            .or_else(|_| std::fs::read("/lib64/libc.so.6"))
            .unwrap()
    }

    #[test]
    fn stripped_headers_lead_to_the_same_rows() {
        let mut bytes = libc();
        let whole = Image::of_bytes(&bytes).unwrap();
        assert!(!whole.debug && whole.frames.bytes.len() > 10_000);
        // No section headers.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        let stripped = Image::of_bytes(&bytes).unwrap();
        assert_eq!(stripped.frames.address, whole.frames.address);
        assert!(stripped.frames.bytes.starts_with(&whole.frames.bytes));
        let (low, high) = whole.code().unwrap();
        assert!(low < high && whole.key() != stripped.key());
        let code = whole.segments.iter().find(|s| s.code).unwrap();
        assert_eq!(whole.address_at(code.offset & !0xfff), Some(code.address & !0xfff));
        assert_eq!(whole.address_at(u64::MAX), None);
    }

    #[test]
    fn what_is_no_such_file_is_refused_by_name() {
        assert_eq!(Image::of_bytes(b"#!/bin/sh\n"), Err(TableError::NotElf));
        let bytes = libc();
        assert_eq!(Image::of_bytes(&bytes[..64]), Err(TableError::Malformed));
        let mut other = bytes[..4096].to_vec();
        other[18] = 183;
        assert_eq!(Image::of_bytes(&other), Err(TableError::NotElf));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(Image::of_file(&file, 0, MAX_SECTION), Err(TableError::NotElf));
    }
}
