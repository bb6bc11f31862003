//! `emberscope import --event-log`: what Spark's event logs say of stages, jobs, SQL executions and executors, into a store.
//!
//! In: logs, on this machine or in HDFS or an object store, and the application that is wanted. Out: facts in blocks of their own, as they would be if a daemon had asked
//! the driver, so that every answer has names for samples that are in the same store, before or later. An answer looks
//! at what was read in its time and up to an hour after, so each hour of an application has a block with what stood in
//! it. Limits: the last [`MAX_HOURS`] hours of an application.

use super::{begin, digest, many, not_kept, was_imported};
use crate::cli::{CliError, stopped, text};
use emberscope_import::{EventLog, EventLogFacts, ImportError};
use emberscope_model::{SparkFact, SparkFactKind, WallTime};
use emberscope_pipeline::{FarLogError, FarLogs};
use emberscope_store::ImportFacts;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// From one block to the next: as far as an answer looks beyond its own time.
const HOUR: Duration = Duration::from_secs(3600);
/// From the last event to the last block: executors outlive their driver a little.
const AFTER: Duration = Duration::from_secs(60);
/// Hours of an application that are kept: six weeks.
const MAX_HOURS: usize = 1000;
/// Where a log of another place is while it is read, in the data directory. What an import that was killed left there goes.
const BROUGHT: &str = "event-log.brought";

/// Imports the log at `path`, or the logs of the directory there, and prints what became of each. A path may be a URL.
///
/// # Errors
/// [`CliError::Import`]: there is no log, or one that was named cannot be read; of several that one is passed over, with
/// its reason. [`CliError::Archive`]: that of a URL. [`CliError::Store`], [`CliError::Output`].
pub fn run(data_dir: &Path, path: &Path, app: Option<&str>, out: &mut dyn Write) -> Result<(), CliError> {
    if let Some(url) = path.to_str().filter(|text| FarLogs::is_url(text)) {
        return far(data_dir, url, app, out);
    }
    let path = path.strip_prefix("file:///").map_or(path.to_owned(), |below| Path::new("/").join(below));
    let path = path.as_path();
    let wrong = |path: &Path, error| CliError::Import { path: path.to_owned(), error: Box::new(error) };
    let logs = EventLog::find(path, app).map_err(|error| wrong(path, error))?;
    let is_alone = logs.len() == 1;
    for log in &logs {
        match one(data_dir, log, app, out)? {
            Ok(()) => {}
            Err(error) if is_alone => return Err(wrong(log.path(), error)),
            Err(error) => writeln!(out, "{}: {error}; passed over", text::clean(&log.name()))?,
        }
    }
    Ok(())
}

/// Imports the logs of a URL: each is brought into the data directory and removed there when it was read.
fn far(data_dir: &Path, url: &str, app: Option<&str>, out: &mut dyn Write) -> Result<(), CliError> {
    let wrong = |error: FarLogError| match error {
        FarLogError::NoLog(_) => CliError::Nothing(error.to_string()),
        _ => CliError::Archive(error.to_string()),
    };
    let mut place = FarLogs::open(url).map_err(wrong)?;
    let logs = place.find(app).map_err(wrong)?;
    let is_alone = logs.len() == 1;
    for log in &logs {
        let brought = Brought::new(data_dir)?;
        let done = match place.bring(log, &brought.0, u64::MAX) {
            Ok(log) => one(data_dir, &log, app, out)?.map_err(FarLogError::Import),
            Err(error) => Err(error),
        };
        match done {
            Ok(()) => {}
            // Who does not answer will not for the next one.
            Err(error) if is_alone || matches!(error, FarLogError::Remote(_)) => return Err(wrong(error)),
            Err(error) => writeln!(out, "{}: {error}; passed over", text::clean(&log.name))?,
        }
    }
    Ok(())
}

/// The directory of a log that was brought here, which goes with this.
struct Brought(PathBuf);

impl Brought {
    fn new(data_dir: &Path) -> Result<Self, CliError> {
        let dir = data_dir.join(BROUGHT);
        let made = match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => DirBuilder::new().mode(0o700).create(&dir),
        };
        match made {
            Ok(()) => Ok(Self(dir)),
            Err(reason) => Err(CliError::DataDir { what: "make", path: dir, reason }),
        }
    }
}

impl Drop for Brought {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(dir = %self.0.display(), %error, "what was brought cannot be removed");
        }
    }
}

fn one(
    data_dir: &Path,
    log: &EventLog,
    app: Option<&str>,
    out: &mut dyn Write,
) -> Result<Result<(), ImportError>, CliError> {
    let shown = text::clean(&log.name()).into_owned();
    let sum = match digest_of(log) {
        Ok(sum) => sum,
        Err(error) => return Ok(Err(ImportError::Read(error))),
    };
    let store = stopped::opened(data_dir)?;
    if was_imported(&store, &sum, &shown, out)? {
        return Ok(Ok(()));
    }
    let told = match log.read() {
        Ok(told) if app.is_some_and(|app| app != told.app) => return Ok(Err(ImportError::NoLog)),
        Ok(told) => told,
        Err(error) => return Ok(Err(error)),
    };
    let facts = ImportFacts { digest: sum, file: log.name(), at_ns: WallTime::now().0 };
    let mut importing = begin(store, data_dir, facts)?;
    let (hours, is_cut) = hours(&told);
    let mut refused = 0;
    for (at, facts) in hours {
        refused += importing.learn(at, &facts).map_err(not_kept)?;
    }
    let (blocks, bytes) = importing.commit().map_err(not_kept)?;
    show(&shown, &told, (blocks, bytes), out)?;
    if is_cut {
        writeln!(out, "  Of an application that ran longer than {MAX_HOURS} hours the last are kept.")?;
    }
    if refused > 0 {
        writeln!(out, "  {refused} times there was no room in an hour's block for one of these.")?;
    }
    Ok(Ok(()))
}

/// SHA-256 of all files of a log, as they are.
fn digest_of(log: &EventLog) -> io::Result<String> {
    digest(log.files().iter().map(|file| file.packed()))
}

/// What stood in each hour, with the time that its block is for; and whether earlier hours are left out.
fn hours(told: &EventLogFacts) -> (Vec<(WallTime, Vec<SparkFact>)>, bool) {
    let last = told.last.plus(AFTER);
    let length = last.0.saturating_sub(told.first.0);
    let all = length.div_ceil(HOUR.as_nanos() as u64) as usize;
    let skipped = all.saturating_sub(MAX_HOURS);
    let mut hours = Vec::new();
    for hour in skipped..all {
        let from = told.first.plus(HOUR * hour as u32);
        let until = from.plus(HOUR).min(last);
        let stood = |fact: &&SparkFact| {
            fact.begun.is_none_or(|begun| begun <= until) && fact.ended.is_none_or(|ended| ended >= from)
        };
        let facts: Vec<SparkFact> = told.facts.iter().filter(stood).cloned().collect();
        // An hour in which nothing ran needs no names.
        if facts.iter().any(|fact| fact.kind != SparkFactKind::Executor) {
            hours.push((until, facts));
        }
    }
    (hours, skipped > 0)
}

fn show(
    log: &str,
    told: &EventLogFacts,
    (blocks, bytes): (usize, u64),
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let count = |kind| told.facts.iter().filter(|fact| fact.kind == kind).count();
    let plans = told.facts.iter().filter(|fact| fact.kind == SparkFactKind::Plan && fact.count > 0).count();
    let (app, name) = (text::clean(&told.app), text::clean(&told.name));
    writeln!(out, "{log}: {app} ({name}), {} to {}", told.first, told.last)?;
    writeln!(
        out,
        "  imported {}, {}, {} with {}, {}: {}, {}",
        many(count(SparkFactKind::Stage), "stage"),
        many(count(SparkFactKind::Job), "job"),
        many(count(SparkFactKind::Sql), "SQL execution"),
        many(plans, "plan"),
        many(count(SparkFactKind::Executor), "executor"),
        many(blocks, "block"),
        text::bytes(Some(bytes)),
    )?;
    for remark in &told.remarks {
        writeln!(out, "  {}", text::clean(remark))?;
    }
    Ok(())
}
