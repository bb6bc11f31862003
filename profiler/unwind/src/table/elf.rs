//! Finds sections in an ELF file: headers in, places out. Limits: 4096 sections, 1 MiB of their names. Nothing that a
//! header says is believed: what is read is bounded by the file's size.

use super::TableError;
use super::image::Segment;
use emberscope_target::elf::{u16_at, u32_at, u64_at};
use flate2::read::ZlibDecoder;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

/// Section headers that are read.
const MAX_HEADERS: u64 = 4096;
/// Bytes of the names of sections that are read.
const MAX_NAMES: u64 = 1 << 20;
const SHT_NOBITS: u32 = 8;
const SHF_COMPRESSED: u64 = 0x800;
/// Head of a compressed section (elf(5), Elf64_Chdr): type, reserved, size, alignment; and zlib's number.
const CHDR: usize = 24;
const ELFCOMPRESS_ZLIB: u32 = 1;
/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`: how every linker writes the pointer in .eh_frame_hdr.
const PCREL_SDATA4: u8 = 0x1b;

/// Where a file's bytes are read from.
pub trait Bytes {
    /// The `len` bytes from `offset` on, all of them or none.
    ///
    /// # Errors
    /// [`TableError::Malformed`]: the file has not all of them. [`TableError::Unreadable`]: reading failed.
    fn part(&self, offset: u64, len: u64) -> Result<Vec<u8>, TableError>;
}

/// An open file and its size.
pub struct OfFile<'a>(pub &'a File, pub u64);

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

/// Where a section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Address of the first byte, in the file's own address space.
    pub address: u64,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// How many bytes the section has in the file.
    pub size: u64,
    /// The bytes are compressed: what Go's linker does with .debug_frame.
    pub packed: bool,
}

/// Unpacks a compressed section of at most `most` bytes: no more than that are ever unpacked.
///
/// # Errors
/// [`TableError::Malformed`]: it has no head, or not the bytes that the head tells. [`TableError::Nothing`]: it is
/// packed by anything but zlib. [`TableError::TooMuch`]: it has more than `most` bytes.
pub fn unpacked(bytes: &[u8], most: u64) -> Result<Vec<u8>, TableError> {
    let (head, packed) = bytes.split_at_checked(CHDR).ok_or(TableError::Malformed)?;
    let size = u64_at(head, 8);
    if u32_at(head, 0) != ELFCOMPRESS_ZLIB {
        return Err(TableError::Nothing);
    }
    if size > most {
        return Err(TableError::TooMuch("bytes of unwind information"));
    }
    let mut all = Vec::new();
    let read = ZlibDecoder::new(packed).take(size).read_to_end(&mut all);
    match read {
        Ok(read) if read as u64 == size => Ok(all),
        _ => Err(TableError::Malformed),
    }
}

/// Finds `.eh_frame` and `.debug_frame`, by name.
///
/// # Errors
/// [`TableError::Malformed`]: section headers have not 64 bytes, or there are more than [`MAX_HEADERS`]. Headers that
/// cannot be read are no error: a vdso's need not be mapped.
pub fn sections(bytes: &dyn Bytes, head: &[u8]) -> Result<(Option<Found>, Option<Found>), TableError> {
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
        let packed = u64_at(header, 8) & SHF_COMPRESSED != 0;
        let size = u64_at(header, 32);
        if u32_at(header, 4) == SHT_NOBITS || size == 0 {
            continue;
        }
        let section = Some(Found { address: u64_at(header, 16), offset: u64_at(header, 24), size, packed });
        if name.starts_with(b".eh_frame\0") && !packed {
            found.0 = section;
        } else if name.starts_with(b".debug_frame\0") {
            found.1 = section;
        }
    }
    Ok(found)
}

/// `.eh_frame` by its index: from where that points to up to the segment's end.
pub fn by_index(bytes: &dyn Bytes, segments: &[Segment], offset: u64, address: u64) -> Option<Found> {
    let head = bytes.part(offset, 8).ok()?;
    if head.first() != Some(&1) || head.get(1) != Some(&PCREL_SDATA4) {
        return None;
    }
    let from = address.checked_add(4)?.checked_add_signed(i64::from(u32_at(&head, 4) as i32))?;
    let holds = |s: &&Segment| from >= s.address && from - s.address < s.size;
    let segment = segments.iter().find(holds)?;
    let skipped = from - segment.address;
    let size = segment.size - skipped;
    Some(Found { address: from, offset: segment.offset.checked_add(skipped)?, size, packed: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    /// A compressed section that says that it has so many bytes, and has `real` zeros.
    fn section(says: u64, real: usize) -> Vec<u8> {
        let mut all = vec![0; CHDR];
        all[..4].copy_from_slice(&ELFCOMPRESS_ZLIB.to_ne_bytes());
        all[8..16].copy_from_slice(&says.to_ne_bytes());
        let mut packer = ZlibEncoder::new(all, Compression::fast());
        packer.write_all(&vec![0; real]).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn a_section_is_unpacked_to_the_size_that_it_says_and_no_further() {
        assert_eq!(unpacked(&section(1000, 1000), 1000).unwrap(), [0; 1000]);
        // It goes on after the size that it says: what is read ends there.
        let bomb = unpacked(&section(1000, 32 << 20), 1000).unwrap();
        assert_eq!((bomb.len(), bomb.capacity() < 64 << 10), (1000, true));
        assert!(matches!(unpacked(&section(1001, 1001), 1000), Err(TableError::TooMuch(_))));
        assert!(matches!(unpacked(&section(u64::MAX, 10), u64::MAX), Err(TableError::Malformed)));
        assert!(matches!(unpacked(&[0; CHDR - 1], 1000), Err(TableError::Malformed)));
    }
}
