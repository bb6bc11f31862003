//! The table with which a Go program names its own frames: `.gopclntab`, which stays when a program is stripped.
//!
//! In: the section of a program built by Go 1.18 or newer. Out: names by address. Layout: Go's
//! src/debug/gosym/pclntab.go and src/runtime/symtab.go (1.18 to 1.24): a header; names; an array of (entry, offset of the
//! function's record), both relative; the records, whose second word says where the name is. Where Go's code begins is in
//! the header until Go 1.25, except in position independent programs; else it is where `.text` begins, unless there is C
//! code before it: the program's entry, which is a function of Go's own if all is Go's, tells.

use emberscope_target::elf::Headers;
use std::fs::File;

/// Magic numbers: of Go 1.18 and 1.20, each since then.
const MAGICS: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// Largest section: that of Kubernetes' kubelet has 30 MB.
const MAX_BYTES: u64 = 64 << 20;
/// Largest number of functions.
const MAX_FUNCTIONS: usize = 4 << 20;
/// Longest name that is looked at.
const MAX_NAME: usize = 4096;

/// What the first function of a program of Go's own linker is called (src/runtime/rt0_linux_amd64.s).
const ENTRY: &str = "_rt0_";

/// Functions in order of their addresses.
pub struct GoTable {
    /// Address of the first, and one past the last.
    code: (u64, u64),
    /// Where each begins, from the first one's address, and where its name is.
    functions: Box<[(u32, u32)]>,
    names: Box<[u8]>,
}

impl GoTable {
    /// Reads the table of a program, if it has one that takes at most `limit` bytes.
    pub fn read(headers: &Headers, file: &File, limit: u64) -> Option<Self> {
        let section = [".gopclntab", ".data.rel.ro.gopclntab"]
            .into_iter()
            .find_map(|name| headers.section(file, name, MAX_BYTES.min(limit)))?;
        Self::parse(&section, headers.section_address(file, ".text")?, headers.entry())
    }

    /// From the section's bytes, where the code is taken to begin, and where the program does.
    fn parse(bytes: &[u8], text: u64, entry: u64) -> Option<Self> {
        let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let index = |at: usize| usize::try_from(word(at)?).ok();
        let half = |at: usize| bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes);
        let (magic, pointer) = (half(0)?, *bytes.get(7)?);
        if !MAGICS.contains(&magic) || pointer != 8 {
            return None;
        }
        let count = index(8).filter(|count| *count <= MAX_FUNCTIONS)?;
        let told = word(24).filter(|start| *start != 0);
        let start = told.unwrap_or(text);
        let (names_at, names_end, table) = (index(32)?, index(40)?, index(64)?);
        let names = bytes.get(names_at..names_end)?;
        let mut functions = Vec::with_capacity(count);
        for nth in 0..count {
            let at = table.checked_add(8 * nth)?;
            let record = table.checked_add(half(at.checked_add(4)?)? as usize)?;
            functions.push((half(at)?, half(record.checked_add(4)?)?));
        }
        let end = half(table.checked_add(8 * count)?)?;
        let sorted = functions.is_sorted_by_key(|(entry, _)| *entry);
        let code = (start, start.saturating_add(u64::from(end)));
        let table = Self { code, functions: functions.into(), names: names.into() };
        let right = || told.is_some() || table.name(entry).is_some_and(|name| name.starts_with(ENTRY));
        (sorted && right()).then_some(table)
    }

    /// The function at an address.
    pub fn name(&self, address: u64) -> Option<String> {
        if address >= self.code.1 {
            return None;
        }
        let offset = u32::try_from(address.checked_sub(self.code.0)?).ok()?;
        let after = self.functions.partition_point(|(entry, _)| *entry <= offset);
        let (_, name) = self.functions.get(after.checked_sub(1)?)?;
        let rest = self.names.get(*name as usize..)?;
        let end = rest.iter().take(MAX_NAME).position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(rest.get(..end)?).into_owned()).filter(|name| !name.is_empty())
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        (8 * self.functions.len() + self.names.len()) as u64
    }
}
