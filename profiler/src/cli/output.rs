//! Where a flame graph goes, and in which format.
//!
//! In: `--format`, `-o`, whether standard output is a terminal. Out: a decision, then the bytes in a file
//! or on standard output. A picture is not written to a terminal, and text that goes there is cleaned.

use super::file_format::{FileFormat, SPEEDSCOPE, format};
use super::{CliError, text};
use clap::Args;
use emberscope_export::{Format, render_html, render_speedscope};
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Where to, and how.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Format: svg (a picture for browsers), folded (one line per stack), json (the call tree), pprof (a profile for
    /// `go tool pprof`), parquet (a table), jfr (a recording for JDK Mission Control), html (the picture in a page) or
    /// speedscope (a file for speedscope.app). Default: by the file name's extension (.svg, .folded, .txt, .json,
    /// .pprof, .pb.gz, .parquet, .jfr, .html, .speedscope.json); folded on standard output.
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    pub format: Option<FileFormat>,
    /// File to write; - is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A decision where to write, and in which format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The format that is asked for.
    pub format: Format,
    /// What is written of that.
    made: FileFormat,
    /// The file that is written; None is standard output.
    file: Option<PathBuf>,
}

impl OutputArgs {
    /// Decides, before any work is done.
    ///
    /// # Errors
    /// [`CliError::Usage`]: a picture or a binary file for a terminal, or a file's name that gives no format.
    pub fn decide(&self) -> Result<Output, CliError> {
        self.decide_for(io::stdout().is_terminal())
    }

    /// Decides for a command that makes files for other programs: a terminal gets one only when it is named, by `-o -`.
    ///
    /// # Errors
    /// As for [`Self::decide`], and [`CliError::Usage`] where standard output is a terminal and nothing is named.
    pub fn decide_named(&self) -> Result<Output, CliError> {
        self.decide_named_for(io::stdout().is_terminal())
    }

    fn decide_named_for(&self, terminal: bool) -> Result<Output, CliError> {
        if self.output.is_none() && terminal {
            let text = "an export is not for a terminal: name a file with -o, or pipe it on (-o - writes here all the same)";
            return Err(CliError::Usage(text.to_owned()));
        }
        self.decide_for(terminal)
    }

    fn decide_for(&self, terminal: bool) -> Result<Output, CliError> {
        let file = self.output.as_ref().filter(|path| path.as_os_str() != "-");
        let Some(file) = file else {
            let made = self.format.unwrap_or(Format::Folded.into());
            let shown = match made {
                FileFormat::Plain(format) => format != Format::Svg && !format.is_binary(),
                FileFormat::Html | FileFormat::Speedscope => false,
            };
            if terminal && !shown {
                let what = if made == Format::Svg.into() { "an SVG" } else { made.slug() };
                return Err(CliError::Usage(format!(
                    "{what} is not for a terminal: name a file with -o, or pipe it on"
                )));
            }
            return Ok(Output { format: made.source(), made, file: None });
        };
        let name = file.display();
        let named = FileFormat::of_file(file);
        if let (Some(format), Some(FileFormat::Speedscope)) = (self.format, named)
            && format != FileFormat::Speedscope
        {
            let slug = format.slug();
            return Err(CliError::Usage(format!(
                "the name {name} says speedscope, and --format {slug}: end it otherwise, or leave --format out"
            )));
        }
        let made = self.format.or(named).ok_or_else(|| {
            CliError::Usage(format!(
                "the name {name} gives no format: end it in .svg, .folded, .json, .pb.gz, .parquet, .jfr, .html or \
                 {SPEEDSCOPE}, or use --format"
            ))
        })?;
        Ok(Output { format: made.source(), made, file: Some(file.clone()) })
    }
}

impl Output {
    /// What is written of an answer in [`Self::format`]; `unit` is pprof's name of what it counts.
    pub fn made<'a>(&self, answer: &'a [u8], title: &str, unit: &str) -> Cow<'a, [u8]> {
        let title = if title.is_empty() { "whole node" } else { title };
        match self.made {
            FileFormat::Plain(_) => answer.into(),
            FileFormat::Html => render_html(answer, title).into(),
            FileFormat::Speedscope => render_speedscope(answer, title, unit).into(),
        }
    }

    /// Whether one file can hold a difference.
    pub fn is_of_two(&self) -> bool {
        self.made != FileFormat::Speedscope
    }

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
        let args = OutputArgs { format: format.map(Into::into), output: Some(output.into()) };
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
        assert!(decide(None, "out.png", true).unwrap_err().contains("out.png gives no format"));
        assert!(decide(None, "out", true).unwrap_err().contains("--format"));
    }

    #[test]
    fn a_name_says_what_is_written() {
        let made = |format: Option<FileFormat>, name: &str| {
            let args = OutputArgs { format, output: Some(name.into()) };
            args.decide_for(true).map(|output| output.made).map_err(|error| error.to_string())
        };
        assert_eq!(made(None, "a.speedscope.json"), Ok(FileFormat::Speedscope));
        assert_eq!(made(None, "speedscope.json"), Ok(Format::Json.into()));
        assert_eq!((made(None, "a.html"), made(None, "a.htm")), (Ok(FileFormat::Html), Ok(FileFormat::Html)));
        assert_eq!(made(Some(FileFormat::Speedscope), "a.json"), Ok(FileFormat::Speedscope));
        let other = made(Some(Format::Json.into()), "a.speedscope.json").unwrap_err();
        assert!(other.contains("says speedscope, and --format json"), "{other}");
        let output = |name: &str| OutputArgs { format: None, output: Some(name.into()) }.decide().unwrap();
        let file: serde_json::Value =
            serde_json::from_slice(&output("a.speedscope.json").made(b"a;b 3\n", "app=etl", "nanoseconds"))
                .unwrap();
        assert_eq!(file["name"], "app=etl");
        assert_eq!(file["profiles"][0]["unit"], "nanoseconds");
        assert!(output("a.html").made(b"<svg/>", "", "count").starts_with(b"<!doctype html>"));
        assert_eq!(&*output("a.svg").made(b"<svg/>", "", "count"), b"<svg/>");
    }

    #[test]
    fn an_export_goes_onto_a_terminal_only_when_that_is_named() {
        let decided = |output: Option<&str>, terminal| {
            OutputArgs { format: None, output: output.map(Into::into) }.decide_named_for(terminal)
        };
        let error = decided(None, true).unwrap_err();
        assert_eq!(error.code(), super::super::code::USAGE);
        assert!(error.to_string().contains("name a file with -o"), "{error}");
        assert!(decided(None, false).is_ok() && decided(Some("-"), true).is_ok());
        assert!(decided(Some("a.folded"), true).is_ok());
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
        let args = OutputArgs { format: None, output: Some("/nonexistent/out.svg".into()) };
        let error = args.decide().unwrap().write(b"x").unwrap_err();
        assert_eq!(error.to_string(), "cannot write /nonexistent/out.svg");
        let dir = tempfile::tempdir().unwrap();
        let args = OutputArgs { format: None, output: Some(dir.path().join("a.svg")) };
        args.decide().unwrap().write(b"<svg/>").unwrap();
        assert_eq!(std::fs::read(dir.path().join("a.svg")).unwrap(), b"<svg/>");
    }
}
