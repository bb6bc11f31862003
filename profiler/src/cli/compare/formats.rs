//! What a report is written as.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::Path;

/// A format of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// Tables for a terminal.
    Text,
    /// The daemon's answer.
    Json,
    /// Tables for a pull request.
    Markdown,
    /// XML that CI servers read as the outcome of tests.
    Junit,
    /// A page with the flame graph of the difference.
    Html,
}

impl ReportFormat {
    const ALL: [(&'static str, Self); 5] = [
        ("text", Self::Text),
        ("json", Self::Json),
        ("markdown", Self::Markdown),
        ("junit", Self::Junit),
        ("html", Self::Html),
    ];

    /// The format that a file's name tells.
    pub fn of_file(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "txt" => Some(Self::Text),
            "json" => Some(Self::Json),
            "md" => Some(Self::Markdown),
            "xml" => Some(Self::Junit),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }
}

/// Reads the name of a format.
pub fn format() -> impl TypedValueParser<Value = ReportFormat> {
    let find = |slug: String| ReportFormat::ALL.into_iter().find(|(name, _)| *name == slug);
    PossibleValuesParser::new(ReportFormat::ALL.map(|(name, _)| name))
        .try_map(move |slug| find(slug).map(|(_, format)| format).ok_or("no such format"))
}
