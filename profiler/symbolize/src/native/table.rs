//! The symbols of one file: those of its own, and those that were taken out of it.
//!
//! In: the open file and where it is. Out: names by file offset. A file that was stripped keeps the names that other
//! programs link to (.dynsym); the others come from its debug file (`separate`), its .gnu_debugdata, or the table
//! with which a Go program names its own frames (`go`), whichever is there first. Where all fail, who opened it may have
//! the debug file fetched (`debuginfod`).

use super::go::GoTable;
use super::large::Large;
use super::separate;
use super::stripped::Stripped;
use super::symbols::{Read, Symbols};
use emberscope_target::elf::{ElfError, Headers, Segment};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file's symbols.
pub struct Table {
    own: Option<Symbols>,
    more: More,
    /// Its own symbols are those that it exports.
    stripped: bool,
    segments: Vec<Segment>,
    /// Its build id, when its symbols were taken out and are nowhere on the node.
    pub lacking: Option<Box<[u8]>>,
    /// Bytes that are held for it.
    pub bytes: u64,
}

/// What was taken out of it.
enum More {
    None,
    File(Symbols),
    Go(GoTable),
    /// Nowhere: what its code tells.
    Code(Stripped),
}

/// How a function's name is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By a symbol of its file, of its debug file, or by Go's own table.
    Symbol,
    /// By a symbol that a stripped file exports.
    Export,
    /// As an implementation of an exported function that chooses among some (`STT_GNU_IFUNC`).
    Choice,
    /// By the part that it plays: a program's first function, `main`, where threads start.
    Part,
    /// Not at all; only where it begins and ends.
    Bounds,
}

impl By {
    /// In the order in which they are tried.
    pub const ALL: [Self; 5] = [Self::Symbol, Self::Export, Self::Choice, Self::Part, Self::Bounds];

    /// Value of the label `by`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Symbol => "symbol",
            Self::Export => "export",
            Self::Choice => "choice",
            Self::Part => "part",
            Self::Bounds => "bounds",
        }
    }
}

/// A symbol, and the offsets around the one that was asked for that have it too.
pub struct Named {
    /// The function, as the file calls it; empty where only its bounds are known.
    pub symbol: String,
    /// How it is known.
    pub by: By,
    /// Whether it may be mangled: Go's names are not.
    pub mangled: bool,
    /// Offsets of the file.
    pub holds: Range<u64>,
}

/// What a table is made of: read on any thread, and kept when the file is gone.
pub struct Parts {
    own: Option<Read>,
    more: MoreParts,
    stripped: bool,
    segments: Vec<Segment>,
    lacking: Option<Box<[u8]>>,
    bytes: u64,
}

enum MoreParts {
    None,
    File(Read),
    Go(GoTable),
    Code(Stripped),
}

impl Parts {
    /// Of the open `file`, which is (or was) at `path`; at most about `limit` bytes. `fetched` says where the debug file
    /// of a build id is that a server was asked for.
    ///
    /// # Errors
    /// The file is not one of our ELF, its headers lie, its symbols take more than `limit` bytes, or it cannot be read.
    pub fn read(
        file: &File,
        path: &Path,
        fetched: impl Fn(&[u8]) -> Option<PathBuf>,
        limit: u64,
    ) -> Result<Self, ElfError> {
        let metadata = file.metadata()?;
        let headers = Headers::read(file, metadata.len())?;
        let tables = headers.symbol_tables();
        let segments = headers.segments(file)?;
        let stripped = tables.iter().all(|table| table.dynamic);
        let read = headers.image(file, limit).and_then(|image| Read::of(image, &segments, limit));
        let (own, refused) = match read {
            // What it exports alone is no reason to do without the rest.
            Err(error @ ElfError::TooLarge(_)) if stripped => (None, Some(error)),
            Err(ElfError::TooLarge(_)) => {
                (Some(Read::Large(Large::of(file, &headers, &segments, limit / 2)?)), None)
            }
            read => (Some(read?), None),
        };
        let mut bytes = own.as_ref().map_or(0, Read::bytes);
        let rest = limit.saturating_sub(bytes);
        let id = if stripped { headers.build_id(file) } else { None };
        let fetched = id.as_deref().and_then(fetched);
        let separate = || {
            let image = separate::find(&headers, (file, &metadata), path, fetched.as_deref(), rest)?;
            Read::of(image, &segments, rest).ok()
        };
        let more = if !stripped {
            MoreParts::None
        } else if let Some(symbols) = separate() {
            bytes += symbols.bytes();
            MoreParts::File(symbols)
        } else if let Some(table) = GoTable::read(&headers, file, rest) {
            bytes += table.bytes();
            MoreParts::Go(table)
        } else if let Some(code) = Stripped::read(&headers, file, &segments, rest) {
            bytes += code.bytes();
            MoreParts::Code(code)
        } else if let Some(refused) = refused {
            return Err(refused);
        } else {
            MoreParts::None
        };
        let own = own.filter(|_| !tables.is_empty());
        let lacking = id.filter(|_| matches!(more, MoreParts::None | MoreParts::Code(_)));
        Ok(Self { own, more, stripped, segments, lacking, bytes })
    }
}

impl Table {
    /// Of what was read.
    pub fn of(parts: Parts) -> Self {
        let Parts { own, more, stripped, segments, lacking, bytes } = parts;
        let more = match more {
            MoreParts::None => More::None,
            MoreParts::File(read) => More::File(Symbols::of(read)),
            MoreParts::Go(table) => More::Go(table),
            MoreParts::Code(code) => More::Code(code),
        };
        let own = own.map(Symbols::of);
        Self { own, more, stripped, segments, lacking, bytes }
    }

    /// The symbols that are read in the file, and the address of an offset of it; None: they are not.
    pub fn large(&self, offset: u64) -> Option<(&Arc<Large>, u64)> {
        let Some(Symbols::Large(large)) = &self.own else { return None };
        Some((large, segment_at(&self.segments, offset)?.1))
    }

    /// What was read so for an offset.
    pub fn in_large(&self, offset: u64, (symbol, holds): (String, Range<u64>)) -> Option<Named> {
        let (segment, _) = segment_at(&self.segments, offset)?;
        let holds = in_file(segment, offset, holds);
        Some(Named { symbol, by: By::Symbol, mangled: true, holds })
    }

    /// The function at an offset of the file.
    pub fn name(&self, offset: u64) -> Option<Named> {
        let (segment, address) = segment_at(&self.segments, offset)?;
        let found = match &self.more {
            More::None | More::Code(_) => None,
            More::File(symbols) => symbols.name(address),
            More::Go(table) => table.name(address).map(|name| (name, address..address + 1)),
        };
        let is_go = matches!((&self.more, &found), (More::Go(_), Some(_)));
        let own = || self.own.as_ref()?.name(address);
        let own_by = if self.stripped { By::Export } else { By::Symbol };
        let known = found.map(|found| (By::Symbol, found)).or_else(|| Some((own_by, own()?)));
        let (by, (symbol, holds)) = match (known, &self.more) {
            (Some(known), _) => known,
            (None, More::Code(code)) => {
                let (by, name, holds) = code.name(address)?;
                (by, (name.to_owned(), holds))
            }
            (None, _) => return None,
        };
        let mangled = !is_go && matches!(by, By::Symbol | By::Export);
        let holds = in_file(segment, offset, holds);
        Some(Named { symbol, by, mangled, holds })
    }
}

/// What an offset of the file's code is loaded with, and its address. Symbols of another file have its addresses, which are this
/// one's, and offsets of its own.
fn segment_at(segments: &[Segment], offset: u64) -> Option<(&Segment, u64)> {
    let inside = |s: &&Segment| offset.checked_sub(s.offset).is_some_and(|within| within < s.file_size);
    let segment = segments.iter().filter(|s| s.executable).find(inside)?;
    Some((segment, segment.address.checked_add(offset - segment.offset)?))
}

/// Addresses of a segment as offsets; where they go on beyond it, `offset` alone, since a symbol that does is none there.
fn in_file(segment: &Segment, offset: u64, holds: Range<u64>) -> Range<u64> {
    let within = |address: u64| {
        let inside = address.checked_sub(segment.address).filter(|within| *within <= segment.file_size);
        inside.map(|within| segment.offset + within)
    };
    within(holds.start).zip(within(holds.end)).map_or(offset..offset + 1, |(from, to)| from..to)
}
