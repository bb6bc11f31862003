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
