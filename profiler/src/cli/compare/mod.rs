//! `emberscope compare`: two runs of a job, and what makes the difference.
//!
//! In: two runs. Out: a report as text, JSON, Markdown, JUnit's XML or HTML, and with `--fail-over` an exit code. The
//! daemon compares and judges; nothing is computed here.

mod formats;
mod html;
mod junit;
mod report;
mod sections;
mod spec;

use super::client::{Client, ClientArgs};
use super::selection::TimeArgs;
use super::when::range;
use super::{CliError, code, output, table, text};
use clap::Args;
use emberscope_api::Compare;
use emberscope_api::route::{self, param};
use formats::ReportFormat;
use report::Report;
use spec::RunSpec;
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Flags of `emberscope compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArgs {
    /// Left and right run: an application's id, or NAME@-1 for the last run of a name, NAME@-2 for the one before it,
    /// and so on; a NAME alone must have only one run. Of a long-running application, a time range: NAME@yesterday,
    /// NAME@2026-11-22, NAME@14:00..15:00, with times as in --from.
    #[arg(value_name = "RUN", num_args = 2, required_unless_present = "last", value_parser = spec::run)]
    runs: Vec<RunSpec>,
    /// Job to compare with --last, as runs --job names it.
    #[arg(long, value_name = "NAME", requires = "last", help_heading = "Selection")]
    job: Option<String>,
    /// Compare the last run of --job with the one before it.
    #[arg(long, requires = "job", conflicts_with = "runs", help_heading = "Selection")]
    last: bool,
    #[command(flatten)]
    time: TimeArgs,
    /// Exit with 1 when the CPU time of all tasks grew by more than this (10%) and by more than twice its error, or
    /// that of a query or stage that is 5 % of a run grew by more even after subtracting twice its error.
    #[arg(long, value_name = "PERCENT", help_heading = "Judging")]
    fail_over: Option<String>,
    /// Show at most N rows of each table, the largest differences.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 15, help_heading = "Output", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Format: text, json (the daemon's answer), markdown, junit (needs --fail-over), or html: one self-contained file
    /// with the flame graph of the difference. Default: by the file name's extension (.txt, .json, .md, .xml, .html);
    /// text on standard output.
    #[arg(long, value_name = "FORMAT", help_heading = "Output", value_parser = formats::format())]
    format: Option<ReportFormat>,
    /// File to write; - is standard output.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    #[command(flatten)]
    client: ClientArgs,
}

/// What is said of each side's run: the application, which run of its name, and times.
const SIDES: [[&str; 4]; 2] = [
    ["left.app", "left.run", "left.from", "left.until"],
    ["right.app", "right.run", "right.from", "right.until"],
];

type Params = Vec<(Cow<'static, str>, String)>;

impl CompareArgs {
    fn params(&self) -> Params {
        let mut params = Params::new();
        let mut put = |name: &'static str, value: String| params.push((Cow::Borrowed(name), value));
        let last = self.job.as_ref().map(|job| ["-2", "-1"].map(|run| RunSpec::of_name(job, run)));
        let runs = last.into_iter().flatten().chain(self.runs.iter().cloned());
        for (run, keys) in runs.zip(SIDES) {
            let named = run.params(&jiff::Zoned::now());
            for (name, value) in keys.into_iter().zip(named).filter_map(|(name, value)| Some((name, value?)))
            {
                put(name, value);
            }
        }
        let [from, until] = range(self.time.from.as_ref(), self.time.until.as_ref(), &jiff::Zoned::now());
        let times = [("from", from), ("until", until), (param::FAIL_OVER, self.fail_over.clone())];
        for (name, value) in times {
            if let Some(value) = value {
                put(name, value);
            }
        }
        put(param::LIMIT, self.limit.to_string());
        params
    }

    /// The format, before anybody is asked.
    fn decide(&self) -> Result<ReportFormat, CliError> {
        let file = self.output.as_deref().filter(|path| path.as_os_str() != "-");
        let format = match (self.format, file) {
            (Some(format), _) => format,
            (None, None) => ReportFormat::Text,
            (None, Some(file)) => ReportFormat::of_file(file).ok_or_else(|| {
                let name = file.display();
                CliError::Usage(format!(
                    "the name {name} gives no format: end it in .txt, .json, .md, .xml or .html, or use --format"
                ))
            })?,
        };
        if format == ReportFormat::Junit && self.fail_over.is_none() {
            return Err(CliError::Usage(
                "--format junit says what passed and what failed: add --fail-over".to_owned(),
            ));
        }
        Ok(format)
    }
}

/// Writes the report. Out: the exit code: 1 where something grew by more than `--fail-over`.
///
/// # Errors
/// [`CliError::Usage`]: the format cannot be decided. [`CliError::File`]: the file cannot be written. Else as for
/// [`Client::get_json`].
pub fn run(args: &CompareArgs) -> Result<u8, CliError> {
    let format = args.decide()?;
    let client = args.client.client()?;
    let (json, compare) = client.get_json::<Compare<'_>>(route::COMPARE.path, &args.params())?;
    let report = Report::new(&compare);
    let body = match format {
        ReportFormat::Text => {
            let file = args.output.as_deref().filter(|path| path.as_os_str() != "-");
            let room = if file.is_some() { None } else { table::terminal_width() };
            report.text(room)?
        }
        ReportFormat::Json => json.into_bytes(),
        ReportFormat::Markdown => report.markdown().into_bytes(),
        ReportFormat::Junit => junit::write(&compare).into_bytes(),
        ReportFormat::Html => html::write(&report, &picture(&client, &compare)?),
    };
    deliver(args.output.as_deref(), format, &body)?;
    let err = &mut io::stderr().lock();
    for line in &report.beside {
        writeln!(err, "{}", text::clean(line))?;
    }
    Ok(if compare.judged.is_some_and(|judged| judged.failed > 0) { code::FAILURE } else { code::OK })
}

/// The flame graph of the difference: of tasks, times as they are.
fn picture(client: &Client, compare: &Compare<'_>) -> Result<Vec<u8>, CliError> {
    let mut params = Params::new();
    for (side, run) in [("left", &compare.left), ("right", &compare.right)] {
        let basis = &run.basis;
        let of_side = [("app", &run.app), ("from", &basis.range.from.0), ("until", &basis.range.until.0)];
        params.extend(of_side.map(|(name, value)| (Cow::Owned(format!("{side}.{name}")), value.clone())));
    }
    let both = [("query", "{stage!=\"\"}"), (param::SCALE, "absolute"), (param::FORMAT, "svg")];
    params.extend(both.map(|(name, value)| (Cow::Borrowed(name), value.to_owned())));
    Ok(client.get(route::DIFF.path, &params)?.body)
}

fn deliver(file: Option<&Path>, format: ReportFormat, body: &[u8]) -> Result<(), CliError> {
    match file.filter(|path| path.as_os_str() != "-") {
        Some(path) => {
            let written = std::fs::write(path, body);
            written.map_err(|source| CliError::File { what: "write", path: path.to_owned(), source })
        }
        None => {
            let out = &mut io::stdout().lock();
            match (format, std::str::from_utf8(body)) {
                (ReportFormat::Json, Ok(json)) => output::write_json(out, json)?,
                _ => out.write_all(body)?,
            }
            Ok(out.flush()?)
        }
    }
}

#[cfg(test)]
mod tests;
