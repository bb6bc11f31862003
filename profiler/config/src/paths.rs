//! Settings that are paths.

use super::values::{Refused, refused};
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

/// Most directories of event logs.
const MAX_DIRS: usize = 8;

/// Directories in which Spark's drivers write their event logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDirs(Vec<PathBuf>);

impl LogDirs {
    /// The absolute paths, in the order in which they are looked through.
    pub fn get(&self) -> &[PathBuf] {
        &self.0
    }
}

impl FromStr for LogDirs {
    type Err = Refused;
    fn from_str(text: &str) -> Result<Self, Refused> {
        // As `spark.eventLog.dir` names it: file:/a and file:///a.
        let dir = |text: &str| {
            let text = text.trim();
            let path = text.strip_prefix("file://").or_else(|| text.strip_prefix("file:")).unwrap_or(text);
            (path.starts_with('/') && !path.contains('\0')).then(|| PathBuf::from(path))
        };
        let dirs = text.split(',').map(dir).collect::<Option<Vec<_>>>().filter(|dirs| dirs.len() <= MAX_DIRS);
        let allowed = format!(
            "at most {MAX_DIRS} directories of this machine, such as /var/log/spark-events or file:///tmp/spark-events, with \
             commas between; of a log elsewhere `emberscope import --event-log` reads a copy"
        );
        dirs.map_or_else(|| refused(allowed), |dirs| Ok(Self(dirs)))
    }
}

impl fmt::Display for LogDirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(","))
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
    fn directories_of_logs_are_of_this_machine() {
        let many = ["/a"; 9].join(",");
        takes::<LogDirs>(
            &["/var/log/spark-events", "/a,/b c/d"],
            &["", "logs", "hdfs://nn/spark-logs", "s3a://bucket/logs", "/a,", "file://host/a", &many],
        );
        let dirs: LogDirs = "file:/a,file:///b, /c".parse().unwrap();
        assert_eq!(dirs.to_string(), "/a,/b,/c");
    }
}
