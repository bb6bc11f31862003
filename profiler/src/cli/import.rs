//! `emberscope import`: other profilers' files into a store, so that they are answered for beside our own samples; and
//! Spark's event logs (`event_log`).
//!
//! In: files, and what they do not say (labels, time, rate). Out: blocks in a data directory that no daemon uses, and on
//! standard output what was imported and what was left out. A file is imported whole or not at all; one that was
//! imported before is passed over.

use super::when::{self, When, when};
use super::{CliError, DataDirLock, stopped, text};
use clap::Args;
use emberscope_export::Unit;
use emberscope_import::{Events, Format, ImportError, Imported, Told};
use emberscope_model::{LabelKey, Role, SampleKind, TimeRange, WallTime};
use emberscope_process::class_of;
use emberscope_serve::time::parse_time;
use emberscope_store::{Chain, DiskStore, DiskStoreError, ImportFacts, Importing, Store};
use emberscope_target::text as texts;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use values::{events, format, hz, pair, period, unit};

mod event_log;
mod values;

/// Bytes of a label's value.
const VALUE: usize = 256;

/// Flags of `emberscope import`.
#[derive(Args, Clone, Debug)]
pub struct ImportArgs {
    /// Files to import: folded stacks, pprof profiles, JFR recordings, each may be compressed with gzip.
    #[arg(value_name = "FILE", required_unless_present = "event_log")]
    files: Vec<PathBuf>,
    /// Spark event log (2.4 to 4.x): a file, the directory of a rolling log, or a directory of logs; local, or a URL
    /// in HDFS or an object store (hdfs://, s3://, gs://, abfs://, with the credentials of an archive). It has no
    /// samples: it names the stages, jobs, SQL executions, plans and executors of samples in the data directory,
    /// earlier or later ones. Plain, or compressed with zstd, lz4 or snappy. May be given several times.
    #[arg(long, value_name = "PATH|URL", conflicts_with_all = ["files", "format", "label", "from", "until", "hz", "period", "unit", "events"])]
    event_log: Vec<PathBuf>,
    /// From a directory of event logs, only those of this application.
    #[arg(long, value_name = "ID", requires = "event_log")]
    app: Option<String>,
    /// Data directory to import into; created if missing. No daemon may be using it.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Format of the files: folded, pprof or jfr. Default: detected from their first bytes.
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    format: Option<Format>,
    /// Label for all samples, such as app=nightly-etl; may be given several times. Labels that the file itself has are
    /// kept. Default: service_name is the application's name, its id, or the file's name; role follows from executor,
    /// else it is other.
    #[arg(long, value_name = "LABEL=VALUE", value_parser = pair)]
    label: Vec<(LabelKey, String)>,
    /// When sampling began, for files without times (folded stacks, some pprof): 15:00, yesterday 15:00, 2026-11-22 15:00,
    /// 15m (ago), RFC 3339, Unix seconds or milliseconds. Default: ten seconds before --until, or when the file was last written.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = when)]
    from: Option<When>,
    /// When sampling ended. Default: ten seconds after --from.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = when)]
    until: Option<When>,
    /// Samples per second of CPU time, for files that do not say (folded stacks).
    #[arg(long, value_name = "N", value_parser = hz, conflicts_with = "period")]
    hz: Option<Duration>,
    /// The same, as the CPU time that a sample stands for: 10ms.
    #[arg(long, value_name = "DURATION", value_parser = period)]
    period: Option<Duration>,
    /// What the numbers of folded stacks count: samples, or nanoseconds.
    #[arg(long, value_name = "UNIT", default_value = Unit::Samples.slug(SampleKind::Cpu), value_parser = unit())]
    unit: Unit,
    /// Which events of a recording: cpu for threads that ran (jdk.ExecutionSample, or jdk.CPUTimeSample where there
    /// are any), native for threads in native methods, which may have waited (jdk.NativeMethodSample), wall for
    /// threads that could run (profiler.WallClockSample): only one of these, as they cover the same time. Beside it, by
    /// importing the recording once more: off-cpu for threads that slept, lock for waits for monitors and locks, alloc for
    /// allocations; the others for what Emberscope exported.
    #[arg(long, value_name = "EVENTS", default_value = "cpu", value_parser = events())]
    events: Events,
}

/// Imports the files, one after the other, and prints what became of each.
///
/// # Errors
/// The first file that cannot be imported ends it: [`CliError::Import`] (its content), [`CliError::File`],
/// [`CliError::Usage`], [`CliError::Store`]. Files before it are imported, and of this one nothing is.
/// [`CliError::Locked`], [`CliError::DataDir`]: the data directory, before any file.
pub fn run(args: &ImportArgs) -> Result<(), CliError> {
    all(args, &mut io::stdout().lock())
}

fn all(args: &ImportArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let range = range(args, WallTime::now())?;
    let _lock = DataDirLock::take(&args.data_dir)?;
    let dir = stopped::store_dir(&args.data_dir);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    made.map_err(|reason| CliError::DataDir { what: "make the store", path: dir.clone(), reason })?;
    for log in &args.event_log {
        event_log::run(&args.data_dir, log, args.app.as_deref(), out)?;
    }
    for file in &args.files {
        one(args, range, file, out)?;
    }
    Ok(out.flush()?)
}

/// The span of `--from` and `--until`.
fn range(args: &ImportArgs, now: WallTime) -> Result<Option<TimeRange>, CliError> {
    let time = |text: &Option<String>| {
        let time = text.as_ref().map(|text| parse_time(text, now)).transpose();
        time.map_err(|error| CliError::Usage(error.to_string()))
    };
    let [from, until] = when::range(args.from.as_ref(), args.until.as_ref(), &jiff::Zoned::now());
    let range = match (time(&from)?, time(&until)?) {
        (None, None) => return Ok(None),
        (Some(from), None) => TimeRange { from, until: from.plus(WINDOW) },
        (None, Some(until)) => TimeRange { from: until.minus(WINDOW), until },
        (Some(from), Some(until)) => TimeRange { from, until },
    };
    match range.is_empty() {
        true => Err(CliError::Usage("--until must be after --from".to_owned())),
        false => Ok(Some(range)),
    }
}

/// Length of the windows that are made: a daemon's, unless told.
const WINDOW: Duration = Duration::from_secs(10);

fn one(
    args: &ImportArgs,
    range: Option<TimeRange>,
    path: &Path,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let failed = |what| move |source| CliError::File { what, path: path.to_owned(), source };
    let mut file = File::open(path).map_err(failed("open"))?;
    let known = file.metadata().map_err(failed("read"))?;
    if !known.is_file() {
        return Err(CliError::Usage(format!("{} is no file", path.display())));
    }
    // A recording's waits are no second copy of its CPU time.
    let beside = if args.events.kind() == SampleKind::Cpu { "" } else { args.events.slug() };
    let parts: [io::Result<Box<dyn Read + '_>>; 2] =
        [Ok(Box::new(&mut file)), Ok(Box::new(beside.as_bytes()))];
    let digest = digest(parts).map_err(failed("read"))?;
    let store = stopped::opened(&args.data_dir)?;
    let shown = text::clean(&path.to_string_lossy()).into_owned();
    if was_imported(&store, &digest, &shown, out)? {
        return Ok(());
    }
    let told = Told {
        range,
        written_ns: known
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .map_or(0, |since| since.as_nanos() as u64),
        period: args.period.or(args.hz),
        nanoseconds: args.unit == Unit::Weight,
        events: args.events,
        window: WINDOW,
        class_of: |name| class_of(name, Role::Other),
    };
    file.rewind().map_err(failed("read"))?;
    let wrong = |error: ImportError| CliError::Import { path: path.to_owned(), error: Box::new(error) };
    let mut imported = emberscope_import::read(&file, args.format, &told).map_err(wrong)?;
    imported.label(&labels(&args.label, path));
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let facts =
        ImportFacts { digest, file: texts::bounded(name.as_bytes(), VALUE), at_ns: WallTime::now().0 };
    let kept = keep(store, &args.data_dir, &imported, facts)?;
    Ok(show(&shown, &imported, kept, out)?)
}

/// SHA-256 of the bytes of files, one after the other.
fn digest(files: impl IntoIterator<Item = io::Result<impl Read>>) -> io::Result<String> {
    let (mut sum, mut some) = (ring::digest::Context::new(&ring::digest::SHA256), vec![0; 1 << 16]);
    for file in files {
        let mut file = file?;
        loop {
            match file.read(&mut some) {
                Ok(0) => break,
                Ok(read) => sum.update(some.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(texts::hex(sum.finish().as_ref()))
}

/// Labels of a file's samples: those that were told, and those that every sample has.
fn labels(told: &[(LabelKey, String)], file: &Path) -> Vec<(LabelKey, String)> {
    let mut labels = told.to_vec();
    let get =
        |key: LabelKey| told.iter().rev().find(|(known, _)| *known == key).map(|(_, value)| value.clone());
    if get(LabelKey::ServiceName).is_none() {
        let stem = file.file_stem().map(|stem| texts::bounded(stem.to_string_lossy().as_bytes(), VALUE));
        let name = get(LabelKey::AppName).or_else(|| get(LabelKey::App)).or(stem);
        labels.extend(name.map(|name| (LabelKey::ServiceName, name)));
    }
    if get(LabelKey::Role).is_none() {
        let role = match get(LabelKey::Executor).as_deref() {
            None => Role::Other,
            Some("driver") => Role::Driver,
            Some(_) => Role::Executor,
        };
        labels.push((LabelKey::Role, role.slug().to_owned()));
    }
    labels
}

/// Whether this was imported before, which is said then.
fn was_imported(store: &DiskStore, digest: &str, shown: &str, out: &mut dyn Write) -> io::Result<bool> {
    let Some(before) = store.imported(digest) else { return Ok(false) };
    let (at, name) = (WallTime(before.at_ns), text::clean(&before.file).into_owned());
    writeln!(out, "{shown}: was imported already, as {name} at {at}: passed over")?;
    Ok(true)
}

/// Begins an import beside what the store has.
fn begin(store: DiskStore, data_dir: &Path, facts: ImportFacts) -> Result<Importing, CliError> {
    let full = || {
        let says = store.disk().and_then(|disk| disk.failing.first().map(|(_, says)| says.clone()));
        let says = says.unwrap_or_else(|| "the disk does not take it".to_owned());
        CliError::Store(format!("what the store has cannot be written as blocks first: {says}"))
    };
    let number = store.next_part().ok_or_else(full)?;
    drop(store);
    Importing::begin(&stopped::store_dir(data_dir), number, facts).map_err(not_kept)
}

/// The store cannot keep what is imported.
fn not_kept(error: DiskStoreError) -> CliError {
    CliError::Store(Chain(&error).to_string())
}

/// Writes windows beside what the store has. Out: blocks and bytes.
fn keep(
    store: DiskStore,
    data_dir: &Path,
    imported: &Imported,
    facts: ImportFacts,
) -> Result<(usize, u64), CliError> {
    let mut importing = begin(store, data_dir, facts)?;
    for window in &imported.windows {
        importing.append(window).map_err(not_kept)?;
    }
    importing.commit().map_err(not_kept)
}

/// So many of something, in words.
fn many(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

fn show(
    file: &str,
    imported: &Imported,
    (blocks, bytes): (usize, u64),
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{file}: {}", text::clean(&imported.by))?;
    let (kind, facts) = (imported.kind, imported.kind.facts());
    let sum = Some(imported.sampled.weight as f64 / facts.amount.of as f64);
    let amount = match kind {
        SampleKind::Cpu => format!("{} of CPU", text::seconds(sum)),
        _ => format!("{} of {}", text::amount(sum, kind), facts.title),
    };
    let windows = many(imported.windows.len(), "window");
    let (from, until) = (imported.range.from, imported.range.until);
    let (count, blocks) = (imported.sampled.count, many(blocks, "block"));
    let size = text::bytes(Some(bytes));
    writeln!(out, "  imported {count} samples, {amount}, {from} to {until}: {windows} in {blocks}, {size}")?;
    if imported.guessed {
        writeln!(
            out,
            "  the file says no time: this is when it was last written; --from and --until say better"
        )?;
    }
    for (count, what) in
        [(imported.stackless, "without a stack"), (imported.truncated, "with a stack that was cut short")]
    {
        if count > 0 {
            writeln!(out, "  {count} samples {what}")?;
        }
    }
    for left in &imported.left_out {
        writeln!(out, "  left out {} of {}", left.count, text::clean(&left.what))?;
    }
    for remark in &imported.remarks {
        writeln!(out, "  {}", text::clean(remark))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
