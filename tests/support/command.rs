//! Runs `emberscope` as a user does: a command line in; exit code, output and errors out.
//!
//! coreutils' timeout(1) ends a command that should have ended by itself (code 124).

use anyhow::{Context as _, Result, ensure};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Longest that a command may take, in seconds.
const LIMIT: &str = "300";

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    /// The exit code; 124 after `LIMIT`.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs the words and waits.
pub fn ran<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Result<Ran> {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", LIMIT]).args(words).env_remove("EMBERSCOPE_URL").env_remove("EMBERSCOPE_TOKEN");
    let output = command.stdin(Stdio::null()).output().context("cannot run timeout(1)")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ran { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) })
}

/// Copies a program that is to be run. Not by this process: what another thread starts meanwhile has a descriptor of the copy
/// that is open for writing until its own exec, and the copy cannot be run as long (ETXTBSY).
pub fn copy_program(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg(from).arg(to).status().context("cannot run cp(1)")?;
    ensure!(status.success(), "cp {} {}: {status}", from.display(), to.display());
    Ok(())
}

impl Ran {
    /// Asserts a refusal: this exit code, nothing on standard output, and one line of error that holds
    /// each of `parts` (the cause, the mend).
    pub fn refused(&self, code: i32, parts: &[&str]) -> Result<()> {
        ensure!(self.code == code, "code {} instead of {code}: {self:#?}", self.code);
        let sentence = self.err.trim_end();
        ensure!(self.out.is_empty() && sentence.lines().count() == 1, "not one sentence: {self:#?}");
        ensure!(sentence.starts_with("emberscope: "), "{self:#?}");
        for part in parts {
            ensure!(sentence.contains(part), "{part:?} is not in {sentence:?}");
        }
        Ok(())
    }

    /// Asserts a good end.
    pub fn good(self) -> Result<Self> {
        ensure!(self.code == 0, "{self:#?}");
        Ok(self)
    }
}
