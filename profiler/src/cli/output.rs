//! Where a flame graph goes, and in which format.
//!
//! In: `--format`, `-o`, whether standard output is a terminal. Out: a decision, then the bytes in a file
//! or on standard output. A picture is not written to a terminal, and text that goes there is cleaned.

use super::{CliError, text};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use emberscope_export::Format;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The format that a file's name tells.
fn of_file(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()? {
        "collapsed" | "txt" => Some(Format::Folded),
        "gz" if path.to_str()?.ends_with(".pb.gz") => Some(Format::Pprof),
        ending => Format::from_slug(ending),
    }
}

/// Where to, and how.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// svg is a picture for browsers, folded a line for each stack, json the call tree, pprof a profile
    /// for `go tool pprof`, parquet a table, jfr a recording for JDK Mission Control. Default: what the file's
    /// name ends in (.svg, .folded, .txt, .json, .pprof, .pb.gz, .parquet, .jfr); folded on standard output.
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    pub format: Option<Format>,
    /// File to write; - is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
}

/// Reads the name of a format.
pub fn format() -> impl TypedValueParser<Value = Format> {
    let slugs = Format::ALL.iter().map(|format| format.slug());
    PossibleValuesParser::new(slugs).try_map(|slug| Format::from_slug(&slug).ok_or("no such format"))
}

/// A decision where to write, and in which format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The format of the bytes.
    pub format: Format,
    /// The file that is written; None is standard output.
    file: Option<PathBuf>,
}

impl OutputArgs {
    /// Decides, before any work is done.
    ///
    /// # Errors
    /// [`CliError::Usage`]: a picture or a binary file for a terminal, or a file's name that tells no format.
    pub fn decide(&self) -> Result<Output, CliError> {
        self.decide_for(io::stdout().is_terminal())
    }

    fn decide_for(&self, terminal: bool) -> Result<Output, CliError> {
        if self.output.as_os_str() == "-" {
            let format = self.format.unwrap_or(Format::Folded);
            if format == Format::Svg && terminal {
                return Err(CliError::Usage(
                    "an SVG is not for a terminal: name a file with -o, or pipe it on".to_owned(),
                ));
            }
            if format.is_binary() && terminal {
                let slug = format.slug();
                return Err(CliError::Usage(format!(
                    "{slug} is not for a terminal: name a file with -o, or pipe it on"
                )));
            }
            return Ok(Output { format, file: None });
        }
        let format = self.format.or_else(|| of_file(&self.output)).ok_or_else(|| {
            let name = self.output.display();
            CliError::Usage(format!(
                "the name {name} tells no format: end it in .svg, .folded, .json, .pb.gz, .parquet or .jfr, or \
                 use --format"
            ))
        })?;
        Ok(Output { format, file: Some(self.output.clone()) })
    }
}

impl Output {
    /// Writes the bytes. Out: a name for messages, None for standard output.
    ///
    /// # Errors
    /// [`CliError::File`]: the file cannot be written; what is in it then is not known. [`CliError::Output`]:
    /// standard output takes no more.
    pub fn write(&self, bytes: &[u8]) -> Result<Option<&Path>, CliError> {
        let Some(path) = &self.file else {
            write_stdout(bytes)?;
            return Ok(None);
        };
        let written = std::fs::write(path, bytes);
        written.map_err(|source| CliError::File { what: "write", path: path.clone(), source })?;
        Ok(Some(path))
    }
}

/// Text to standard output, cleaned when that is a terminal.
fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        for line in String::from_utf8_lossy(bytes).lines() {
            writeln!(out, "{}", text::clean(line))?;
        }
    } else {
        out.write_all(bytes)?;
    }
    out.flush()
}

/// JSON from a daemon, as it is, except that nothing in it acts on a terminal.
///
/// # Errors
/// The writer takes no more.
pub fn write_json(out: &mut dyn Write, json: &str) -> io::Result<()> {
    writeln!(out, "{}", harmless_json(json.trim_end()))
}

/// In valid JSON such characters stand in strings only, where `\u` is the same; line breaks stay.
fn harmless_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '\n' | '\r' | '\t') || !text::acts(c) {
            out.push(c);
        } else {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(format: Option<Format>, output: &str, terminal: bool) -> Result<Format, String> {
        let args = OutputArgs { format, output: output.into() };
        args.decide_for(terminal).map(|output| output.format).map_err(|error| error.to_string())
    }

    #[test]
    fn the_format_is_asked_for_or_guessed() {
        assert_eq!(decide(None, "a/out.svg", true), Ok(Format::Svg));
        assert_eq!(decide(None, "out.folded", true), Ok(Format::Folded));
        assert_eq!(decide(None, "out.json", true), Ok(Format::Json));
        assert_eq!(decide(Some(Format::Json), "out.svg", true), Ok(Format::Json));
        assert_eq!(decide(None, "-", true), Ok(Format::Folded));
        assert_eq!(decide(Some(Format::Svg), "-", false), Ok(Format::Svg));
        assert!(decide(None, "out.png", true).unwrap_err().contains("out.png tells no format"));
        assert!(decide(None, "out", true).unwrap_err().contains("--format"));
    }

    #[test]
    fn a_picture_is_not_for_a_terminal() {
        assert!(decide(Some(Format::Svg), "-", true).unwrap_err().contains("name a file with -o"));
    }

    #[test]
    fn json_is_the_same_and_harmless() {
        let json = "{\n\t\"a\": \"\u{9b}31m\u{202e}\u{7f}é\"\n}";
        let shown = harmless_json(json);
        assert!(!shown.contains('\u{9b}') && !shown.contains('\u{202e}'));
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(json));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told() {
        let args = OutputArgs { format: None, output: "/nonexistent/out.svg".into() };
        let error = args.decide().unwrap().write(b"x").unwrap_err();
        assert_eq!(error.to_string(), "cannot write /nonexistent/out.svg");
        let dir = tempfile::tempdir().unwrap();
        let args = OutputArgs { format: None, output: dir.path().join("a.svg") };
        args.decide().unwrap().write(b"<svg/>").unwrap();
        assert_eq!(std::fs::read(dir.path().join("a.svg")).unwrap(), b"<svg/>");
    }
}
