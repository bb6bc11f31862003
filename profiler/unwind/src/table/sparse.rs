//! Unwind information that is too much to be read at once: a part of the code in, the part's table out.
//!
//! Of .eh_frame, that of libtorch_cpu has 18 MB and that of libtensorflow_cc 31, most is of code that a process never
//! runs. Its index (.eh_frame_hdr: where each function begins and which entry it has, in order; LSB Core, Exception
//! Frames) leads to the entries of one part without the others being read. Each entry is put behind a copy of the head
//! that it shares, as a section of two entries, which gimli reads as any. Limits: functions, bytes and rows of a part.

use super::build::Filling;
use super::elf::{Bytes, Found};
use super::image::{Image, Segment, places};
use super::rules::{Function, Reader, Rules, eh_frame};
use super::{Table, TableError};
use emberscope_target::elf::u32_at;
use gimli::UnwindContext;
use std::collections::HashMap;
use std::hash::Hasher;
use std::ops::Range;

/// Bytes of code of a part, as bits: 64 pages.
pub const PART_SHIFT: u32 = 18;
/// Bytes of an entry of the index, and of its head: version, three encodings, .eh_frame's address, how many entries.
const ENTRY: u64 = 8;
const HEAD: u64 = 12;
/// What every linker writes: version 1, `pcrel | sdata4`, `udata4`, `datarel | sdata4`.
const ENCODINGS: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// Functions of all parts; libtensorflow_cc has 730,000.
const MAX_ENTRIES: u64 = 4 << 20;
/// Functions of a part: one in 16 bytes.
const MAX_FUNCTIONS: usize = 16_384;
/// Bytes of an entry, or of the head that entries share.
const MAX_ENTRY: usize = 64 << 10;
/// Bytes that are read at once, and how often for one part: 4 MiB. A part of polars has some 20 KB of entries.
const BLOCK: u64 = 16 << 10;
const MAX_BLOCKS: usize = 256;
/// Bytes of the index that are hashed at once.
const CHUNK: u64 = 64 << 10;

/// A file's unwind information and its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// The parts of the file that are mapped.
    segments: Vec<Segment>,
    /// The section .eh_frame.
    frames: Found,
    /// The index, without its head, and the address that its entries count from.
    index: Range<u64>,
    base: u64,
}

impl Indexed {
    /// Reads the headers of a file. None: it has no index, or one that is not as linkers write it.
    ///
    /// # Errors
    /// As [`Image::of_file`].
    pub fn of(bytes: &dyn Bytes) -> Result<Option<Self>, TableError> {
        let found = places(bytes)?;
        let Some((frames, header)) = found.eh_frame.zip(found.index) else { return Ok(None) };
        let Ok(head) = bytes.part(header.offset, HEAD) else { return Ok(None) };
        if !head.starts_with(&ENCODINGS) {
            return Ok(None);
        }
        let count = u64::from(u32_at(&head, 8));
        if count == 0 || count > MAX_ENTRIES || HEAD + count * ENTRY > header.size {
            return Ok(None);
        }
        let from = header.offset.checked_add(HEAD).ok_or(TableError::Malformed)?;
        let to = from.checked_add(count * ENTRY).ok_or(TableError::Malformed)?;
        Ok(Some(Self { segments: found.segments, frames, index: from..to, base: header.address }))
    }

    /// The file without its unwind information.
    pub fn image(&self) -> Image {
        Image { segments: self.segments.clone(), ..Image::default() }
    }

    /// A hash, as [`Image::key`], of the index instead of what it leads to.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn key(&self, bytes: &dyn Bytes) -> Result<u64, TableError> {
        let mut hash = std::hash::DefaultHasher::new();
        hash.write_u64(self.image().key());
        for word in [self.frames.address, self.frames.size, self.base] {
            hash.write_u64(word);
        }
        let mut at = self.index.start;
        while at < self.index.end {
            let len = CHUNK.min(self.index.end - at);
            hash.write(&bytes.part(at, len)?);
            at += len;
        }
        Ok(hash.finish().max(1))
    }

    /// The table of a part: code from `part` times 256 KiB on, in the file's own address space.
    ///
    /// # Errors
    /// [`TableError::Nothing`]: no function with rows is in it. [`TableError::TooMuch`]: more than the limits.
    /// [`TableError::Malformed`], [`TableError::Unreadable`]: the index leads out of the file, or reading failed.
    pub fn part(&self, bytes: &dyn Bytes, part: u32) -> Result<Table, TableError> {
        let (low, high) = self.image().code()?;
        let from = u64::from(part) << PART_SHIFT;
        let code = from.max(low & !0xfff)..(from + (1 << PART_SHIFT)).min(high);
        if code.is_empty() {
            return Err(TableError::Nothing);
        }
        let functions = self.functions(bytes, &code)?;
        let mut entries =
            Entries { bytes, frames: self.frames, blocks: HashMap::new(), heads: HashMap::new() };
        let text = self.segments.iter().find(|s| s.code).map_or(0, |s| s.address);
        let (mut rules, mut context) = (Rules::new(), UnwindContext::new_in());
        let mut filling = Filling::of((code.start, code.end))?;
        let mut rows = Vec::new();
        for (nth, (start, entry)) in functions.iter().enumerate() {
            let next = functions.get(nth + 1).map_or(u64::MAX, |(next, _)| *next);
            let Some(alone) = entries.alone(*entry)? else { continue };
            let (section, bases) = eh_frame(&alone.section, alone.address, text);
            let mut reader = Reader::new(&section, bases);
            let Some(read) = reader.entry(alone.entry) else { continue };
            if read.initial_address() == *start && reader.rows(&read, &mut context, &mut rules, &mut rows)? {
                rules.functions += 1;
                filling.add(Function { start: *start, end: read.end_address(), next, rows: &rows })?;
            }
        }
        if rules.functions == 0 { Err(TableError::Nothing) } else { filling.finish(rules) }
    }

    /// Functions of this code and the one before, which may reach into it: where each begins and its entry in .eh_frame.
    fn functions(&self, bytes: &dyn Bytes, code: &Range<u64>) -> Result<Vec<(u64, u64)>, TableError> {
        let count = (self.index.end - self.index.start) / ENTRY;
        let entry = |bytes: &[u8], at: usize| {
            let word = |at| i64::from(u32_at(bytes, at) as i32);
            let of = |word| self.base.wrapping_add_signed(word);
            (of(word(at)), of(word(at + 4)))
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            let read = bytes.part(self.index.start + middle * ENTRY, ENTRY)?;
            if entry(&read, 0).0 <= code.start { low = middle + 1 } else { high = middle }
        }
        let mut at = self.index.start + low.saturating_sub(1) * ENTRY;
        let mut functions: Vec<(u64, u64)> = Vec::new();
        while at < self.index.end {
            let len = CHUNK.min(self.index.end - at);
            let read = bytes.part(at, len)?;
            for (start, entry) in read.chunks_exact(ENTRY as usize).map(|chunk| entry(chunk, 0)) {
                if start >= code.end {
                    return Ok(functions);
                }
                // The linker sorts them; two at one address are one, by its first entry.
                if functions.last().is_some_and(|(before, _)| *before >= start) {
                    continue;
                }
                if functions.len() >= MAX_FUNCTIONS {
                    return Err(TableError::TooMuch("functions of a part"));
                }
                functions.push((start, entry));
            }
            at += len;
        }
        Ok(functions)
    }
}

/// An entry behind its head: a section of its own.
struct Alone {
    section: Vec<u8>,
    /// What the section's first byte would have as its address, for what counts from an entry's place.
    address: u64,
    /// Where the entry is in it.
    entry: u32,
}

/// Reads entries of .eh_frame, a block of the file at a time.
struct Entries<'a> {
    bytes: &'a dyn Bytes,
    frames: Found,
    blocks: HashMap<u64, Vec<u8>>,
    /// Heads that entries share, by their places in the section.
    heads: HashMap<u64, Vec<u8>>,
}

impl Entries<'_> {
    /// The entry at an address; None: there is none that can be read.
    fn alone(&mut self, address: u64) -> Result<Option<Alone>, TableError> {
        let Some(at) = address.checked_sub(self.frames.address) else { return Ok(None) };
        let Some(mut entry) = self.entry(at)? else { return Ok(None) };
        // How far before this word the head is (LSB Core, CIE Pointer); 0: it is a head itself.
        let distance = u64::from(u32_at(&entry, 4));
        let Some(head_at) = (at + 4).checked_sub(distance).filter(|_| distance != 0) else { return Ok(None) };
        let head = match self.heads.get(&head_at) {
            Some(head) => head.clone(),
            None => {
                let Some(head) = self.entry(head_at)? else { return Ok(None) };
                self.heads.insert(head_at, head.clone());
                head
            }
        };
        let len = head.len() as u32;
        let word = entry.get_mut(4..8).ok_or(TableError::Malformed)?;
        word.copy_from_slice(&(len + 4).to_le_bytes());
        let address = address.wrapping_sub(u64::from(len));
        Ok(Some(Alone { section: [head, entry].concat(), address, entry: len }))
    }

    /// The bytes of an entry with its length, by its place in the section; None: it ends the section, or is none.
    fn entry(&mut self, at: u64) -> Result<Option<Vec<u8>>, TableError> {
        let head = self.read(at, 4)?;
        let len = u32_at(&head, 0) as usize;
        // From 0xfffffff0 on the length would stand elsewhere: no linker writes that.
        if !(4..=MAX_ENTRY).contains(&len) {
            return Ok(None);
        }
        self.read(at, 4 + len).map(Some)
    }

    fn read(&mut self, at: u64, len: usize) -> Result<Vec<u8>, TableError> {
        let end =
            at.checked_add(len as u64).filter(|end| *end <= self.frames.size).ok_or(TableError::Malformed)?;
        let mut read = Vec::with_capacity(len);
        let mut from = at;
        while from < end {
            let (block, skipped) = (from / BLOCK, from % BLOCK);
            if !self.blocks.contains_key(&block) {
                if self.blocks.len() >= MAX_BLOCKS {
                    return Err(TableError::TooMuch("bytes of a part's unwind information"));
                }
                let begin = block * BLOCK;
                let size = BLOCK.min(self.frames.size - begin);
                let offset = self.frames.offset.checked_add(begin).ok_or(TableError::Malformed)?;
                self.blocks.insert(block, self.bytes.part(offset, size)?);
            }
            let bytes = self.blocks.get(&block).map(Vec::as_slice).unwrap_or_default();
            let rest = bytes.get(skipped as usize..).unwrap_or_default();
            let take = rest.len().min((end - from) as usize);
            if take == 0 {
                return Err(TableError::Malformed);
            }
            read.extend_from_slice(rest.get(..take).unwrap_or_default());
            from += take as u64;
        }
        Ok(read)
    }
}

/// The key of a file's part.
pub fn part_key(file: u64, part: u32) -> u64 {
    let mut hash = std::hash::DefaultHasher::new();
    hash.write_u64(file);
    hash.write_u32(part);
    hash.finish().max(1)
}

// They read libraries of this architecture.
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
