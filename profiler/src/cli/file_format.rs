//! What a file is written as: an answer's own format, or one that the command line makes of an answer.
//!
//! In: the name of a format, or of a file. Out: a format, and what is asked for to make it.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use emberscope_export::Format;
use std::path::Path;

/// What is written: an answer's own format, or a file that is made here of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// As it is answered.
    Plain(Format),
    /// A page with the picture.
    Html,
    /// Speedscope's JSON, of the folded stacks.
    Speedscope,
}

impl From<Format> for FileFormat {
    fn from(format: Format) -> Self {
        Self::Plain(format)
    }
}

impl FileFormat {
    fn all() -> impl Iterator<Item = Self> {
        Format::ALL.iter().map(|format| Self::Plain(*format)).chain([Self::Html, Self::Speedscope])
    }
    /// Name in flags.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Plain(format) => format.slug(),
            Self::Html => "html",
            Self::Speedscope => "speedscope",
        }
    }
    fn from_slug(slug: &str) -> Option<Self> {
        Self::all().find(|format| format.slug() == slug)
    }
    /// What is asked for.
    pub const fn source(self) -> Format {
        match self {
            Self::Plain(format) => format,
            Self::Html => Format::Svg,
            Self::Speedscope => Format::Folded,
        }
    }
    /// The format that a file's name tells.
    pub fn of_file(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "collapsed" | "txt" => Some(Self::Plain(Format::Folded)),
            "gz" if path.to_str()?.ends_with(".pb.gz") => Some(Self::Plain(Format::Pprof)),
            "json" if path.to_str()?.ends_with(SPEEDSCOPE) => Some(Self::Speedscope),
            "htm" => Some(Self::Html),
            ending => Self::from_slug(ending),
        }
    }
}

/// What the names of speedscope's files end in.
pub const SPEEDSCOPE: &str = ".speedscope.json";

/// Reads the name of a format.
pub fn format() -> impl TypedValueParser<Value = FileFormat> {
    let slugs = FileFormat::all().map(FileFormat::slug);
    PossibleValuesParser::new(slugs).try_map(|slug| FileFormat::from_slug(&slug).ok_or("no such format"))
}
