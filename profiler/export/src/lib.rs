//! Answers as bytes: folded stacks, an SVG flame graph, JSON, pprof, a JFR recording, a flat Parquet table, and methods by cost.
//!
//! Pure: an [`Answer`] and [`ExportOptions`] in, bytes out; nothing is read or looked up. Names come
//! from observed programs, so every writer cleans or escapes them (text.rs). Limit: the bytes of one
//! export ([`MAX_BYTES`]); the SVG also leaves out what is too narrow to see.

mod cause;
mod columns;
mod diff;
mod flat;
mod fold;
mod folded;
mod html;
pub mod jfr;
mod json;
pub mod pprof;
mod shape;
mod speedscope;
mod svg;
mod text;
mod top;
mod walk;

pub use cause::{Cause, SIGNIFICANT, cause, error_of_both};
pub use columns::write as write_columns;
pub use diff::{Aligned, DiffOptions, render as render_diff};
pub use emberscope_api::Format;
pub use html::{escaped as html_text, frame as html_frame, page as render_html};
pub use shape::Shape;
pub use speedscope::render as render_speedscope;
pub use top::{Cost, Method, methods, sort};

use emberscope_model::{Answer, COUNT, Node, SampleKind, ValueFacts};
use std::io::{self, Write};

/// Largest export. A tree at the store's limit of nodes stays well below as JSON; folded stacks repeat
/// every caller's name on every line and may not.
pub const MAX_BYTES: usize = 64 << 20;

/// What the numbers of a tree are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Numbers are counts of samples.
    #[default]
    Samples,
    /// Numbers are weights of samples, in the unit of their kind.
    Weight,
}

impl Unit {
    /// Both units.
    pub const ALL: [Self; 2] = [Self::Samples, Self::Weight];

    /// The units of a kind's own profiles, for who keeps those of all kinds side by side: samples that are made of another
    /// kind's are as many as these, and would be counted twice.
    pub const fn beside_others(kind: SampleKind) -> &'static [Self] {
        if kind.facts().made_of.is_some() { &[Self::Weight] } else { &Self::ALL }
    }
    /// Name in queries (`unit=ns`) and answers, for samples of a kind.
    pub const fn slug(self, kind: SampleKind) -> &'static str {
        match self {
            Self::Samples => COUNT.name,
            Self::Weight => kind.facts().unit,
        }
    }
    /// A unit by its name for samples of a kind.
    pub fn from_slug(slug: &str, kind: SampleKind) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.slug(kind) == slug)
    }
    /// The unit's name as pprof and Pyroscope have it.
    pub const fn facts(self, kind: SampleKind) -> ValueFacts {
        match self {
            Self::Samples => COUNT,
            Self::Weight => kind.facts().weight,
        }
    }
    /// What is shown unless told: counts where all samples weigh the same.
    pub fn usual(kind: SampleKind) -> Self {
        if kind.is_even() { Self::Samples } else { Self::Weight }
    }
    /// Of a count and a weight, the one that is meant.
    pub const fn of(self, count: u64, weight: u64) -> u64 {
        match self {
            Self::Samples => count,
            Self::Weight => weight,
        }
    }
    /// A node's own number.
    pub const fn own(self, node: &Node) -> u64 {
        self.of(node.self_count, node.self_weight)
    }
    /// A node's number with all below it.
    pub const fn total(self, node: &Node) -> u64 {
        self.of(node.total_count, node.total_weight)
    }
}

/// How an answer is written.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// What the numbers in the export are.
    pub unit: Unit,
    /// Headline of the picture; empty: a plain one.
    pub title: String,
    /// Folded: names carry the suffix of their kind ([`emberscope_model::FrameKind::suffix`]).
    pub annotate: bool,
}

/// Why an answer could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// More bytes than [`MAX_BYTES`].
    #[error("the export has more than {limit} bytes: narrow the time range or the selection")]
    TooLarge {
        /// [`MAX_BYTES`].
        limit: usize,
    },
    /// Too many frames for a format without a tree.
    #[error(transparent)]
    Frames(#[from] pprof::TooManyFrames),
    /// The writer of the format failed.
    #[error("cannot write the answer as {format}: {source}")]
    Write {
        /// Slug of the format.
        format: &'static str,
        /// What the writer says.
        source: io::Error,
    },
}

/// An answer as bytes.
///
/// # Errors
/// [`ExportError::TooLarge`] over [`MAX_BYTES`]. [`ExportError::Frames`]: pprof and JFR, over [`pprof::MAX_FRAMES`]
/// frames. [`ExportError::Write`]: the format's writer failed, or nobody waits for the answer any more.
pub fn render(format: Format, answer: &Answer, options: &ExportOptions) -> Result<Vec<u8>, ExportError> {
    let mut bytes = Vec::new();
    write(format, answer, options, &mut bytes).map(|()| bytes)
}

/// As [`render`], to a writer.
///
/// # Errors
/// As [`render`]'s, and [`ExportError::Write`] for what the writer says.
pub fn write(
    format: Format,
    answer: &Answer,
    options: &ExportOptions,
    out: &mut (impl Write + Send),
) -> Result<(), ExportError> {
    let mut out = Bounded::new(out);
    let written = match format {
        Format::Folded => folded::write(&answer.tree, options, &mut out),
        Format::Svg => svg::write(answer, options, &mut out),
        Format::Json => json::write(answer, options, &mut out),
        Format::Pprof => match pprof::file(answer, &mut out) {
            Err(ExportError::Write { source, .. }) => Err(source),
            Err(other) => return Err(other),
            Ok(()) => Ok(()),
        },
        Format::Parquet => flat::write(answer, options, &mut out),
        Format::Jfr => jfr::file(answer, options).map(|file| out.write_all(&file))?,
    };
    out.end(format, written)
}

/// A writer of bytes up to a limit.
struct Bounded<W> {
    out: W,
    written: usize,
    limit: usize,
    full: bool,
}

impl<W: Write> Bounded<W> {
    fn new(out: W) -> Self {
        Self { out, written: 0, limit: MAX_BYTES, full: false }
    }

    /// How writing in a format ended.
    fn end(self, format: Format, written: io::Result<()>) -> Result<(), ExportError> {
        match written {
            Ok(()) => Ok(()),
            Err(_) if self.full => Err(ExportError::TooLarge { limit: self.limit }),
            Err(source) => Err(ExportError::Write { format: format.slug(), source }),
        }
    }
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.written.saturating_add(part.len()) > self.limit {
            self.full = true;
            return Err(io::Error::other("too large"));
        }
        self.out.write_all(part)?;
        self.written += part.len();
        Ok(part.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
