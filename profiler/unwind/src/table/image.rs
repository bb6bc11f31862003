//! Finds the unwind information in an ELF image: an open file or the bytes of a vdso in, sections out.
//!
//! `.eh_frame` by its section header, or where these are stripped by the program header of its index
//! (PT_GNU_EH_FRAME); `.debug_frame`, which may be compressed, only where there is no `.eh_frame`.
//! Limit: 32 MiB of unwind information, packed or not. Layout: elf(5), 64 bits, little endian, of our own
//! architecture.

use super::TableError;
use super::elf::{Bytes, Found, OfFile, by_index, sections, unpacked};
use super::plain::code_of;
use emberscope_target::elf::{CodeImage, u16_at, u32_at, u64_at};
use std::fs::File;
use std::hash::Hasher;

/// Largest section that is read; libtorch_cpu's has 20 MB.
const MAX_SECTION: u64 = 32 << 20;
const PT_LOAD: u32 = 1;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PF_X: u32 = 1;

/// A part of the file that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Address of the first byte, in the file's own address space.
    pub address: u64,
    /// How many bytes of the file are mapped.
    pub size: u64,
    /// Whether the part is mapped as code.
    pub code: bool,
}

/// A section's bytes and where they would be mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Address of the first byte, in the file's own address space.
    pub address: u64,
    /// The bytes of the section, unpacked.
    pub bytes: Vec<u8>,
}

/// What a table is built from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The parts of the file that are mapped.
    pub segments: Vec<Segment>,
    /// The section with the unwind information.
    pub frames: Section,
    /// The section is .debug_frame, which is encoded otherwise than .eh_frame.
    pub debug: bool,
    /// The code, where most of it has no unwind information.
    pub plain: Option<Box<CodeImage>>,
}

impl Image {
    /// Reads a file of `size` bytes, when it has at most `most` bytes of unwind information.
    ///
    /// # Errors
    /// [`TableError::NotElf`]: the file is no ELF of 64 bits for this machine. [`TableError::Malformed`]: its headers
    /// lie. [`TableError::Unreadable`]: reading failed. [`TableError::Nothing`]: it has no unwind information.
    /// [`TableError::Large`]: it has more than `most` bytes of it; [`TableError::TooMuch`]: more than 32 MiB.
    pub fn of_file(file: &File, size: u64, most: u64) -> Result<Self, TableError> {
        let bytes = OfFile(file, size);
        let mut image = match read(&bytes, most) {
            Err(TableError::Nothing) => Self { segments: mapped(&bytes)?.segments, ..Self::default() },
            image => image?,
        };
        image.plain = code_of(file, size, image.frames.bytes.len()).map(Box::new);
        let has_any = image.plain.is_some() || !image.frames.bytes.is_empty();
        if has_any { Ok(image) } else { Err(TableError::Nothing) }
    }

    /// Reads memory that holds a whole file: the vdso.
    ///
    /// # Errors
    /// As [`Self::of_file`], but for [`TableError::Unreadable`] and [`TableError::Large`].
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, TableError> {
        read(&bytes, MAX_SECTION)
    }

    /// The same of a vdso without unwind information.
    ///
    /// # Errors
    /// As [`Self::of_bytes`], but for [`TableError::Nothing`].
    pub fn without_frames(bytes: &[u8]) -> Result<Self, TableError> {
        let Mapped { segments, .. } = mapped(&bytes)?;
        Ok(Self { segments, ..Self::default() })
    }

    /// The first address of the code, and one past the last.
    ///
    /// # Errors
    /// [`TableError::Nothing`]: no segment has code. [`TableError::Malformed`]: the code goes on behind the last
    /// address.
    pub fn code(&self) -> Result<(u64, u64), TableError> {
        let code = || self.segments.iter().filter(|segment| segment.code);
        let low = code().map(|s| s.address).min().ok_or(TableError::Nothing)?;
        let ends = code().map(|s| s.address.checked_add(s.size));
        let high = ends.max().flatten().ok_or(TableError::Malformed)?;
        Ok((low, high))
    }

    /// A hash, the same for all files whose table is the same; not for defence: who makes two files with one key makes
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
        self.plain.iter().flat_map(|plain| plain.bytes()).for_each(|bytes| hash.write(bytes));
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

/// A file's head, its program headers, and the parts of it that are mapped.
struct Mapped {
    head: Vec<u8>,
    programs: Vec<u8>,
    segments: Vec<Segment>,
}

fn mapped(bytes: &dyn Bytes) -> Result<Mapped, TableError> {
    let head = bytes.part(0, 64).map_err(|_| TableError::NotElf)?;
    if !head.starts_with(b"\x7fELF\x02\x01") || u16_at(&head, 18) != emberscope_arch::OWN.machine {
        return Err(TableError::NotElf);
    }
    let programs = u64::from(u16_at(&head, 56));
    if programs > 0 && u16_at(&head, 54) != 56 {
        return Err(TableError::Malformed);
    }
    let programs = bytes.part(u64_at(&head, 32), programs * 56)?;
    let loaded = programs.chunks_exact(56).filter(|p| u32_at(p, 0) == PT_LOAD);
    let segments = loaded
        .map(|p| Segment {
            offset: u64_at(p, 8),
            address: u64_at(p, 16),
            size: u64_at(p, 32),
            code: u32_at(p, 4) & PF_X != 0,
        })
        .collect();
    Ok(Mapped { head, programs, segments })
}

/// Where a file's unwind information is.
pub struct Places {
    /// The parts of the file that are mapped.
    pub segments: Vec<Segment>,
    /// The section .eh_frame.
    pub eh_frame: Option<Found>,
    /// Its index, .eh_frame_hdr.
    pub index: Option<Found>,
    debug_frame: Option<Found>,
}

/// Finds a file's unwind information by its headers.
///
/// # Errors
/// [`TableError::NotElf`]: the file is no ELF of 64 bits for this machine. [`TableError::Malformed`]: its headers lie.
/// [`TableError::Unreadable`]: reading failed.
pub fn places(bytes: &dyn Bytes) -> Result<Places, TableError> {
    let Mapped { head, programs, segments } = mapped(bytes)?;
    let (mut eh_frame, debug_frame) = sections(bytes, &head)?;
    let index = programs.chunks_exact(56).find(|p| u32_at(p, 0) == PT_GNU_EH_FRAME);
    let index = index.map(|p| Found {
        offset: u64_at(p, 8),
        address: u64_at(p, 16),
        size: u64_at(p, 32),
        packed: false,
    });
    if eh_frame.is_none() {
        eh_frame = index.and_then(|at| by_index(bytes, &segments, at.offset, at.address));
    }
    Ok(Places { segments, eh_frame, index, debug_frame })
}

fn read(bytes: &dyn Bytes, most: u64) -> Result<Image, TableError> {
    let Places { segments, eh_frame, debug_frame, .. } = places(bytes)?;
    let found = |section: &Found| -> Result<Section, TableError> {
        if section.size > most {
            return Err(TableError::Large);
        }
        if section.size > MAX_SECTION {
            return Err(TableError::TooMuch("bytes of unwind information"));
        }
        let bytes = bytes.part(section.offset, section.size)?;
        let bytes = if section.packed { unpacked(&bytes, MAX_SECTION)? } else { bytes };
        Ok(Section { address: section.address, bytes })
    };
    let (section, debug) = match (eh_frame, debug_frame) {
        (Some(section), _) => (found(&section)?, false),
        (None, Some(section)) => (found(&section)?, true),
        (None, None) => return Err(TableError::Nothing),
    };
    Ok(Image { segments, frames: section, debug, plain: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libc() -> Vec<u8> {
        std::fs::read(emberscope_testkit::library("libc.so.6"))
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
        for arch in emberscope_arch::ALL {
            other[18] = arch.machine as u8;
            let refused = Image::of_bytes(&other) == Err(TableError::NotElf);
            assert_eq!(refused, arch.machine != emberscope_arch::OWN.machine, "{}", arch.name);
        }
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(Image::of_file(&file, 0, MAX_SECTION), Err(TableError::NotElf));
    }
}
