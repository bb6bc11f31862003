//! Interpreters of this machine, for tests: those of pyenv, and the system's.

use std::path::PathBuf;

/// The interpreters' programs, in the order of their paths.
pub fn pythons() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map_or_else(PathBuf::new, PathBuf::from);
    let root = std::env::var_os("PYENV_ROOT").map_or_else(|| home.join(".pyenv"), PathBuf::from);
    let versions = std::fs::read_dir(root.join("versions")).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin/python3")).collect();
    found.push(PathBuf::from("/usr/bin/python3"));
    found.retain(|python| python.exists());
    found.sort();
    found
}
