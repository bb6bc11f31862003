//! Takes the symbol tables out of a program file: an open file in, a sealed copy in memory out.
//!
//! The copy is a sparse memfd that holds the headers, the symbol and string tables and the notes at their
//! own offsets and nothing else (5 MB for a libjvm of 29 MB). It is there because the reader of symbols
//! maps the file: a target could truncate its own file meanwhile, and the daemon would die of SIGBUS; it
//! also outlives the process and the file. Sizes are checked before anything is copied.

use super::{ElfError, Headers, SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB, u16_at, within};
use rustix::fs::{MemfdFlags, SealFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What is needed of a file to name its addresses.
#[derive(Debug)]
pub struct Image {
    /// The sparse copy, sealed.
    pub file: File,
    /// How many bytes were copied.
    pub bytes: u64,
}

impl Headers {
    /// Copies the symbols, when they take at most `limit` bytes.
    ///
    /// # Errors
    /// [`ElfError::TooLarge`]: the symbols take more than `limit` bytes. [`ElfError::Malformed`]: a table lies outside
    /// of the file. [`ElfError::Io`]: reading failed, or there is no memory for the copy.
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
        let copy = memory_file()?;
        copy.set_len(self.size)?;
        for (offset, len) in parts {
            copy_range(file, &copy, self.size, (offset, len))?;
        }
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        rustix::fs::fcntl_add_seals(&copy, seals).map_err(io::Error::from)?;
        Ok(Image { file: copy, bytes })
    }
}

/// An empty file in memory, which can be sealed.
///
/// # Errors
/// memfd_create(2) fails: no descriptor or memory is left.
pub fn memory_file() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    Ok(File::from(rustix::fs::memfd_create("emberscope-symbols", flags)?))
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
