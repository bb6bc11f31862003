//! Spark's event logs in HDFS or an object store, each brought to this machine to be read.
//!
//! In: a URL as an archive has it (`hdfs://`, `s3://`, `gs://`, `abfs://`), of a directory of logs, a log or a rolling log's
//! directory; credentials from the usual environment. Out: what logs there are, by their names; one of them as files in a
//! directory here. Whoever writes there may give files any name: those that are no log's are passed over, none is taken for
//! a path. Limits: [`MAX_FILES`] files below the URL, [`MAX_BYTES`] of a log.

use emberscope_archive::{DownloadError, Object, Remote, RemoteError};
use emberscope_import::{EventLog, ImportError};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use tokio::runtime::Runtime;

/// Files below the URL.
const MAX_FILES: usize = 200_000;
/// Bytes of a log, as it is packed.
const MAX_BYTES: u64 = 64 << 30;
/// Of the free space of the file system here, what a log may take.
const PART: u64 = 2;

/// Why a log is not here.
#[derive(Debug, thiserror::Error)]
pub enum FarLogError {
    /// The store refuses, or does not answer.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// There is no log (of the application that was asked for).
    #[error("{0}: there is no event log")]
    NoLog(String),
    /// It is larger than is brought, or than there is room for.
    #[error("{name} has {bytes} bytes; there is room for {room}")]
    Room {
        /// The log's name.
        name: String,
        /// Its bytes, as it is packed.
        bytes: u64,
        /// Bytes that it may have.
        room: u64,
    },
    /// It went while it was brought.
    #[error("{0} is not there any more")]
    Gone(String),
    /// This machine's disk, or no thread.
    #[error("{0}")]
    Here(#[from] io::Error),
    /// What was brought is no log.
    #[error(transparent)]
    Import(#[from] ImportError),
}

/// A place where logs are.
#[derive(Debug)]
pub struct FarLogs {
    runtime: Runtime,
    remote: Remote,
    url: String,
}

/// A log that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarLog {
    /// The name of its file or directory.
    pub name: String,
    /// Bytes of its files.
    pub bytes: u64,
    is_dir: bool,
    /// Its objects, and what each is called as a file.
    files: Vec<(String, String)>,
}

impl FarLogs {
    /// Whether a text is the URL of such a place, and not a path, or a file's URL, of this machine.
    pub fn is_url(text: &str) -> bool {
        text.contains("://") && !text.starts_with("file://")
    }

    /// Opens the place. Nothing is asked of it yet.
    ///
    /// # Errors
    /// [`FarLogError::Remote`]: the text is no URL of a known scheme. [`FarLogError::Here`]: the kernel gives no event queue.
    pub fn open(url: &str) -> Result<Self, FarLogError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let url = url.trim_end_matches('/').to_owned();
        let remote = Remote::open(&url, false)?;
        Ok(Self { runtime, remote, url })
    }

    /// The logs there, by name; with `app` only that application's.
    ///
    /// # Errors
    /// [`FarLogError::Remote`]: it refuses, does not answer, or has more than 200,000 files. [`FarLogError::NoLog`].
    pub fn find(&mut self, app: Option<&str>) -> Result<Vec<FarLog>, FarLogError> {
        let (above, last) = self.url.rsplit_once('/').unwrap_or_default();
        let mut logs = logs(self.runtime.block_on(self.remote.list("", MAX_FILES))?, last, app);
        if logs.is_empty() && !above.ends_with('/') {
            // A list is of what is below a name: this one may be a file's own.
            let remote = Remote::open(above, false)?;
            let file = self.runtime.block_on(remote.head(last))?;
            logs = self::logs(file.into_iter().collect(), "", app);
            self.remote = remote;
        }
        if logs.is_empty() { Err(FarLogError::NoLog(self.url.clone())) } else { Ok(logs) }
    }

    /// Brings a log of up to `most` bytes into a directory that is empty, if it takes no more than half of the free space there.
    ///
    /// # Errors
    /// [`FarLogError`], but for [`FarLogError::NoLog`]. What was written then stays.
    pub fn bring(&self, log: &FarLog, dir: &Path, most: u64) -> Result<EventLog, FarLogError> {
        let disk = rustix::fs::statvfs(dir).map_err(io::Error::from)?;
        let room = most.min(MAX_BYTES).min(disk.f_bavail.saturating_mul(disk.f_frsize) / PART);
        let too_large = |bytes| FarLogError::Room { name: log.name.clone(), bytes, room };
        if log.bytes > room {
            return Err(too_large(log.bytes));
        }
        let path = dir.join(&log.name);
        if log.is_dir {
            std::fs::create_dir(&path)?;
        }
        let mut left = room;
        for (object, file) in &log.files {
            let file = if log.is_dir { path.join(file) } else { path.clone() };
            let brought = self.runtime.block_on(self.remote.download(object, &file, left));
            let (bytes, _) = brought
                .map_err(|error| match error {
                    DownloadError::Remote(error) => FarLogError::Remote(error),
                    DownloadError::Disk(error) => FarLogError::Here(error),
                })?
                .ok_or_else(|| FarLogError::Gone(log.name.clone()))?;
            // A log that is being written grows.
            left = left.checked_sub(bytes).ok_or_else(|| too_large(room.saturating_add(1)))?;
        }
        EventLog::find(&path, None)?.pop().ok_or_else(|| FarLogError::NoLog(self.url.clone()))
    }
}

/// Objects as logs. `last` is the last part of the URL: the name of the log where that is a rolling one's directory.
fn logs(objects: Vec<Object>, last: &str, app: Option<&str>) -> Vec<FarLog> {
    let is_rolling = |name: &str| EventLog::is_named(name, true, None);
    let mut found: BTreeMap<String, FarLog> = BTreeMap::new();
    for Object { name: object, bytes, .. } in objects {
        let parts: Vec<&str> = object.split('/').collect();
        let (name, is_dir, file) = match parts.as_slice() {
            [file] if is_rolling(last) => (last, true, *file),
            [name] => (*name, false, *name),
            [dir, file] if is_rolling(dir) => (*dir, true, *file),
            _ => continue,
        };
        let hidden = file.is_empty() || file.starts_with('.') || file.contains('\0');
        if hidden || !EventLog::is_named(name, is_dir, app) {
            continue;
        }
        let empty = || FarLog { name: name.to_owned(), bytes: 0, is_dir, files: Vec::new() };
        let log = found.entry(name.to_owned()).or_insert_with(empty);
        if log.is_dir == is_dir {
            log.bytes = log.bytes.saturating_add(bytes);
            log.files.push((object.clone(), file.to_owned()));
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str], last: &str, app: Option<&str>) -> Vec<(String, usize)> {
        let object = |name: &&str| Object { name: (*name).to_owned(), bytes: 10, put_ms: 0 };
        let found = logs(names.iter().map(object).collect(), last, app);
        found.into_iter().map(|log| (log.name, log.files.len())).collect()
    }

    #[test]
    fn logs_are_files_and_directories_of_files_and_nothing_else_is_one() {
        let names = [
            "app-1.zstd",
            "app-2",
            ".app-3.crc",
            "appstatus_app-1",
            "eventlog_v2_app-4/events_1_app-4.zstd",
            "eventlog_v2_app-4/events_2_app-4.zstd",
            "eventlog_v2_app-4/.events_2_app-4.zstd.crc",
            "eventlog_v2_app-4/deeper/events_3_app-4",
            "others/app-5",
            "../app-6",
            "/app-7",
            "",
        ];
        let all = [("app-1.zstd", 1), ("app-2", 1), ("eventlog_v2_app-4", 2)];
        assert_eq!(named(&names, "spark-events", None), all.map(|(name, files)| (name.to_owned(), files)));
        assert_eq!(named(&names, "spark-events", Some("app-4")), [("eventlog_v2_app-4".to_owned(), 2)]);
        assert_eq!(named(&names, "spark-events", Some("app-9")), []);
    }

    #[test]
    fn a_rolling_logs_own_directory_is_one_log() {
        let names = ["events_1_app-4.zstd", "events_2_app-4.zstd", "appstatus_app-4"];
        assert_eq!(named(&names, "eventlog_v2_app-4", None), [("eventlog_v2_app-4".to_owned(), 3)]);
    }

    #[test]
    fn a_log_is_brought_as_it_is_and_no_more_than_there_is_room_for() {
        let there = tempfile::tempdir().unwrap();
        std::fs::write(there.path().join("app-1"), "x".repeat(100)).unwrap();
        let rolling = there.path().join("eventlog_v2_app-2");
        std::fs::create_dir(&rolling).unwrap();
        std::fs::write(rolling.join("events_1_app-2"), "y").unwrap();
        let url = format!("file://{}", there.path().display());
        let mut far = FarLogs::open(&url).unwrap();
        let logs = far.find(None).unwrap();
        let here = tempfile::tempdir().unwrap();
        let first = far.bring(&logs[0], here.path(), 100).unwrap();
        assert_eq!(std::fs::read(first.files()[0].path()).unwrap().len(), 100);
        let second = far.bring(&logs[1], here.path(), 100).unwrap();
        assert_eq!((second.name().as_str(), second.files().len()), ("eventlog_v2_app-2", 1));
        let refused = far.bring(&logs[0], here.path(), 99).unwrap_err().to_string();
        assert_eq!(refused, "app-1 has 100 bytes; there is room for 99");
        // A log that has grown since it was listed.
        let small = FarLog { bytes: 1, ..logs[0].clone() };
        let other = tempfile::tempdir().unwrap();
        assert!(matches!(far.bring(&small, other.path(), 50), Err(FarLogError::Room { .. })));
        let gone = FarLog { files: vec![("app-3".to_owned(), "app-3".to_owned())], ..logs[0].clone() };
        let third = tempfile::tempdir().unwrap();
        assert!(matches!(far.bring(&gone, third.path(), 500), Err(FarLogError::Gone(_))));
        // By its own name.
        let mut one = FarLogs::open(&format!("{url}/app-1")).unwrap();
        assert_eq!(one.find(None).unwrap(), logs[..1]);
        let empty = tempfile::tempdir().unwrap();
        let none = FarLogs::open(&format!("file://{}", empty.path().display())).unwrap().find(None);
        assert!(matches!(none, Err(FarLogError::NoLog(_))), "{none:?}");
        assert!(FarLogs::open("ftp://host/logs").is_err());
    }
}
