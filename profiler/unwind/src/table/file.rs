//! Makes the table of a mapped file: a mapping in, a [`Made`] out. Slow, so on a thread of its own.
//!
//! The mapped inode itself is opened, whatever its path is now. What has the contents of a file that has a table
//! already is not built again, nor what the disk has.

use super::elf::OfFile;
use super::image::{Image, Section};
use super::sparse::Indexed;
use super::{Disk, Table, TableError, table_of};
use emberscope_supervise::quarantine::Item;
use emberscope_target::errand::{About, What, background};
use emberscope_target::maps::{Backing, Mapping};
use emberscope_target::open;
use profiler_ebpf::NoTable;
use rustix::fs::Stat;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a file is waited for: a large library on a cold disk takes a second or two.
const FILE: Duration = Duration::from_secs(4);
/// How long a file's attributes are waited for.
const STAMP: Duration = Duration::from_millis(100);

/// Bytes of a path that are remembered with its file: its end. Thousands of files are.
const MAX_PATH: usize = 256;

/// A mapped file, as the kernel prints it: device, inode, path. Some file systems give two files one number. Of a large one a part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inode(u32, u32, u64, Arc<Path>, Option<u32>);

impl Inode {
    /// The file of a mapping, if it has one.
    pub fn of(mapping: &Mapping) -> Option<Self> {
        let Backing::File { path, .. } = &mapping.backing else { return None };
        let bytes = path.as_os_str().as_bytes();
        let path: Arc<Path> = match bytes.len().checked_sub(MAX_PATH).and_then(|over| bytes.get(over..)) {
            Some(end) => Path::new(OsStr::from_bytes(end)).into(),
            None => Arc::clone(path),
        };
        Some(Self(mapping.device.0, mapping.device.1, mapping.inode, path, None))
    }

    /// A part of its code.
    pub fn part(self, part: u32) -> Self {
        Self(self.0, self.1, self.2, self.3, Some(part))
    }

    /// The file of a part, and the part; None: it is no part.
    pub fn parted(&self) -> Option<(Self, u32)> {
        self.4.map(|part| (Self(self.0, self.1, self.2, Arc::clone(&self.3), None), part))
    }

    /// What a daemon that comes down over the file remembers.
    pub fn item(&self) -> Item {
        Item::file(&format!("{:x}:{:x}:{}", self.0, self.1, self.2), &self.3.to_string_lossy())
    }

    /// The path of the file, as the process that maps it has it; of a long one its end.
    pub fn path(&self) -> &Path {
        &self.3
    }
}

/// What changes when a file is written: size, seconds and nanoseconds of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp([u64; 3]);

impl Stamp {
    fn of(stat: &Stat) -> Self {
        Self([stat.st_size as u64, stat.st_ctime as u64, stat.st_ctime_nsec])
    }

    /// The stamp of the file behind a mapping as it is now; None where we may not look (CAP_CHECKPOINT_RESTORE).
    pub fn now(dir: &Path, mapping: &Mapping) -> Option<Self> {
        let (of, what) = (dir.to_owned(), mapping.clone());
        let about = About::process(dir, What::Maps);
        let stat = background().run(about, STAMP, move || open::mapped_stat(&of, &what)).done()??;
        Some(Self([stat.stx_size, stat.stx_ctime.tv_sec as u64, u64::from(stat.stx_ctime.tv_nsec)]))
    }
}

/// How much unwind information is read at once.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Of a file with more than these bytes of it, and with an index, a part of the code at a time.
    pub whole: u64,
    /// A file with more than these, and without an index, is told as large.
    pub most: u64,
}

impl Sizes {
    /// As usual, but for `most`. libjvm has 2 MB, libcomet 5, libtorch_cpu 18.
    pub const fn usual(most: u64) -> Self {
        Self { whole: 4 << 20, most }
    }
}

/// A file whose table is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// A process that maps it: its directory in /proc.
    pub dir: PathBuf,
    /// Where that process maps the file.
    pub mapping: Mapping,
    /// The file, as the kernel prints it.
    pub inode: Inode,
}

/// What became of a file whose table was wanted.
#[derive(Debug)]
pub struct Made {
    /// The file, as the kernel prints it.
    pub inode: Inode,
    /// The file as it was read; None where it could not be opened.
    pub stamp: Option<Stamp>,
    /// The table, or why there is none.
    pub found: Found,
    /// The table came from the disk.
    pub loaded: bool,
    /// Nanoseconds that reading and building took.
    pub ns: u64,
}

impl Made {
    /// The refusal of a file that is not read: doing so made us fail, now or before.
    pub fn refused(wanted: &Wanted) -> Self {
        let found = Found::Without(NoTable::Refused);
        Self { inode: wanted.inode.clone(), stamp: None, found, loaded: false, ns: 0 }
    }
}

/// What a file was found to have.
#[derive(Debug)]
pub enum Found {
    /// A new table.
    New(Box<New>),
    /// The file has so much unwind information that tables are made of parts, as they are wanted: the key and the image without it.
    InParts(u64, Image),
    /// The table of a part.
    Part(Box<Table>),
    /// The contents of a file that has a table.
    Known(u64),
    /// No table, and why.
    Without(NoTable),
    /// The file has more unwind information than was asked for.
    Large,
}

/// A new table.
#[derive(Debug)]
pub struct New {
    /// See [`Image::key`]; never 0.
    pub key: u64,
    /// The image, without its unwind information.
    pub segments: Image,
    /// The rows of the image.
    pub table: Table,
}

/// Keys of the tables that there are.
#[derive(Clone, Debug, Default)]
pub struct Keys(Arc<Mutex<HashSet<u64>>>);

impl Keys {
    /// Whether this one is there.
    pub fn has(&self, key: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }
    pub(super) fn set(&self, key: u64, there: bool) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if there {
            keys.insert(key)
        } else {
            keys.remove(&key)
        };
    }
}

/// What was read of a file.
enum Read {
    Whole(Image),
    InParts(u64, Image),
    Part(Table),
}

/// Reads what is wanted: a part, or a file, of which it tells if it is in parts.
fn read(file: &File, size: u64, sizes: Sizes, part: Option<u32>) -> Result<Read, TableError> {
    if let Some(part) = part {
        return Ok(Read::Part(part_of(file, size, part)?));
    }
    match Image::of_file(file, size, sizes.whole.min(sizes.most)) {
        Err(TableError::Large) => {}
        image => return image.map(Read::Whole),
    }
    let bytes = OfFile(file, size);
    match Indexed::of(&bytes)? {
        Some(indexed) => Ok(Read::InParts(indexed.key(&bytes)?, indexed.image())),
        None => Ok(Read::Whole(Image::of_file(file, size, sizes.most)?)),
    }
}

/// The table of a part of a file's code: 256 KiB from `part` times as much on, in the file's own address space.
///
/// # Errors
/// [`TableError::Nothing`]: the file has no index of its unwind information, or no function is there. Else as
/// [`Image::of_file`] and for limits as [`table_of`].
pub fn part_of(file: &File, size: u64, part: u32) -> Result<Table, TableError> {
    let bytes = OfFile(file, size);
    Indexed::of(&bytes)?.ok_or(TableError::Nothing)?.part(&bytes, part)
}

/// Reads a file and makes its table, or that of a part, or tells that it is large.
pub fn make(wanted: &Wanted, sizes: Sizes, keys: &Keys, disk: Option<&Disk>) -> Made {
    let begun = Instant::now();
    let mut loaded = false;
    let (dir, mapping) = (wanted.dir.clone(), wanted.mapping.clone());
    let part = wanted.inode.4;
    let read = background().run(About::file(&dir, &mapping), FILE, move || {
        match open::mapped_file(&dir, &mapping) {
            Ok((file, stat)) => {
                let size = u64::try_from(stat.st_size).unwrap_or(0);
                (Some(Stamp::of(&stat)), read(&file, size, sizes, part))
            }
            Err(_) => (None, Err(TableError::Unreadable)),
        }
    });
    // Without a stamp it is wanted again with its process's next look.
    let (stamp, image) = read.done().unwrap_or((None, Err(TableError::Late)));
    let found = match image {
        Ok(Read::InParts(key, image)) => Found::InParts(key, image),
        Ok(Read::Part(table)) => Found::Part(Box::new(table)),
        Ok(Read::Whole(image)) if keys.has(image.key()) => Found::Known(image.key()),
        Ok(Read::Whole(image)) => {
            of_image(image, disk, &mut loaded).unwrap_or_else(|error| refused(wanted, &error))
        }
        Err(error) => refused(wanted, &error),
    };
    let ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Made { inode: wanted.inode.clone(), stamp, found, loaded, ns }
}

/// The table of an image, from the disk or built.
fn of_image(image: Image, disk: Option<&Disk>, loaded: &mut bool) -> Result<Found, TableError> {
    let key = image.key();
    let kept = disk.and_then(|disk| disk.get(key));
    *loaded = kept.is_some();
    let table = match kept {
        Some(table) => table,
        None => {
            let table = table_of(&image)?;
            if let Some(Err(error)) = disk.map(|disk| disk.put(key, &table)) {
                tracing::debug!(%error, "an unwind table is not kept on disk");
            }
            table
        }
    };
    Ok(Found::New(Box::new(New { key, segments: without_bytes(image), table })))
}

/// The image, without its unwind information.
pub(super) fn without_bytes(image: Image) -> Image {
    Image { frames: Section::default(), plain: None, ..image }
}

fn refused(wanted: &Wanted, error: &TableError) -> Found {
    match error {
        TableError::Large => Found::Large,
        TableError::Nothing => Found::Without(NoTable::None),
        error => {
            tracing::debug!(file = wanted.mapping.module_name(), %error, "no unwind table");
            Found::Without(NoTable::Refused)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_target::maps;

    /// Thousands of files are remembered, and a path may have 4,096 bytes.
    #[test]
    fn of_a_long_path_the_end_is_remembered() {
        let of = |path: &str| {
            let line = format!("1000-2000 r-xp 00000000 fe:00 7 {path}\n");
            Inode::of(&maps::with(line.as_bytes(), |_| true).next().unwrap()).unwrap()
        };
        let deep = format!("/{}lib.so", "deep/".repeat(700));
        let path = of(&deep).path().to_owned();
        assert_eq!((path.as_os_str().len(), path.file_name()), (MAX_PATH, Some(OsStr::new("lib.so"))));
        assert!(of(&deep) == of(&deep) && of(&deep) != of(&deep.replace("lib.so", "bil.so")));
        assert_eq!(of("/lib/lib.so").path(), Path::new("/lib/lib.so"));
    }
}
