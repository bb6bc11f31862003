//! The oracle's C half (tests/jobs/python_oracle.c): a library whose functions stand between Python's and below them, and tell
//! the stack by CPython's C API.

use super::Python;
use crate::{places, step};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Scenes that want the library.
pub const C_SCENES: [&str; 2] = ["inside", "between"];
/// How the names of its functions begin, and no others.
const C_FUNCTION: &str = "python_oracle_";

/// Compiles it, for all releases alike, into a directory.
///
/// # Errors
/// This Python has no ctypes, by which the library is loaded, or there is no C compiler.
pub fn library(python: &Python, dir: &Path) -> Result<PathBuf> {
    python.imports("ctypes")?;
    let library = dir.join("python_oracle.so");
    let mut cc = Command::new("cc");
    // A function that jumps to the one it calls last would have no frame.
    cc.args(["-O1", "-fno-optimize-sibling-calls", "-shared", "-fPIC", "-o"]).arg(&library);
    step::output(cc.arg(places::workspace().join("tests/jobs/python_oracle.c")))?;
    Ok(library)
}

/// Whether a native function is the library's, and so a part of what scenes tell.
pub(super) fn is_of_library(function: &str) -> bool {
    function.starts_with(C_FUNCTION)
}

/// Copies a file to a place below a chroot's root, and answers where those see it who run there.
pub(super) fn copied(file: &Path, root: &Path, place: &str) -> Result<PathBuf> {
    let copy = root.join(place);
    std::fs::copy(file, &copy).with_context(|| format!("writing {}", copy.display()))?;
    Ok(Path::new("/").join(place))
}
