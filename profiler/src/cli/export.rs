//! `emberscope export`: chosen samples as a file for other programs, from a daemon or from a data directory.
//!
//! In: the choice of `flamegraph`, and where to. Out: folded stacks, pprof, JFR, or a flat Parquet table. With `--data-dir`
//! the store is read in this process, under the lock that a daemon would hold; nothing is removed from it.

use super::answer::Basis;
use super::client::url_variable;
use super::flamegraph::{FlamegraphArgs, deliver, show};
use super::output::Output;
use super::{CliError, stopped, text};
use clap::Args;
use emberscope_export::{ExportOptions, Format, render};
use emberscope_model::{LabelKey, SampleKind, WallTime};
use emberscope_serve::Asked;
use emberscope_store::{ByJob, ByOperator, Store as _};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Columns of a flat table unless told: what one most often asks by. Labels of single tasks would make a line
/// for each task's stacks.
const COLUMNS: [LabelKey; 8] = [
    LabelKey::Node,
    LabelKey::App,
    LabelKey::AppName,
    LabelKey::Role,
    LabelKey::Executor,
    LabelKey::Stage,
    LabelKey::StageAttempt,
    LabelKey::ThreadClass,
];

/// Fields of a recording's events unless told: there a task may have lines of its own. The first ones name the threads, as
/// far as a reader shows it.
const FIELDS: [LabelKey; 7] = [
    LabelKey::Executor,
    LabelKey::Stage,
    LabelKey::StageAttempt,
    LabelKey::Task,
    LabelKey::ThreadClass,
    LabelKey::Wait,
    LabelKey::App,
];

/// Flags of `emberscope export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    #[command(flatten)]
    of: FlamegraphArgs,
    /// Read this data directory instead of querying a daemon, even if EMBERSCOPE_URL is set; no daemon may be using
    /// it.
    #[arg(long, value_name = "DIR", conflicts_with = "url", help_heading = "Daemon")]
    data_dir: Option<PathBuf>,
}

/// Writes the file, and on standard error what it rests on.
///
/// # Errors
/// As for [`show`]; with `--data-dir` as for [`stopped::open`], [`CliError::Api`] (the choice), [`CliError::Store`]
/// (the answer is too large, say) and [`CliError::Export`]. The file is not written then.
pub fn run(args: &ExportArgs) -> Result<(), CliError> {
    let output = args.of.output.decide_named()?;
    let of = with_columns(&args.of, output.format);
    let err = &mut io::stderr().lock();
    match &args.data_dir {
        Some(dir) => {
            if let Some(note) = url_variable().and_then(|url| not_asked(&url, dir)) {
                writeln!(err, "{}", text::clean(&note))?;
            }
            read(&of, &output, dir, err)
        }
        None => show(&of, &output, &of.client.client()?, err),
    }
}

/// What is said where the environment names a daemon, which a flag goes before.
fn not_asked(url: &str, dir: &Path) -> Option<String> {
    let note = || format!("reading {}: --data-dir goes before EMBERSCOPE_URL ({url})", dir.display());
    (!url.is_empty()).then(note)
}

/// A flat table has columns, and the events of a recording fields; only waits have a cause.
fn with_columns(of: &FlamegraphArgs, format: Format) -> FlamegraphArgs {
    let mut of = of.clone();
    if of.shape.group.is_empty() {
        let waits = of.kind.kind.holds(SampleKind::OffCpu);
        of.shape.group = match format {
            Format::Parquet => COLUMNS.to_vec(),
            Format::Jfr => FIELDS.into_iter().filter(|key| waits || *key != LabelKey::Wait).collect(),
            _ => Vec::new(),
        };
    }
    of
}

fn read(args: &FlamegraphArgs, output: &Output, dir: &Path, err: &mut dyn Write) -> Result<(), CliError> {
    let (_lock, store) = stopped::open(dir)?;
    let asked = emberscope_serve::Params::of_pairs(&args.params())
        .and_then(|params| Asked::read(&params, WallTime::now()))
        .and_then(|asked| asked.query(&store));
    let query =
        asked.map_err(|error| CliError::Api { status: error.status.as_u16(), message: error.message })?;
    let answer = ByJob::new(&ByOperator::new(&store), None)
        .merge(&query)
        .map_err(|error| CliError::Store(error.to_string()))?;
    let options = ExportOptions {
        unit: args.shape.unit_of(query.kind)?,
        title: args.select.describe(),
        annotate: args.shape.annotate,
    };
    let answer = args.shape.shaped(answer);
    let bytes = render(output.format, &answer, &options)?;
    let bytes = output.made(&bytes, &options.title, options.unit.facts(query.kind).unit);
    deliver(output, &bytes, &Basis::from(&answer), &options.title, err)
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::super::recorded::fixture;
    use super::super::{DataDirLock, code};
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        export: ExportArgs,
    }

    fn parse(flags: &[&str]) -> ExportArgs {
        Line::try_parse_from(std::iter::once(&"x").chain(flags)).unwrap().export
    }

    fn exported(dir: &Path, flags: &[&str], file: &str) -> (String, Result<Vec<u8>, CliError>) {
        let path = dir.join(file);
        let mut line = vec!["--data-dir", dir.to_str().unwrap(), "-o", path.to_str().unwrap()];
        line.extend(flags);
        let args = parse(&line);
        let mut err = Vec::new();
        let output = args.of.output.decide().unwrap();
        let result = read(&with_columns(&args.of, output.format), &output, dir, &mut err);
        (String::from_utf8(err).unwrap(), result.map(|()| std::fs::read(path).unwrap()))
    }

    const SPAN: [&str; 4] = ["--from", "1700000000", "--until", "1700000040"];

    #[test]
    fn a_data_directory_is_read_without_a_daemon() {
        let dir = fixture();
        let (line, folded) = exported(dir.path(), &SPAN, "all.folded");
        let folded = String::from_utf8(folded.unwrap()).unwrap();
        let sum: u64 =
            folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(sum, 3280, "as its manifest says");
        assert!(line.contains("4 windows") && line.contains("3280 samples"), "{line}");
        let (_, pprof) = exported(dir.path(), &SPAN, "all.pb.gz");
        assert!(pprof.unwrap().starts_with(&[0x1f, 0x8b]));
        let (_, table) = exported(dir.path(), &[&SPAN[..], &["--app", "app-1"]].concat(), "all.parquet");
        assert!(table.unwrap().starts_with(b"PAR1"));
        let (_, recording) = exported(dir.path(), &SPAN, "all.jfr");
        assert!(recording.unwrap().starts_with(b"FLR\0"));
        assert_eq!(std::fs::read_dir(dir.path().join("store/blocks")).unwrap().count(), 1, "nothing went");
    }

    #[test]
    fn a_data_directory_goes_before_the_environment_and_not_beside_a_flag() {
        let note = not_asked("https://node-7:4099", Path::new("/var/tmp/old")).unwrap();
        assert_eq!(note, "reading /var/tmp/old: --data-dir goes before EMBERSCOPE_URL (https://node-7:4099)");
        assert_eq!(not_asked("", Path::new("/var/tmp/old")), None);
        let both = ["x", "--data-dir", "/var/tmp/old", "--url", "http://node-7:4099"];
        let error = Line::try_parse_from(both).err().unwrap().to_string();
        assert!(error.contains("cannot be used with"), "{error}");
    }

    #[test]
    fn pages_and_speedscopes_files_are_made_here() {
        let dir = fixture();
        let (_, file) = exported(dir.path(), &[&SPAN[..], &["--unit", "ns"]].concat(), "all.speedscope.json");
        let file: serde_json::Value = serde_json::from_slice(&file.unwrap()).unwrap();
        let profile = &file["profiles"][0];
        assert_eq!(profile["type"], "sampled");
        assert_eq!(profile["unit"], "nanoseconds");
        assert!(profile["weights"].as_array().unwrap().len() > 1, "{profile}");
        let (_, page) = exported(dir.path(), &SPAN, "all.html");
        let page = String::from_utf8(page.unwrap()).unwrap();
        assert!(page.starts_with("<!doctype html>") && page.contains("data:image/svg+xml"), "{page}");
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let dir = fixture();
        let (_, none) =
            exported(dir.path(), &["--app", "nobody", SPAN[0], SPAN[1], SPAN[2], SPAN[3]], "a.folded");
        let error = none.unwrap_err();
        assert_eq!(error.code(), code::NOTHING, "{error}");
        let (_, wrong) = exported(dir.path(), &["--from", "-36500d"], "a.folded");
        assert_eq!(wrong.unwrap_err().code(), code::USAGE);
        let soon = Line::try_parse_from(["x", "--from", "soon"]).err().unwrap();
        assert_eq!(soon.exit_code(), i32::from(code::USAGE), "{soon}");
        let lock = DataDirLock::take(dir.path()).unwrap();
        let (_, held) = exported(dir.path(), &SPAN, "a.folded");
        assert!(held.unwrap_err().to_string().contains("another emberscope daemon"));
        drop(lock);
        let empty = tempfile::tempdir().unwrap();
        let (_, nothing) = exported(empty.path(), &SPAN, "a.folded");
        assert!(nothing.unwrap_err().to_string().contains("has no store"));
        assert!(!empty.path().join("lock").exists(), "a wrong name makes nothing");
    }

    #[test]
    fn a_table_has_columns_unless_told() {
        let fake = Fake::answering(200, &[("X-Emberscope-Samples", "4")], "PAR1");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.parquet");
        let args = parse(&["--app", "etl", "-o", file.to_str().unwrap()]);
        let output = args.of.output.decide().unwrap();
        let of = with_columns(&args.of, output.format);
        show(&of, &output, &fake.client(None), &mut Vec::new()).unwrap();
        let target = fake.request().target.replace("%2C", ",");
        assert!(
            target.contains("group=node,app,app_name,role,executor,stage,stage_attempt,thread_class"),
            "{target}"
        );
        assert!(target.ends_with("format=parquet"), "{target}");
        let told = with_columns(&parse(&["--group", "task"]).of, Format::Parquet).params();
        assert!(told.contains(&("group", "task".to_owned())));
        let fields = |flags: &[&str]| with_columns(&parse(flags).of, Format::Jfr).shape.group;
        assert!(!fields(&[]).contains(&LabelKey::Wait) && fields(&[]).contains(&LabelKey::Task));
        assert!(fields(&["--type", "off-cpu"]).contains(&LabelKey::Wait));
        let none = with_columns(&parse(&[]).of, Format::Pprof).params();
        assert!(!none.iter().any(|(name, _)| *name == "group"));
    }
}
