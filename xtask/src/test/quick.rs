//! How the unit tests are compiled: the crates of this workspace quickly and with all their checks, as `cargo test` has them,
//! and linked with the dependencies that were built for the daemon. So a dependency is compiled once, and a test that
//! compresses or hashes does so at the daemon's pace.
//!
//! It is the profile `release` with other settings for the workspace's own crates, in the same build directory; what is
//! finished goes to a directory of its own, as a daemon built so is not to stand in the place of the optimised one.

use crate::{lock, places};
use anyhow::Result;
use std::process::Command;

/// What is other for each crate of the workspace, in the words of Cargo.toml's `[profile.release.package.NAME]`.
const SETTINGS: [&str; 3] = ["opt-level=0", "debug-assertions=true", "overflow-checks=true"];

/// The workspace's own crates.
pub(super) struct Quick(Vec<String>);

impl Quick {
    /// Reads their names from Cargo.lock.
    pub(super) fn new() -> Result<Self> {
        let lock = lock::read()?;
        // They come from nowhere.
        let own = lock::packages(&lock).filter(|package| lock::field(package, "source").is_none());
        Ok(Self(own.filter_map(|package| lock::field(package, "name")).map(str::to_owned).collect()))
    }

    /// Has a cargo compile so. In: one with a subcommand that knows `--release`.
    pub(super) fn set(&self, command: &mut Command) {
        command.arg("--release");
        for member in &self.0 {
            for setting in SETTINGS {
                command.args(["--config", &format!("profile.release.package.{member}.{setting}")]);
            }
        }
        // Cargo's configuration: "build.build-dir" (since 1.91) and "build.target-dir".
        command.env("CARGO_BUILD_BUILD_DIR", places::target());
        command.env("CARGO_TARGET_DIR", places::target().join("unit"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_the_workspaces_own() {
        let quick = Quick::new().unwrap();
        let has = |name: &str| quick.0.iter().any(|member| member == name);
        assert!(["emberscope", "emberscope-store", "xtask"].into_iter().all(has), "{:?}", quick.0);
        assert!(!has("serde"), "{:?}", quick.0);
        let mut command = Command::new("cargo");
        quick.set(&mut command);
        let settings = command.get_args().filter(|argument| *argument == "--config").count();
        assert_eq!(settings, quick.0.len() * SETTINGS.len());
    }
}
