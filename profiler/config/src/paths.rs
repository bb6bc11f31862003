//! Settings that are paths.

use super::values::{ArchiveUrl, Refused, refused};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A path, not empty; whether there is such a file is not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath(PathBuf);

impl FilePath {
    /// As the file system takes it.
    pub fn get(&self) -> &Path {
        &self.0
    }
}

impl FromStr for FilePath {
    type Err = Refused;
    fn from_str(text: &str) -> Result<Self, Refused> {
        if text.is_empty() || text.contains('\0') { refused("a path") } else { Ok(Self(text.into())) }
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// Most places of event logs.
const MAX_DIRS: usize = 8;
/// What Hadoop's file systems call a storage, and what we do.
const STORAGE: [(&str, &str); 2] = [("s3a://", "s3://"), ("abfss://", "abfs://")];

/// A place where Spark's drivers write their event logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// A directory of this machine: its absolute path.
    Dir(PathBuf),
    /// A URL of an object store or of HDFS, as an archive has it.
    Url(String),
}

impl LogPlace {
    /// As `spark.eventLog.dir` names it: `/a`, `file:/a`, `file:///a`, `s3a://bucket/a`.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.contains("://") && !text.starts_with("file:") {
            let ours = STORAGE
                .iter()
                .find_map(|(theirs, ours)| Some(format!("{ours}{}", text.strip_prefix(theirs)?)));
            let url: ArchiveUrl = ours.as_deref().unwrap_or(text).parse().ok()?;
            return Some(Self::Url(url.to_string()));
        }
        let path = text.strip_prefix("file://").or_else(|| text.strip_prefix("file:")).unwrap_or(text);
        (path.starts_with('/') && !path.contains('\0')).then(|| Self::Dir(path.into()))
    }
}

/// Places in which Spark's drivers write their event logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDirs(Vec<LogPlace>);

impl LogDirs {
    /// In the order in which they are looked through.
    pub fn get(&self) -> &[LogPlace] {
        &self.0
    }
}

impl FromStr for LogDirs {
    type Err = Refused;
    fn from_str(text: &str) -> Result<Self, Refused> {
        let places = text.split(',').map(LogPlace::read).collect::<Option<Vec<_>>>();
        let dirs = places.filter(|places| places.len() <= MAX_DIRS);
        let allowed = format!(
            "at most {MAX_DIRS} directories of this machine, or URLs (s3://, gs://, abfs://, hdfs://), such as \
             /var/log/spark-events or s3a://bucket/spark-events, separated by commas"
        );
        dirs.map_or_else(|| refused(allowed), |dirs| Ok(Self(dirs)))
    }
}

impl fmt::Display for LogDirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |place: &LogPlace| match place {
            LogPlace::Dir(path) => path.display().to_string(),
            LogPlace::Url(url) => url.clone(),
        };
        f.write_str(&self.0.iter().map(text).collect::<Vec<_>>().join(","))
    }
}

/// Path of a Unix socket, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketPath(Option<PathBuf>);

impl SocketPath {
    /// The absolute path; None: there is to be no socket.
    pub fn get(&self) -> Option<&Path> {
        self.0.as_deref()
    }
}

impl FromStr for SocketPath {
    type Err = Refused;
    fn from_str(text: &str) -> Result<Self, Refused> {
        match text {
            "none" => Ok(Self(None)),
            // unix(7): sun_path has 108 bytes, the last of them 0.
            _ if text.starts_with('/') && text.len() <= 107 && !text.contains('\0') => {
                Ok(Self(Some(text.into())))
            }
            _ => refused("an absolute path of at most 107 bytes, or none"),
        }
    }
}

impl fmt::Display for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => path.display().fmt(f),
            None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::tests::takes;
    use super::*;

    #[test]
    fn places_of_logs_are_directories_and_storage() {
        let many = ["/a"; 9].join(",");
        takes::<LogDirs>(
            &["/var/log/spark-events", "/a,/b c/d", "hdfs://nn/spark-logs,/a", "s3://bucket/logs"],
            &["", "logs", "ftp://host/logs", "s3://", "s3://b/x?key=1", "/a,", "file://host/a", &many],
        );
        let urls: LogDirs = "s3a://bucket/logs, abfss://logs@etl.dfs.core.windows.net/spark".parse().unwrap();
        assert_eq!(urls.to_string(), "s3://bucket/logs,abfs://logs@etl.dfs.core.windows.net/spark");
        let dirs: LogDirs = "file:/a,file:///b, /c".parse().unwrap();
        assert_eq!(dirs.to_string(), "/a,/b,/c");
    }
}
