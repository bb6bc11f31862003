//! Where a C library keeps what a thread keeps under a key, by what the library tells debuggers.
//!
//! glibc has two numbers for libthread_db in .dynsym (nptl_db/structs.def, db_info.c; seen in 2.36): how many bytes `struct
//! pthread` has, and where in it `specific` is, which follows the block of the first keys. In: the mappings of a process's C library. Out: offsets
//! from `pthread_self()`. On x86-64 that is the thread pointer; on arm64 the thread pointer is behind the structure (TLS_DTV_AT_TP),
//! whose size differs from release to release. musl has its own, which are the same in 1.2.

use emberscope_target::ByFile;
use emberscope_target::elf::{Headers, bias, find_symbols};
use emberscope_target::maps::{Backing, Mapping};
use emberscope_target::memory::{Memory, ReadError, at};
use emberscope_target::open;
use std::fs::File;
use std::path::Path;

/// Bytes of `struct pthread`.
const SIZE: &str = "_thread_db_sizeof_pthread";
/// Bits of an element of `specific`, how many it has, and where it is: three words.
const SPECIFIC: &str = "_thread_db_pthread_specific";
/// Bytes of the first keys, which lie before `specific`: 32 of 16 bytes (`specific_1stblock`, nptl/descr.h).
const FIRST_BLOCK: u64 = 512;
/// No `struct pthread` has more bytes.
const MOST: u64 = 64 << 10;
/// What musl 1.2 has from `pthread_self()` on: `tsd`, and where the thread pointer is (src/internal/pthread_impl.h).
#[cfg(target_arch = "x86_64")]
const MUSL: &[Threads] = &[Threads { keys: 0x80, pointer: 0 }, Threads { keys: 0x88, pointer: 0 }];
#[cfg(not(target_arch = "x86_64"))]
const MUSL: &[Threads] = &[Threads { keys: 112, pointer: 200 }];
/// A glibc that tells nothing: what all have had on x86-64.
#[cfg(target_arch = "x86_64")]
const GLIBC: Option<Threads> = Some(Threads { keys: 0x310, pointer: 0 });
#[cfg(not(target_arch = "x86_64"))]
const GLIBC: Option<Threads> = None;

/// A C library's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Bytes from `pthread_self()` to the values of the first keys.
    pub keys: u32,
    /// Bytes from `pthread_self()` to the thread pointer.
    pub pointer: u32,
}

/// The C libraries that a process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Libraries {
    /// glibc, if it is known where that keeps them.
    pub glibc: Option<Threads>,
    /// musl.
    pub musl: &'static [Threads],
}

/// Where the two numbers are in a file, as linked.
#[derive(Debug)]
pub struct Places {
    size: u64,
    specific: u64,
    segments: Vec<emberscope_target::elf::Segment>,
}

/// What is known of C libraries' files.
pub type LibraryFiles = ByFile<Option<Places>>;

impl Libraries {
    /// Those of a process that nothing is known of.
    pub const UNTOLD: Self = Self { glibc: GLIBC, musl: MUSL };

    /// Of the process in `dir`, which maps these files of glibc.
    pub fn of(dir: &Path, glibcs: &[Mapping], memory: &impl Memory, files: &LibraryFiles) -> Self {
        let told = glibcs.iter().find_map(|mapping| glibc(dir, mapping, memory, files));
        Self { glibc: told.or(GLIBC), ..Self::UNTOLD }
    }
}

/// The mappings of a process that are of glibc, one of each file of it. Up to 2.33 threads are another library's.
pub fn glibcs(mappings: &[Mapping]) -> Vec<Mapping> {
    let first = |name: &&str| mappings.iter().find(|mapping| is_named(mapping, name)).cloned();
    ["libpthread", "libc.so.6", "libc-2"].iter().filter_map(first).collect()
}

fn is_named(mapping: &Mapping, prefix: &str) -> bool {
    let Backing::File { path, .. } = &mapping.backing else { return false };
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
}

fn glibc(dir: &Path, mapping: &Mapping, memory: &impl Memory, files: &LibraryFiles) -> Option<Threads> {
    let (file, stat) = open::mapped_file(dir, mapping).ok()?;
    let places = files.get(&stat, || Ok::<_, ReadError>(places(&file, stat.st_size as u64))).ok()?;
    let Places { size, specific, segments } = places.as_ref().as_ref()?;
    let bias = bias(segments, mapping)?;
    let read = |address: u64, offset: u64| memory.u32(at(address.wrapping_add(bias), offset).ok()?).ok();
    let (size, specific) = (u64::from(read(*size, 0)?), u64::from(read(*specific, 8)?));
    let keys = specific.checked_sub(FIRST_BLOCK).filter(|keys| keys + FIRST_BLOCK <= size && size <= MOST)?;
    let pointer = if cfg!(target_arch = "x86_64") { 0 } else { size };
    Some(Threads { keys: keys as u32, pointer: pointer as u32 })
}

fn places(file: &File, size: u64) -> Option<Places> {
    let headers = Headers::read(file, size).ok()?;
    let segments = headers.segments(file).ok()?;
    headers.symbol_tables().iter().find_map(|table| {
        let found = find_symbols(file, table, &[SIZE, SPECIFIC]).ok()?;
        Some(Places { size: *found.get(SIZE)?, specific: *found.get(SPECIFIC)?, segments: segments.clone() })
    })
}

// It holds numbers of that architecture.
#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use emberscope_target::memory::ProcessMemory;

    /// What this machine's glibc tells is what has been so since 2.17.
    #[test]
    fn the_library_tells_where_its_keys_are() {
        let dir = Path::new("/proc/self");
        let memory = ProcessMemory::open(dir).unwrap();
        let files = LibraryFiles::default();
        let mappings = open::mappings(dir).unwrap().mappings;
        let libc = mappings.iter().find(|mapping| is_named(mapping, "libc.so.6")).unwrap();
        assert_eq!(glibc(dir, libc, &memory, &files), GLIBC);
        assert_eq!(Libraries::of(dir, &glibcs(&mappings), &memory, &files), Libraries::UNTOLD);
        // A file that tells nothing.
        let other = mappings.iter().find(|mapping| is_named(mapping, "ld-linux")).unwrap();
        assert_eq!(glibc(dir, other, &memory, &files), None);
    }
}
