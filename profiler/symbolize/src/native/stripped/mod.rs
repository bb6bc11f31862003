//! What a stripped file tells of functions that it exports no symbol of: production's C libraries, and every program.
//!
//! In: an open file without .symtab, whose symbols are nowhere else. Out: the function around an address, and its name
//! where the file's own code proves one ([`By`]); else it is known by where it begins. Nothing is read of a process, so
//! that none can have others' code named as it likes. Where it comes from:
//! - bounds: .eh_frame, which strip leaves where it is, for exceptions need it (Linux Standard Base, Core 5.0, 10.6); where
//!   there is next to none, as in musl's C library, the code itself ([`emberscope_arch::Arch::functions`]);
//! - implementations of an exported function among which the loader chooses by what the CPU can (`STT_GNU_IFUNC`, the
//!   gABI's GNU extensions: memcpy, strlen, exp): the chooser's code loads the address of each;
//! - parts that code plays: what the ELF header names as the first instruction; what it hands to the C library to be
//!   called as `main`; what calls a pointer and ends its thread, or first of all calls `exit` with what came of it (glibc 2.36, clone3.S,
//!   nptl/pthread_create.c, sysdeps/nptl/libc_start_call_main.h).
//!
//! Limits: [`MAX_FRAMES`] of unwind information, [`MAX_FUNCTIONS`], [`MAX_TEXT`] of code that is searched.

mod bounds;
mod code;

use super::table::By;
use code::Does;
use emberscope_target::elf::{CodeImage, Exported, Headers, Segment, exported_symbols, file_offset};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes of .eh_frame: a libjvm has 3 MB, a libLLVM 10.
const MAX_FRAMES: u64 = 16 << 20;
/// Functions of a file that are kept, 8 bytes each.
const MAX_FUNCTIONS: usize = 512 << 10;
/// Bytes of code of the C library that are searched for the parts it plays: glibc has 1.4 MB.
const MAX_TEXT: u64 = 8 << 20;
/// Bytes of code of one function that is looked at: the largest of these have some hundred.
const MAX_CODE: u64 = 4096;
/// Bytes of the table of exported symbols, with their names.
const MAX_EXPORTS: u64 = 4 << 20;
/// Exported functions that have a choice of implementations: glibc has 90, libm 100.
const MAX_CHOOSERS: usize = 1024;
/// The C library's function that calls `main`, and the one that starts threads: a file that exports either is (a part of)
/// the C library. Up to glibc 2.33 they are in two files.
const LIBRARY: [&str; 2] = ["__libc_start_main", "pthread_create"];
const EXIT: &str = "exit";

/// Named by what it does: it is where threads begin, or where `main` is called from.
const THREAD_START: &str = "[thread start]";
const PROCESS_START: &str = "[process start]";

/// The functions of a file.
pub struct Stripped {
    /// First address and the one behind the last, ascending, apart from each other.
    functions: Box<[(u32, u32)]>,
    names: BTreeMap<u32, (By, Box<str>)>,
}

impl Stripped {
    /// Reads what the open `file` tells, if that takes at most `limit` bytes. None: it has no unwind information, or
    /// too much.
    pub fn read(headers: &Headers, file: &File, segments: &[Segment], limit: u64) -> Option<Self> {
        let frames = headers
            .section_address(file, ".eh_frame")
            .and_then(|address| Some((address, headers.section(file, ".eh_frame", MAX_FRAMES)?)));
        let told = frames.as_ref().map_or(0, |(_, frames)| frames.len() as u64);
        let image = emberscope_arch::OWN
            .functions
            .and_then(|functions| Some((functions, CodeImage::read(headers, file, told)?)));
        let functions = match (&image, &frames) {
            (Some((functions, image)), _) => bounds::in_code(*functions, image),
            (None, Some((address, frames))) => bounds::functions(frames, *address, MAX_FUNCTIONS),
            (None, None) => return None,
        };
        drop(frames);
        let mut stripped = Self { functions, names: BTreeMap::new() };
        if stripped.functions.is_empty() || stripped.bytes() > limit {
            return None;
        }
        let code = Code { file, segments };
        let exports = exports(headers, file, image.is_some());
        for (address, name) in stripped.implementations(&exports, &code) {
            stripped.names.insert(address, (By::Choice, name));
        }
        // A symbol without a size, as code in assembler has it, is a function's that was found.
        for symbol in exports.iter().filter(|symbol| image.is_some() && !symbol.chooses) {
            if let Some(start) = stripped.begins(symbol.address) {
                stripped.names.entry(start).or_insert_with(|| (By::Export, symbol.name.clone()));
            }
        }
        if exports.iter().any(|symbol| LIBRARY.contains(&&*symbol.name)) {
            stripped.library(&exports, &code);
            if image.is_some() {
                stripped.caller_of_main(&exports, &code);
            }
        } else {
            stripped.program(headers.entry(), &code);
        }
        Some(stripped)
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        let names = self.names.values().map(|(_, name)| name.len() + 64).sum::<usize>();
        (size_of_val(&*self.functions) + names) as u64
    }

    /// The function around an address: its name, if the file proves one, and its addresses.
    pub fn name(&self, address: u64) -> Option<(By, &str, Range<u64>)> {
        let (start, end) = self.around(address)?;
        let holds = u64::from(start)..u64::from(end);
        Some(match self.names.get(&start) {
            Some((by, name)) => (*by, name, holds),
            None => (By::Bounds, "", holds),
        })
    }

    fn around(&self, address: u64) -> Option<(u32, u32)> {
        let address = u32::try_from(address).ok()?;
        let before = self.functions.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        self.functions.get(before).copied().filter(|(_, end)| address < *end)
    }

    fn begins(&self, address: u64) -> Option<u32> {
        self.around(address).map(|(start, _)| start).filter(|start| u64::from(*start) == address)
    }

    /// The functions that exported ones choose among, and what these are called.
    fn implementations(&self, exports: &[Exported], code: &Code<'_>) -> BTreeMap<u32, Box<str>> {
        let mut found: BTreeMap<u32, &str> = BTreeMap::new();
        for chooser in exports.iter().filter(|symbol| symbol.chooses).take(MAX_CHOOSERS) {
            let end = chooser.address.saturating_add(chooser.size.min(MAX_CODE));
            let Some(bytes) = code.bytes(chooser.address..end) else { continue };
            for start in code::loads(&bytes, chooser.address).into_iter().filter_map(|to| self.begins(to)) {
                let name = found.entry(start).or_insert(&chooser.name);
                if rank(&chooser.name) < rank(name) {
                    *name = &chooser.name;
                }
            }
        }
        found.into_iter().map(|(start, name)| (start, name.into())).collect()
    }

    /// Names what the C library calls threads' first functions and `main` from.
    fn library(&mut self, exports: &[Exported], code: &Code<'_>) {
        let exit = exports.iter().find(|symbol| &*symbol.name == EXIT).map(|symbol| symbol.address);
        let executable = code.segments.iter().filter(|segment| segment.executable);
        // As many segments as a file likes, of the same bytes.
        let mut left = MAX_TEXT;
        for segment in executable {
            let len = segment.file_size.min(left);
            left -= len;
            let end = segment.address.saturating_add(len);
            let Some(bytes) = code.bytes(segment.address..end) else { continue };
            let mut last = None;
            for at in code::system_calls(&bytes).map(|at| segment.address + at as u64) {
                let Some((start, end)) = self.around(at) else { continue };
                if last.replace(start) == Some(start) || self.names.contains_key(&start) {
                    continue;
                }
                let (from, to) = (u64::from(start), u64::from(end).min(u64::from(start) + MAX_CODE));
                let Some(body) = code.bytes(from..to) else { continue };
                let Does { calls_pointer, ends_thread, calls_then } = code::does(&body, from);
                if calls_pointer && ends_thread {
                    let main = exit.is_some_and(|exit| calls_then.contains(&exit));
                    let name = if main { PROCESS_START } else { THREAD_START };
                    self.names.insert(start, (By::Part, name.into()));
                }
            }
        }
    }

    /// Names what calls `main`, of a C library that does not end the process itself then: musl's (src/env/__libc_start_main.c).
    fn caller_of_main(&mut self, exports: &[Exported], code: &Code<'_>) {
        let exit = exports.iter().find(|symbol| &*symbol.name == EXIT).map(|symbol| symbol.address);
        let Some(exit) = exit else { return };
        let mut left = MAX_TEXT;
        for (start, end) in &*self.functions {
            let (from, to) = (u64::from(*start), u64::from(*end).min(u64::from(*start) + MAX_CODE));
            left = left.saturating_sub(to - from);
            let Some(body) = code.bytes(from..to).filter(|_| left > 0) else { continue };
            let Does { calls_pointer, calls_then, .. } = code::does(&body, from);
            if calls_pointer && calls_then.contains(&exit) {
                self.names.entry(*start).or_insert((By::Part, PROCESS_START.into()));
            }
        }
    }

    /// Names a program's first function, and the one that it has called as `main`.
    fn program(&mut self, entry: u64, code: &Code<'_>) {
        let Some((start, end)) = self.around(entry).filter(|(start, _)| u64::from(*start) == entry) else {
            return;
        };
        self.names.insert(start, (By::Part, "_start".into()));
        let body = code.bytes(entry..u64::from(end).min(entry + MAX_CODE));
        let main = body.and_then(|body| code::first_argument(&body, entry));
        if let Some(main) = main.and_then(|main| self.begins(main)) {
            self.names.insert(main, (By::Part, "main".into()));
        }
    }
}

/// How names of one implementation are ordered, the one that is shown first: of aliases the C library has `memmove` and
/// `memcpy`, `strchr` and `index`, `exp` and `expf32x`.
fn rank(name: &str) -> (bool, usize, Reverse<&str>) {
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    (name.starts_with('_'), digits, Reverse(name))
}

/// The exported functions that matter here, or all.
fn exports(headers: &Headers, file: &File, all: bool) -> Vec<Exported> {
    let Some(table) = headers.symbol_tables().into_iter().find(|table| table.dynamic) else {
        return Vec::new();
    };
    let wanted = |name: &str, chooses: bool| all || chooses || name == EXIT || LIBRARY.contains(&name);
    exported_symbols(file, &table, MAX_EXPORTS, wanted).unwrap_or_default()
}

/// A file's code by its addresses.
struct Code<'a> {
    file: &'a File,
    segments: &'a [Segment],
}

impl Code<'_> {
    /// Those bytes, all of them in the file.
    fn bytes(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let from = file_offset(self.segments, range.start)?;
        let len = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, from).ok()?;
        Some(bytes)
    }
}

// Nearly all of them are of that architecture's code.
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
