//! Spark's event logs: what an application's driver wrote of its stages, jobs, SQL executions, plans and executors.
//!
//! In: a log of Spark 2.4 to 4.x: a file, or the directory of a rolling one, plain or packed ([`files`]). Out:
//! the facts that Spark's REST API would have told ([`EventLogFacts`]). Read line by line; a log that is cut, or goes on
//! being written, is read as far as it goes, and the remarks say where it ends. A line that makes no sense is passed
//! over and counted. Limits: [`Bounds`].

mod app;
mod blocks;
mod events;
mod files;
mod graph;
mod lines;
mod own_logs;
mod plan_text;
#[cfg(test)]
mod tests;

pub use files::EventLog;
pub use own_logs::OwnLogs;

use super::ImportError;
use app::App;
use emberscope_model::{SparkFact, WallTime};
use emberscope_target::spark_words::MAX_WORDS;
use lines::{Line, Lines};
use std::io::Read;
use std::path::Path;

/// How much of a log is read, and how much of what it says is kept.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of all files together, unpacked.
    pub log: u64,
    /// Bytes of a line: the plan of a large query with its metrics is some MB.
    pub line: usize,
    /// Stages, jobs, SQL executions and executors, of each.
    pub each: usize,
    /// Operators of all plans, some 100 bytes each.
    pub operators: usize,
}

impl Default for Bounds {
    /// For a command of its own: some 150 MB of memory. Logs of streams that run for months have tens of GB.
    fn default() -> Self {
        Self { log: 256 << 30, line: 64 << 20, each: 100_000, operators: 500_000 }
    }
}

/// What an event log says.
#[derive(Clone, Debug)]
pub struct EventLogFacts {
    /// Id of the application.
    pub app: String,
    /// Name of the application; empty: the log does not say.
    pub name: String,
    /// Stages, jobs, SQL executions, their plans, executors. Each is as of the log's last event.
    pub facts: Vec<SparkFact>,
    /// The first time that the log names.
    pub first: WallTime,
    /// The last time that the log names.
    pub last: WallTime,
    /// Whether it has the application's end.
    pub has_ended: bool,
    /// What is missing, a sentence each.
    pub remarks: Vec<String>,
}

/// How reading goes.
#[derive(Default)]
struct Reading {
    skipped: u64,
    first_skipped: Option<String>,
    cut: Option<String>,
}

impl EventLog {
    /// Reads the log.
    ///
    /// # Errors
    /// [`ImportError::Codec`]: it is packed in a way that is not read. [`ImportError::NoApplication`]: nothing in it says of
    /// which application it is. [`ImportError::Read`]: its first file cannot be opened.
    pub fn read(&self) -> Result<EventLogFacts, ImportError> {
        self.read_within(Bounds::default())
    }

    /// The same, with bounds of one's own.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_within(&self, bounds: Bounds) -> Result<EventLogFacts, ImportError> {
        let mut app = App::within(bounds);
        let mut reading = Reading::default();
        let mut left = bounds.log;
        for (number, file) in self.files().iter().enumerate() {
            let opened = match file.open() {
                Err(ImportError::Read(error)) if number > 0 => {
                    reading.cut = Some(format!("{} cannot be opened: {error}", file.name()));
                    break;
                }
                opened => opened?,
            };
            let mut lines = Lines::new(opened, Bounds { log: left, ..bounds });
            reading.file(&mut lines, &file.name(), &mut app);
            left = lines.left();
            if reading.cut.is_some() {
                break;
            }
        }
        let mut remarks = self.remarks().to_vec();
        remarks.extend(reading.cut.map(|cut| format!("It is read as far as it goes: {cut}.")));
        if !app.has_ended() {
            remarks.push("It has no end of the application: that runs, or was broken off.".to_owned());
        }
        if let Some(first) = reading.first_skipped {
            remarks.push(format!("Of {} lines no event can be read, first {first}.", reading.skipped));
        }
        app.finish(&self.name(), remarks).ok_or(ImportError::NoApplication)
    }
}

impl Reading {
    fn file(&mut self, lines: &mut Lines<impl Read>, name: &str, app: &mut App) {
        loop {
            let number = lines.number() + 1;
            let (text, is_whole) = match lines.read() {
                Ok(Some(Line::Whole(text))) => (text, true),
                Ok(Some(Line::Unfinished(text))) => (text, false),
                Ok(Some(Line::TooLong)) => {
                    self.skip(name, number);
                    continue;
                }
                Ok(None) => return,
                Err(error) => {
                    self.cut = Some(format!("{name} ends in line {number} ({error})"));
                    return;
                }
            };
            match events::take(text, app) {
                Ok(()) => {}
                Err(_) if !is_whole => self.cut = Some(format!("{name} ends inside line {number}")),
                Err(_) => self.skip(name, number),
            }
        }
    }

    fn skip(&mut self, name: &str, number: u64) {
        self.skipped += 1;
        self.first_skipped.get_or_insert_with(|| format!("line {number} of {name}"));
    }
}

/// The name of a path's last part, as text.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    emberscope_target::text::bounded(name.to_string_lossy().as_bytes(), MAX_WORDS / 2)
}
