//! The symbols of a file that has too many to be held: where each function begins, how far it reaches, and where in the file its
//! name is, which is read when the function runs.
//!
//! In: a file whose symbol table does not fit, and where its code is. Out: the symbol of an address, by the rule of
//! [`super::many`]. Less than ten bytes each: libtorch_cpu has 91 MB of symbols in the file, libtensorflow_cc 205, polars 40.
//! Only .symtab is read, in pieces, and of the names nothing.

use super::many::{entries, in_order};
use crate::packed::{Blocks, Found, put, take};
use emberscope_target::elf::{ElfError, Headers, Segment};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Symbols of a block, which is read from its beginning.
const BLOCK: usize = 64;
/// Bytes of symbols of code in the making: 1.5 million, twice as many as libtensorflow_cc has.
const MAX_ENTRIES: u64 = 24 << 20;
/// Longest name, and how much is read at first: nearly all are shorter.
const MAX_NAME: u64 = 64 << 10;
const SHORT: u64 = 512;

/// A file's functions by address.
#[derive(Debug, Default)]
pub struct Large {
    /// Of each function its distance from the one before, its size, and how far its name is from the other's.
    blocks: Blocks,
    /// The table of names: offset in the file and bytes.
    strings: (u64, u64),
}

/// A function as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Function {
    start: u64,
    size: u64,
    name: u32,
    /// Where the next one begins.
    next: u64,
}

impl Large {
    /// Of an open file; at most about `limit` bytes.
    ///
    /// # Errors
    /// [`ElfError::TooLarge`]: there are more functions. [`ElfError::Malformed`]: it has no .symtab. [`ElfError::Io`]: reading
    /// failed.
    pub fn of(file: &File, headers: &Headers, code: &[Segment], limit: u64) -> Result<Self, ElfError> {
        let table = headers.symbol_tables().into_iter().find(|table| !table.dynamic);
        let table = table.ok_or(ElfError::Malformed)?;
        let mut all = entries(file, table.symbols, code, MAX_ENTRIES)?;
        let mut large = Self { strings: table.strings, ..Self::default() };
        let (mut before, mut len) = ((0, 0), 0);
        in_order(&mut all, |start, symbol| {
            if len % BLOCK == 0 {
                large.blocks.begin(start);
                before = (start, 0);
            }
            let bytes = &mut large.blocks.bytes;
            put(bytes, start - before.0);
            put(bytes, symbol.size());
            put(bytes, zigzag(i64::from(symbol.name()) - before.1));
            (before, len) = ((start, i64::from(symbol.name())), len + 1);
            match bytes.len() as u64 {
                bytes if bytes > limit => Err(ElfError::TooLarge(bytes)),
                _ => Ok(()),
            }
        })?;
        large.blocks.end();
        Ok(large)
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        self.blocks.memory() as u64
    }

    /// The name of an address, and the addresses around it that have it too. `file` is the file, or a copy of it.
    ///
    /// # Errors
    /// Reading failed.
    pub fn name(&self, file: &File, address: u64) -> io::Result<Option<(String, Range<u64>)>> {
        let Some(found) = self.find(address).filter(|it| it.size == 0 || it.size > address - it.start) else {
            return Ok(None);
        };
        let holds = match found.size {
            0 => address..address.saturating_add(1),
            size => found.start..found.next.min(found.start.saturating_add(size)),
        };
        for most in [SHORT, MAX_NAME] {
            let Some(rest) = self.strings.1.checked_sub(u64::from(found.name)) else { break };
            let mut bytes = vec![0; rest.min(most) as usize];
            file.read_exact_at(&mut bytes, self.strings.0.saturating_add(u64::from(found.name)))?;
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                bytes.truncate(end);
                return Ok(String::from_utf8(bytes).ok().map(|name| (name, holds)));
            }
        }
        Ok(None)
    }

    /// The last function that begins at or before an address.
    fn find(&self, address: u64) -> Option<Function> {
        let Found { first, bytes: mut rest, after: mut next } = self.blocks.find(address)?;
        let (mut start, mut name, mut found) = (first, 0, None);
        while !rest.is_empty() {
            start += take(&mut rest)?;
            if start > address {
                next = start;
                break;
            }
            let size = take(&mut rest)?;
            name += unzigzag(take(&mut rest)?);
            found = Some((start, size, name));
        }
        let (start, size, name) = found?;
        Some(Function { start, size, name: u32::try_from(name).ok()?, next })
    }
}

/// Small numbers of either sign as small ones without.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::many::Many;

    /// This test's own program has some 10,000 functions: what is packed says the same of them.
    #[test]
    fn it_says_what_packed_symbols_say() {
        let file = File::open("/proc/self/exe").unwrap();
        let headers = Headers::read(&file, file.metadata().unwrap().len()).unwrap();
        let segments = headers.segments(&file).unwrap();
        let large = Large::of(&file, &headers, &segments, u64::MAX).unwrap();
        let many = Many::of(&headers.image(&file, u64::MAX).unwrap(), &segments, u64::MAX).unwrap();
        let code = segments.iter().find(|segment| segment.executable).unwrap();
        let (mut named, step) = (0, (code.memory_size / 20_000).max(1) as usize);
        for address in (code.address..code.address + code.memory_size).step_by(step) {
            let ours = large.name(&file, address).unwrap();
            // What only .dynsym has is nothing here: there is none in a program of tests.
            assert_eq!(ours, many.name(address), "{address:x}");
            named += usize::from(ours.is_some());
        }
        assert!(named > 10_000, "{named}");
        assert!(large.bytes() < 10 * large.blocks.len() as u64 * BLOCK as u64, "{}", large.bytes());
    }

    #[test]
    fn what_is_too_much_or_not_there_is_told() {
        let file = File::open("/proc/self/exe").unwrap();
        let headers = Headers::read(&file, file.metadata().unwrap().len()).unwrap();
        let segments = headers.segments(&file).unwrap();
        assert!(matches!(Large::of(&file, &headers, &segments, 1000), Err(ElfError::TooLarge(_))));
        let libc = File::open(emberscope_testkit::library("libc.so.6")).unwrap();
        let headers = Headers::read(&libc, libc.metadata().unwrap().len()).unwrap();
        let stripped = Large::of(&libc, &headers, &headers.segments(&libc).unwrap(), u64::MAX);
        assert!(matches!(stripped, Err(ElfError::Malformed)), "no .symtab");
    }

    #[test]
    fn a_name_that_is_not_there_or_has_no_end_is_none() {
        use std::io::Write;
        let of = |strings: (u64, u64), bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            let mut large = Large { strings, ..Large::default() };
            large.blocks.begin(16);
            [0, 4, zigzag(1), 4, 0, zigzag(100)].iter().for_each(|word| put(&mut large.blocks.bytes, *word));
            (large, file)
        };
        let (large, file) = of((0, 8), b"\0name\0\0\0");
        assert_eq!(large.name(&file, 17).unwrap(), Some(("name".to_owned(), 16..20)));
        assert_eq!(large.name(&file, 15).unwrap(), None);
        // The name of the second is behind all names.
        assert_eq!(large.name(&file, 20).unwrap(), None);
        let (large, file) = of((0, 100_000), &[b'x'; 100_000]);
        assert_eq!(large.name(&file, 17).unwrap(), None, "no end");
        let (large, file) = of((0, 600), &[b'x'; 8]);
        assert!(large.name(&file, 17).is_err(), "the file is shorter than it said");
        let (large, file) = of((0, 8), b"\0\xff\xfe\0\0\0\0\0");
        assert_eq!(large.name(&file, 16).unwrap(), None, "no text");
    }

    #[test]
    fn numbers_of_either_sign_come_back() {
        for number in [0, 1, -1, 63, -64, i64::from(u32::MAX), -i64::from(u32::MAX)] {
            assert_eq!(unzigzag(zigzag(number)), number);
        }
    }
}
