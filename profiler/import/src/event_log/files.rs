//! Which files an event log is, and how they are packed.
//!
//! In: a path. Out: logs, each with its files in order. A file `APPID[_ATTEMPT][.CODEC][.inprogress]`, or a directory
//! `eventlog_v2_APPID[_ATTEMPT]` with files `events_N_APPID[_ATTEMPT][.CODEC][.compact]` (`EventLogFileWriters.scala` and
//! `EventLogFileCompactor.scala` of Spark 3.0 to 4.x): what was compacted stands for all files before it. Of the codecs all but
//! lzf are read: zstd, Spark's default since 3.0, lz4, that of 2.4, and snappy. Limits: [`MAX_LOGS`] logs of a directory, [`MAX_FILES`] files of a log.
//! Where users write logs into one directory, see [`super::own_logs`].

use super::super::ImportError;
use super::blocks::{Blocks, Codec, LZ4, SNAPPY};
use super::name_of;
use super::own_logs::Own;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Logs of a directory.
pub(super) const MAX_LOGS: usize = 100_000;
/// Files of a rolling log, each of 128 MiB unless told.
const MAX_FILES: usize = 100_000;
/// What the directory of a rolling log begins with.
const ROLLING: &str = "eventlog_v2_";
/// How a frame of zstd begins.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The codec of Spark that is not read (`CompressionCodec.scala`), in the word of its file names.
const NOT_READ: &str = "lzf";

/// A file of a log.
#[derive(Clone, Debug)]
pub struct LogFile {
    path: PathBuf,
    /// Whose it has to be; None: anybody's.
    own: Option<Own>,
}

impl LogFile {
    /// The name of the file.
    pub fn name(&self) -> String {
        name_of(&self.path)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file as it is. What is no file (a pipe, on which opening would wait) is not opened.
    ///
    /// # Errors
    /// It is no file, is not whose it has to be, or cannot be opened.
    pub fn packed(&self) -> io::Result<File> {
        if let Some(own) = &self.own {
            return own
                .file()
                .map_err(|refusal| io::Error::other(format!("{}: {}", self.name(), refusal.sentence())));
        }
        if !fs::metadata(&self.path)?.is_file() {
            return Err(io::Error::other(format!("{} is no file", self.name())));
        }
        File::open(&self.path)
    }

    /// The file, unpacked.
    ///
    /// # Errors
    /// [`ImportError::Codec`]: it is packed in a way that is not read. [`ImportError::Read`]: it cannot be opened.
    pub fn open(&self) -> Result<Box<dyn Read>, ImportError> {
        let name = self.name();
        let mut ends = name.rsplit('.').filter(|end| !matches!(*end, "inprogress" | "compact"));
        if ends.next() == Some(NOT_READ) {
            return Err(ImportError::Codec(NOT_READ));
        }
        // A name may have been changed; what it begins with tells.
        let mut file = BufReader::with_capacity(1 << 16, self.packed().map_err(ImportError::Read)?);
        for (begin, codec) in [(LZ4, Codec::Lz4), (SNAPPY, Codec::Snappy)] {
            if super::super::begins(&mut file, &begin)? {
                return Ok(Box::new(Blocks::new(file, codec)));
            }
        }
        if super::super::begins(&mut file, &ZSTD)? {
            let unpacked = zstd::stream::read::Decoder::with_buffer(file).map_err(ImportError::Read)?;
            return Ok(Box::new(unpacked));
        }
        Ok(Box::new(file))
    }
}

/// An event log of one application.
#[derive(Clone, Debug)]
pub struct EventLog {
    path: PathBuf,
    files: Vec<LogFile>,
    remarks: Vec<String>,
}

impl EventLog {
    /// The log that is at `path`, or all logs of the directory that is there, by name; with `app` only that application's.
    /// Of a directory nothing is opened: what is no log says so when it is read.
    ///
    /// # Errors
    /// [`ImportError::Read`]: there is nothing, or it cannot be listed. [`ImportError::NoLog`]: it has no log (of `app`).
    pub fn find(path: &Path, app: Option<&str>) -> Result<Vec<Self>, ImportError> {
        if !fs::metadata(path).map_err(ImportError::Read)?.is_dir() {
            return Ok(vec![Self::file(path.to_owned(), None)]);
        }
        if let Some(rolling) = Self::rolling(path, path, None)? {
            return Ok(vec![rolling]);
        }
        let mut logs = Vec::new();
        for entry in fs::read_dir(path).map_err(ImportError::Read)? {
            let entry = entry.map_err(ImportError::Read)?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let is_dir = fs::metadata(&path).is_ok_and(|known| known.is_dir());
            if !Self::is_named(&name, is_dir, app) {
                continue;
            }
            let rolling =
                if is_dir { Self::rolling(&path, &path, None)? } else { Some(Self::file(path, None)) };
            logs.extend(rolling);
            if logs.len() >= MAX_LOGS {
                break;
            }
        }
        logs.sort_by(|a, b| a.path.cmp(&b.path));
        if logs.is_empty() { Err(ImportError::NoLog) } else { Ok(logs) }
    }

    /// Whether a file or directory of this name may be a log; with `app` that application's.
    pub fn is_named(name: &str, is_dir: bool, app: Option<&str>) -> bool {
        let is_log = !name.starts_with('.') && !name.ends_with(".crc") && !name.starts_with("appstatus_");
        let fits = !name.is_empty() && is_dir == name.starts_with(ROLLING);
        is_log && fits && app.is_none_or(|app| is_of(name, app))
    }

    /// The log that is one file.
    pub(super) fn file(path: PathBuf, own: Option<Own>) -> Self {
        Self { files: vec![LogFile { path: path.clone(), own }], path, remarks: Vec::new() }
    }

    /// The rolling log of a directory, which is listed by way of `opened`. None: it has no file of one.
    pub(super) fn rolling(dir: &Path, opened: &Path, own: Option<&Own>) -> Result<Option<Self>, ImportError> {
        let mut found: Vec<(u64, bool, LogFile)> = Vec::new();
        for entry in fs::read_dir(opened).map_err(ImportError::Read)?.take(MAX_FILES) {
            let file_name = entry.map_err(ImportError::Read)?.file_name();
            let name = file_name.to_string_lossy().into_owned();
            let number = name.strip_prefix("events_").and_then(|rest| rest.split('_').next()?.parse().ok());
            if let Some(number) = number.filter(|_| !name.ends_with(".crc")) {
                let own = own.map(|own| own.inside(&file_name));
                found.push((number, name.ends_with(".compact"), LogFile { path: dir.join(&file_name), own }));
            }
        }
        // A compacted file comes after the one that it was made of.
        found.sort_by_key(|(number, is_compact, _)| (*number, *is_compact));
        let begin = found.iter().rposition(|(_, is_compact, _)| *is_compact).unwrap_or_default();
        let used = found.split_off(begin);
        let Some((first, is_compact, _)) = used.first() else { return Ok(None) };
        let mut remarks = Vec::new();
        if *first > 1 && !is_compact {
            remarks.push(format!("Its files before number {first} are missing."));
        }
        for pair in used.windows(2) {
            if let [(before, ..), (after, ..)] = pair
                && *after > before + 1
            {
                remarks.push(format!("Its files between numbers {before} and {after} are missing."));
            }
        }
        remarks.truncate(8);
        let files = used.into_iter().map(|(.., file)| file).collect();
        Ok(Some(Self { path: dir.to_owned(), files, remarks }))
    }

    /// The name of the log's file or directory.
    pub fn name(&self) -> String {
        name_of(&self.path)
    }

    /// Where the log is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files of the log, in order.
    pub fn files(&self) -> &[LogFile] {
        &self.files
    }

    /// What its files lack, a sentence each.
    pub(super) fn remarks(&self) -> &[String] {
        &self.remarks
    }
}

/// Whether a log's name is of an application: its id with what file names do not have made plain
/// (`Utils.sanitizeDirName`), and an attempt or a codec behind it.
fn is_of(name: &str, app: &str) -> bool {
    let plain = |c: char| match c {
        ' ' | ':' | '/' => '-',
        '.' | '$' | '{' | '}' | '\'' | '"' => '_',
        c => c.to_ascii_lowercase(),
    };
    let app: String = app.chars().map(plain).collect();
    let name = name.strip_prefix(ROLLING).unwrap_or(name).to_ascii_lowercase();
    name.strip_prefix(&app).is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '.']))
}
