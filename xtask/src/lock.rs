//! Cargo.lock of this workspace, as text: its packages, and what it says of one.

use crate::places;
use anyhow::{Context as _, Result};

/// Reads it.
///
/// # Errors
/// It cannot be read.
pub fn read() -> Result<String> {
    let lock = places::workspace().join("Cargo.lock");
    std::fs::read_to_string(&lock).with_context(|| format!("reading {}", lock.display()))
}

/// Its packages.
pub fn packages(lock: &str) -> impl Iterator<Item = &str> {
    lock.split("[[package]]").skip(1)
}

/// A text that it gives of a package: `name`, `version`, `source`, `checksum`.
pub fn field<'a>(package: &'a str, key: &str) -> Option<&'a str> {
    package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}
