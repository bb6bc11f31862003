//! The symbols of one file: those of its own, and those that were taken out of it.
//!
//! In: the open file and where it is. Out: names by file offset. A file that was stripped keeps the names that other
//! programs link to (.dynsym); the others come from its debug file (`separate`), its .gnu_debugdata, or the table
//! with which a Go program names its own frames (`go`), whichever is there first.

use super::go::GoTable;
use super::separate;
use crate::target::elf::{ElfError, Headers, Image, Segment};
use crate::target::text;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A file's symbols.
pub struct Table {
    own: Option<Symbols>,
    more: More,
    segments: Vec<Segment>,
    /// Bytes that were copied for it.
    pub bytes: u64,
}

/// What was taken out of it.
enum More {
    None,
    File(Box<Symbols>),
    Go(GoTable),
}

struct Symbols {
    symbolizer: Symbolizer,
    source: Source<'static>,
    /// What the source reads.
    _image: Image,
}

impl Table {
    /// Of the open `file`, which is (or was) at `path`; at most about `limit` bytes.
    pub fn open(file: &File, path: &Path, limit: u64) -> Result<Self, ElfError> {
        let metadata = file.metadata()?;
        let headers = Headers::read(file, metadata.len())?;
        let tables = headers.symbol_tables();
        let own = headers.image(file, limit)?;
        let mut bytes = own.bytes;
        let rest = limit.saturating_sub(bytes);
        let stripped = tables.iter().all(|table| table.dynamic);
        let more = if !stripped {
            More::None
        } else if let Some(image) = separate::find(&headers, file, &metadata, path, rest) {
            bytes += image.bytes;
            More::File(Box::new(Symbols::of(image)))
        } else if let Some(table) = GoTable::read(&headers, file, rest) {
            bytes += table.bytes();
            More::Go(table)
        } else {
            More::None
        };
        let own = (!tables.is_empty()).then(|| Symbols::of(own));
        Ok(Self { own, more, segments: headers.segments(file)?, bytes })
    }

    /// The function at an offset of the file.
    pub fn name(&self, offset: u64) -> Option<String> {
        // Symbols of another file have its addresses, which are this one's, and offsets of its own.
        let address = || address_at(&self.segments, offset);
        let name = match &self.more {
            More::None => None,
            More::File(symbols) => symbols.name(Input::VirtOffset(address()?)),
            More::Go(table) => table.name(address()?),
        };
        name.or_else(|| self.own.as_ref()?.name(Input::FileOffset(offset)))
            .map(|name| text::bounded(name.as_bytes(), text::MAX_NAME))
    }
}

impl Symbols {
    fn of(image: Image) -> Self {
        let mut source = Elf::new(format!("/proc/self/fd/{}", image.file.as_raw_fd()));
        source.debug_syms = false;
        let symbolizer = Symbolizer::builder()
            .enable_code_info(false)
            .enable_inlined_fns(false)
            .enable_auto_reload(false)
            .build();
        Self { symbolizer, source: Source::Elf(source), _image: image }
    }

    fn name(&self, input: Input<u64>) -> Option<String> {
        match self.symbolizer.symbolize_single(&self.source, input) {
            Ok(Symbolized::Sym(symbol)) if !symbol.name.is_empty() => Some(symbol.name.into_owned()),
            _ => None,
        }
    }
}

/// Where an offset of the file wants to be.
fn address_at(segments: &[Segment], offset: u64) -> Option<u64> {
    let inside = |s: &&Segment| offset.checked_sub(s.offset).is_some_and(|within| within < s.file_size);
    let segment = segments.iter().filter(|s| s.executable).find(inside)?;
    segment.address.checked_add(offset - segment.offset)
}
