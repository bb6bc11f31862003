//! Finds symbols by their names in a library's tables: an open file in, addresses out.
//!
//! Both tables are read in pieces, so that a table of any size costs 64 KiB. Layout: elf(5), 64 bits,
//! little endian.

use super::{ElfError, SymbolTable, u32_at, u64_at};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

const PIECE: usize = 64 << 10;
/// Longest name that can be found.
const MAX_NAME: usize = 256;
/// Largest table that is read: a libjvm with all debug builds' symbols has 40 MB of names.
const MAX_TABLE: u64 = 128 << 20;
pub const ENTRY: usize = 24;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

/// A symbol that a file defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The address, as linked.
    pub address: u64,
    /// How many bytes the symbol has; 0 where the file does not tell.
    pub size: u64,
}

/// Addresses (as linked) of those of `names` that `table` defines.
///
/// # Errors
/// [`ElfError::TooLarge`]: the table of names is larger than 128 MiB. [`ElfError::Malformed`], [`ElfError::Io`]: the
/// tables cannot be read.
pub fn find(
    file: &File,
    table: &SymbolTable,
    names: &[&'static str],
) -> Result<HashMap<&'static str, u64>, ElfError> {
    let found = find_sized(file, table, names)?;
    Ok(found.into_iter().map(|(name, symbol)| (name, symbol.address)).collect())
}

/// Those of `names` that `table` defines, with their addresses and sizes.
///
/// # Errors
/// As [`find`].
pub fn find_sized(
    file: &File,
    table: &SymbolTable,
    names: &[&'static str],
) -> Result<HashMap<&'static str, Symbol>, ElfError> {
    let wanted = name_offsets(file, table.strings, names)?;
    let mut found = HashMap::new();
    if wanted.is_empty() {
        return Ok(found);
    }
    each_symbol(file, table, |name, symbol| {
        if let Some(name) = wanted.get(&name) {
            found.entry(*name).or_insert(symbol);
        }
    })?;
    Ok(found)
}

/// What `table` defines under names that begin with `start`, as far as all names together have `limit` bytes.
///
/// # Errors
/// As [`find`].
pub fn find_starting(
    file: &File,
    table: &SymbolTable,
    start: &str,
    limit: usize,
) -> Result<Vec<(Box<str>, Symbol)>, ElfError> {
    let (mut wanted, mut bytes) = (HashMap::new(), 0);
    each_name(file, table.strings, |at, name| {
        let text = name.starts_with(start.as_bytes()).then(|| std::str::from_utf8(name).ok());
        if let (Some(Some(name)), Ok(at)) = (text, u32::try_from(at)) {
            bytes += name.len();
            if bytes <= limit {
                wanted.insert(at, Box::<str>::from(name));
            }
        }
    })?;
    let mut found = Vec::new();
    if !wanted.is_empty() {
        // Each name once: symbols that share one are of no use to whoever asks by names.
        each_symbol(file, table, |name, symbol| {
            found.extend(wanted.remove(&name).map(|name| (name, symbol)));
        })?;
    }
    Ok(found)
}

/// A function that a file defines for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// As linked, without a version.
    pub name: Box<str>,
    /// As linked.
    pub address: u64,
    /// Bytes; 0 where the file does not tell.
    pub size: u64,
    /// It is called once, by the loader, and answers which implementation the name stands for (`STT_GNU_IFUNC`, elf.h).
    pub chooses: bool,
}

/// The functions that `table` defines for which `wanted` holds, by name and by whether they choose.
///
/// # Errors
///
/// [`ElfError::TooLarge`] where the table and its names together have more than `limit` bytes, which are held while it is
/// read, and [`ElfError::Io`] where they cannot be read.
pub fn exported(
    file: &File,
    table: &SymbolTable,
    limit: u64,
    wanted: impl Fn(&str, bool) -> bool,
) -> Result<Vec<Exported>, ElfError> {
    let bytes = table.symbols.1.saturating_add(table.strings.1);
    if bytes > limit {
        return Err(ElfError::TooLarge(bytes));
    }
    let mut names = vec![0; table.strings.1 as usize];
    file.read_exact_at(&mut names, table.strings.0)?;
    let mut symbols = vec![0; table.symbols.1 as usize];
    file.read_exact_at(&mut symbols, table.symbols.0)?;
    let symbol = |entry: &[u8]| {
        let (name, kind) = (names.get(u32_at(entry, 0) as usize..)?, entry.get(4)? & 15);
        // st_shndx 0: used here, defined elsewhere.
        let defined = entry.get(6..8)? != [0, 0] && matches!(kind, STT_FUNC | STT_GNU_IFUNC);
        // Not looked for its end further than a name may be long: all symbols may have one without.
        let end = name.iter().take(MAX_NAME + 1).position(|byte| *byte == 0).filter(|_| defined)?;
        let name = name.get(..end)?;
        let (name, chooses) = (std::str::from_utf8(name).ok()?, kind == STT_GNU_IFUNC);
        let (address, size) = (u64_at(entry, 8), u64_at(entry, 16));
        wanted(name, chooses).then(|| Exported { name: name.into(), address, size, chooses })
    };
    Ok(symbols.chunks_exact(ENTRY).filter_map(symbol).collect())
}

/// Hands the place of each symbol's name that the file defines, and the symbol, to `each`.
fn each_symbol(file: &File, table: &SymbolTable, mut each: impl FnMut(u32, Symbol)) -> Result<(), ElfError> {
    if table.symbols.1 > MAX_TABLE {
        return Err(ElfError::TooLarge(table.symbols.1));
    }
    each_entry(file, table.symbols, |entry| {
        // st_shndx 0: used here, defined elsewhere.
        if entry.get(6..8) != Some(&[0, 0]) {
            each(u32_at(entry, 0), Symbol { address: u64_at(entry, 8), size: u64_at(entry, 16) });
        }
        Ok(())
    })
}

/// Hands each entry of a table of symbols (offset and bytes in the file) to `each`, as it is there: 24 bytes (Elf64_Sym, elf.h).
///
/// # Errors
/// [`ElfError::Io`]: the table cannot be read. What `each` says, which ends it.
pub fn each_entry(
    file: &File,
    (start, size): (u64, u64),
    mut each: impl FnMut(&[u8]) -> Result<(), ElfError>,
) -> Result<(), ElfError> {
    let mut piece = vec![0u8; PIECE / ENTRY * ENTRY];
    let mut done = 0;
    while done < size {
        let len = (size - done).min(piece.len() as u64) as usize;
        let bytes = piece.get_mut(..len).ok_or(ElfError::Malformed)?;
        file.read_exact_at(bytes, start + done)?;
        bytes.chunks_exact(ENTRY).try_for_each(&mut each)?;
        done += len as u64;
    }
    Ok(())
}

/// Where the names are in the string table. A name may be the end of another one (linkers share them).
fn name_offsets(
    file: &File,
    strings: (u64, u64),
    names: &[&'static str],
) -> Result<HashMap<u32, &'static str>, ElfError> {
    let mut found = HashMap::new();
    each_name(file, strings, |at, text| {
        for name in names.iter().filter(|name| text.ends_with(name.as_bytes())) {
            if let Ok(offset) = u32::try_from(at + (text.len() - name.len()) as u64) {
                found.insert(offset, *name);
            }
        }
    })?;
    Ok(found)
}

/// Hands each text of the string table, and where it begins, to `each`; of one that is too long the end.
fn each_name(
    file: &File,
    (start, size): (u64, u64),
    mut each: impl FnMut(u64, &[u8]),
) -> Result<(), ElfError> {
    if size > MAX_TABLE {
        return Err(ElfError::TooLarge(size));
    }
    let mut kept: Vec<u8> = Vec::with_capacity(PIECE + MAX_NAME);
    let mut done = 0;
    while done < size {
        // What was not ended yet goes on in this piece.
        let tail = kept.iter().rposition(|b| *b == 0).map_or(0, |at| at + 1);
        kept.drain(..tail.max(kept.len().saturating_sub(MAX_NAME)));
        let base = done - kept.len() as u64;
        let (old, len) = (kept.len(), (size - done).min(PIECE as u64) as usize);
        kept.resize(old + len, 0);
        file.read_exact_at(kept.get_mut(old..).ok_or(ElfError::Malformed)?, start + done)?;
        done += len as u64;
        let mut at = 0;
        for text in kept.split(|b| *b == 0) {
            let end = at + text.len();
            if end < kept.len() {
                each(base + at as u64, text);
            }
            at = end + 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn table(names: &[u8], symbols: &[(u32, u16, u64)]) -> (File, SymbolTable) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(names).unwrap();
        for (name, section, value) in symbols {
            file.write_all(&name.to_le_bytes()).unwrap();
            file.write_all(&[1, 0]).unwrap();
            file.write_all(&section.to_le_bytes()).unwrap();
            file.write_all(&value.to_le_bytes()).unwrap();
            file.write_all(&[0; 8]).unwrap();
        }
        let len = names.len() as u64;
        let symbols = (len, 24 * symbols.len() as u64);
        (file, SymbolTable { dynamic: false, symbols, strings: (0, len) })
    }

    #[test]
    fn finds_whole_names_and_shared_ends_across_pieces() {
        // "wanted" lies across the first piece's end; "ends" is the end of another name.
        let mut names = vec![b'x'; PIECE - 3];
        names[0] = 0;
        names[PIECE - 4] = 0;
        names.extend_from_slice(b"wanted\0not_wanted_\0unwanted_ends\0");
        let at = |text: &[u8]| names.windows(text.len()).position(|w| w == text).unwrap() as u32;
        let symbols = [(1, 5, 1), (at(b"wanted\0"), 0, 7), (at(b"wanted\0"), 5, 8), (at(b"ends\0"), 5, 9)];
        let (file, table) = table(&names, &symbols);
        let found = find(&file, &table, &["wanted", "ends", "absent"]).unwrap();
        assert_eq!(found, HashMap::from([("wanted", 8), ("ends", 9)]));
        let starting = |limit| {
            let found = find_starting(&file, &table, "wan", limit).unwrap();
            found.into_iter().map(|(name, symbol)| (String::from(name), symbol.address)).collect::<Vec<_>>()
        };
        assert_eq!(starting(6), [("wanted".to_owned(), 8)]);
        assert!(starting(5).is_empty());
    }

    #[test]
    fn is_bounded() {
        let (file, mut table) = table(b"\0a\0", &[(1, 1, 1)]);
        table.strings.1 = MAX_TABLE + 1;
        assert!(matches!(find(&file, &table, &["a"]), Err(ElfError::TooLarge(_))));
        table.strings.1 = 4 << 20;
        assert!(matches!(find(&file, &table, &["a"]), Err(ElfError::Io(_))));
        table.strings.1 = 3;
        table.symbols.1 = MAX_TABLE + 1;
        assert!(matches!(find(&file, &table, &["a"]), Err(ElfError::TooLarge(_))));
    }
}
