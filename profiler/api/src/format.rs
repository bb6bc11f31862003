//! The formats that answers are written in. Who writes them is elsewhere (`emberscope-export`).

/// What an answer can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `root;...;leaf count`, a line a stack.
    Folded,
    /// An interactive flame graph.
    Svg,
    /// The tree with what it rests on.
    Json,
    /// google.v1.Profile, packed with gzip, with samples and nanoseconds.
    Pprof,
    /// A Parquet file with a line for each stack of each group, its labels in columns.
    Parquet,
    /// A JDK Flight Recorder file, with an event a sample.
    Jfr,
}

impl Format {
    /// Every format, in the order of the command line's help.
    pub const ALL: &'static [Self] =
        &[Self::Folded, Self::Svg, Self::Json, Self::Pprof, Self::Parquet, Self::Jfr];
    /// Formats that a difference of two answers has.
    pub const COMPARED: &'static [Self] = &[Self::Folded, Self::Svg, Self::Json];
    /// Name in queries (`format=svg`); also the file name's ending.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Folded => "folded",
            Self::Svg => "svg",
            Self::Json => "json",
            Self::Pprof => "pprof",
            Self::Parquet => "parquet",
            Self::Jfr => "jfr",
        }
    }
    /// A format by its name in queries.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.slug() == slug)
    }
    /// Media type for HTTP.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Folded => "text/plain; charset=utf-8",
            Self::Svg => "image/svg+xml",
            Self::Json => "application/json",
            Self::Pprof => "application/vnd.google.protobuf+gzip",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Jfr => "application/octet-stream",
        }
    }
    /// Whether a terminal cannot show it.
    pub const fn is_binary(self) -> bool {
        matches!(self, Self::Pprof | Self::Parquet | Self::Jfr)
    }
}
