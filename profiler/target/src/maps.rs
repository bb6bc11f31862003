//! Reads `/proc/PID/maps`: bytes in, the executable mappings out, sorted by address.
//!
//! Lines it does not understand are left out. Only executable mappings are kept, at most
//! [`MAX_MAPPINGS`] of them, and paths up to `MAX_PATH` bytes; mappings of one path share it. The text is never there as a
//! whole: of a process that wants it so, it has 6 MB, and several are read at once. Format: proc_pid_maps(5); the kernel
//! writes a newline in a path as `\012` and adds ` (deleted)` to the path of an unlinked file.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A process has a few hundred; a hostile one may have 65,530 (`vm.max_map_count`).
pub const MAX_MAPPINGS: usize = 8192;
/// Bytes of the file that are read; a line takes about 100.
const MAX_BYTES: u64 = 16 << 20;
/// Bytes that are asked for at once; the kernel gives a page.
const PIECE: usize = 16 << 10;
/// Bytes of a path that are kept: PATH_MAX of Linux.
const MAX_PATH: usize = 4096;
/// Bytes of all paths of a process that are kept: a few hundred files have 30 KB.
const MAX_PATHS: usize = 1 << 20;

/// What a mapping is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A file.
    File {
        /// Path of the file in the process's mount namespace, as far as that is known.
        path: Arc<Path>,
        /// The kernel says that the path is gone.
        deleted: bool,
    },
    /// Memory without a file, or with one that holds no program (memfd, `/dev/zero`, huge pages): made at run time.
    Anonymous,
    /// The kernel's own page of code.
    Vdso,
    /// Another name in brackets, for instance `[vsyscall]`.
    Special(Box<str>),
}

/// One executable mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// The same of its first piece, which is what the kernel lists: where several follow each other in memory as in their file,
    /// they are one (a program that gives advice about some of its code, or changes its rights, cuts it).
    pub first_end: u64,
    /// Bytes from the start of the file to what is mapped first.
    pub offset: u64,
    /// Device as the kernel prints it: major, minor.
    pub device: (u32, u32),
    /// Inode; 0 without a file.
    pub inode: u64,
    /// What the mapping is of.
    pub backing: Backing,
}

impl Mapping {
    /// Takes in the next one, if it goes on with the same file.
    fn takes(&mut self, next: &Self) -> bool {
        let more = self.end == next.start
            && self.offset.checked_add(self.end - self.start) == Some(next.offset)
            && (self.device, self.inode) == (next.device, next.inode)
            && matches!(self.backing, Backing::File { .. })
            && self.backing == next.backing;
        if more {
            self.end = next.end;
        }
        more
    }

    /// Last part of the path, for people; bounded and valid UTF-8.
    pub fn module_name(&self) -> String {
        match &self.backing {
            Backing::File { path, .. } => {
                super::text::bounded(path.file_name().unwrap_or_else(|| OsStr::new("?")).as_bytes(), 255)
            }
            Backing::Anonymous => String::new(),
            Backing::Vdso => "[vdso]".to_owned(),
            Backing::Special(name) => name.to_string(),
        }
    }
}

/// The executable mappings of a process, in the order of their addresses.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Maps {
    /// At most [`MAX_MAPPINGS`].
    pub mappings: Vec<Mapping>,
    /// Bytes of their paths, each counted once.
    pub path_bytes: usize,
    /// Whether a limit left some out.
    pub cut: bool,
    /// The file has no line: a kernel thread's, a zombie's.
    pub is_empty: bool,
}

/// The mappings in a file such as `/proc/PID/maps`.
///
/// # Errors
/// What reading it fails with.
pub fn parse(file: impl Read) -> std::io::Result<Maps> {
    let mut lines = BufReader::with_capacity(PIECE, file.take(MAX_BYTES));
    let mut maps = Maps { is_empty: true, ..Maps::default() };
    let mut paths = HashSet::new();
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        maps.is_empty = false;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if let Some(mut mapping) = parse_line(text, |permissions| permissions.get(2) == Some(&b'x')) {
            let goes_on = maps.mappings.last_mut().is_some_and(|last| last.takes(&mapping));
            if !goes_on && maps.mappings.len() == MAX_MAPPINGS {
                maps.cut = true;
                break;
            }
            if !goes_on && share_path(&mut mapping, &mut paths, &mut maps.path_bytes) {
                maps.mappings.push(mapping);
            } else if !goes_on {
                maps.cut = true;
            }
        }
        line.clear();
    }
    maps.mappings.sort_by_key(|mapping| mapping.start);
    maps.mappings.shrink_to_fit();
    Ok(maps)
}

/// Gives a mapping the copy of its path that others have, or takes its own, of which `bytes` are the sum. False: it has no room.
fn share_path(mapping: &mut Mapping, paths: &mut HashSet<Arc<Path>>, bytes: &mut usize) -> bool {
    let Backing::File { path, .. } = &mut mapping.backing else { return true };
    if let Some(shared) = paths.get(&**path) {
        *path = Arc::clone(shared);
        return true;
    }
    let more = path.as_os_str().len();
    let has_room = *bytes + more <= MAX_PATHS;
    if has_room {
        *bytes += more;
        paths.insert(Arc::clone(path));
    }
    has_room
}

/// The mappings in `text` whose permissions (`r-xp`) are wanted, as they stand there. Others are not read any further.
pub fn with(text: &[u8], wanted: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = Mapping> {
    text.split(|b| *b == b'\n').filter_map(move |line| parse_line(line, &wanted))
}

/// The mapping that holds `address`; `mappings` is sorted.
pub fn find(mappings: &[Mapping], address: u64) -> Option<usize> {
    let after = mappings.partition_point(|m| m.start <= address);
    let index = after.checked_sub(1)?;
    mappings.get(index).is_some_and(|m| address < m.end).then_some(index)
}

fn parse_line(line: &[u8], wanted: impl Fn(&[u8]) -> bool) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || -> Option<&[u8]> {
        let start = rest.iter().position(|b| *b != b' ')?;
        let tail = rest.get(start..)?;
        let end = tail.iter().position(|b| *b == b' ').unwrap_or(tail.len());
        rest = tail.get(end..)?;
        tail.get(..end)
    };
    let range = std::str::from_utf8(field()?).ok()?;
    if !wanted(field()?) {
        return None;
    }
    let offset = hex(field()?)?;
    let device = std::str::from_utf8(field()?).ok()?;
    let inode = std::str::from_utf8(field()?).ok()?.parse().ok()?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (hex(start.as_bytes())?, hex(end.as_bytes())?);
    let (major, minor) = device.split_once(':')?;
    let device = (hex(major.as_bytes())? as u32, hex(minor.as_bytes())? as u32);
    let path = rest.iter().position(|b| *b != b' ').and_then(|at| rest.get(at..)).unwrap_or_default();
    (start < end && path.len() <= MAX_PATH).then(|| Mapping {
        start,
        end,
        first_end: end,
        offset,
        device,
        inode,
        backing: backing(path),
    })
}

fn backing(path: &[u8]) -> Backing {
    const NOT_PROGRAMS: [&[u8]; 6] =
        [b"/memfd:", b"/dev/zero", b"/SYSV", b"anon_inode:", b"/dev/shm/", b"/anon_hugepage"];
    if path == b"[vdso]" {
        Backing::Vdso
    } else if path.is_empty()
        || [b"[anon".as_slice(), b"[heap", b"[stack"].iter().any(|p| path.starts_with(p))
        || NOT_PROGRAMS.iter().any(|p| path.starts_with(p))
    {
        Backing::Anonymous
    } else if path.first() == Some(&b'/') {
        let (path, deleted) = match path.strip_suffix(b" (deleted)") {
            Some(path) => (path, true),
            None => (path, false),
        };
        let path = unescape(path);
        Backing::File { path: Path::new(OsStr::from_bytes(&path)).into(), deleted }
    } else {
        Backing::Special(super::text::bounded(path, 64).into())
    }
}

/// `\012` and its like back to bytes.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, tail)) = rest.split_first() {
        if let (b'\\', Some(digits)) = (*first, tail.get(..3))
            && digits.iter().all(|d| (b'0'..=b'7').contains(d))
        {
            let value = digits.iter().fold(0u32, |v, d| v * 8 + u32::from(d - b'0'));
            out.push(value as u8);
            rest = tail.get(3..).unwrap_or_default();
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

fn hex(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

#[cfg(test)]
mod tests;
