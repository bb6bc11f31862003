//! Who may ask a daemon that is started here.

use anyhow::{Context as _, Result};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may ask over TCP.
pub(super) enum Door {
    /// Everybody on this machine.
    Open,
    /// Who has the token of this file, which is made.
    Guarded(PathBuf),
}

impl Door {
    /// Adds the daemon's settings. Out: the token that opens it, if there is one.
    pub(super) fn open(&self, command: &mut Command) -> Result<Option<String>> {
        match self {
            Self::Open => {
                command.arg("--open-loopback");
                Ok(None)
            }
            Self::Guarded(file) => {
                command.arg("--token-file").arg(file);
                made_token(file).map(Some)
            }
        }
    }
}

/// Writes a token that nobody can guess, for the owner alone.
fn made_token(file: &Path) -> Result<String> {
    let random = File::open("/dev/urandom").and_then(|mut random| {
        let mut bytes = [0; 24];
        random.read_exact(&mut bytes).map(|()| bytes)
    });
    let token: String = random.context("reading /dev/urandom")?.map(|byte| format!("{byte:02x}")).concat();
    let mut options = std::fs::OpenOptions::new();
    let written = options.write(true).create(true).truncate(true).mode(0o600).open(file);
    written
        .and_then(|mut to| to.write_all(token.as_bytes()))
        .with_context(|| format!("writing {}", file.display()))?;
    Ok(token)
}
