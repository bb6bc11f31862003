//! Where things are: the source tree, the target directory and the cache that outlives it.
//!
//! The cache (`$XDG_CACHE_HOME/emberscope`, else `~/.cache/emberscope`) has `tools/`, what `cargo
//! install` built for us, and a Python environment for each Spark version. Deleting it costs a longer
//! next run and nothing else.

use anyhow::{Context as _, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Root of the source tree.
pub fn workspace() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Cargo's target directory, `CARGO_TARGET_DIR` heeded.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => workspace().join(dir),
        None => workspace().join("target"),
    }
}

/// Directory of what is worth keeping between clones.
pub fn cache() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|dir| Path::new(dir).is_absolute()) {
        Some(dir) => PathBuf::from(dir),
        None => std::env::home_dir().context("HOME is not set: set it, or XDG_CACHE_HOME")?.join(".cache"),
    };
    Ok(base.join("emberscope"))
}

/// Root given to `cargo install`; the programs are in its `bin`.
pub fn tools() -> Result<PathBuf> {
    Ok(cache()?.join("tools"))
}

/// Directories of this machine whose names compilers would write into what they make, and what to write instead; the last
/// that fits holds.
pub fn remapped() -> Result<Vec<(PathBuf, &'static str)>> {
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir().context("HOME is not set: set it, or CARGO_HOME")?.join(".cargo"),
    };
    Ok(vec![(home, "/cargo"), (workspace().to_owned(), "/emberscope"), (target(), "/emberscope/target")])
}

/// The cargo that runs us, or the one on the PATH.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What our own cargo says of this package. ring's build script runs again when these change: all that lies on it
    // would be compiled anew whenever `cargo` and `./x` take turns.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|own| name.to_string_lossy().starts_with(own)) {
            command.env_remove(name);
        }
    }
    command
}

/// The first `name` on the PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// The PATH with `first` before all else.
pub fn path_with(first: &Path) -> Result<OsString> {
    let rest = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(first.to_owned()).chain(std::env::split_paths(&rest)))
        .with_context(|| format!("{} cannot stand in a PATH", first.display()))
}

/// Takes the lock of the cache until the returned file is dropped, so that two runs do not install the
/// same thing at once. Says so when it has to wait.
pub fn lock_cache() -> Result<std::fs::File> {
    use rustix::fs::{FlockOperation, flock};
    let path = cache()?.join("lock");
    std::fs::create_dir_all(cache()?)
        .with_context(|| format!("creating {}", cache().unwrap_or_default().display()))?;
    let file = std::fs::File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        println!("   another run is installing ({} is locked): waiting for it", path.display());
        flock(&file, FlockOperation::LockExclusive).with_context(|| format!("locking {}", path.display()))?;
    }
    Ok(file)
}
