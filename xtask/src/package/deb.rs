//! The Debian package, by cargo-deb: what it holds and depends on stands in profiler/Cargo.toml, its scripts in deploy/debian.

use crate::arch::Arch;
use crate::setup::packaging;
use crate::{places, step};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};

/// Where the tree lies in `stage`, which looks as cargo's target directory: cargo-deb packages what lies there.
pub fn root(stage: &Path, arch: Arch) -> PathBuf {
    stage.join(arch.target()).join("release/root")
}

/// Packs the tree that lies in `stage`, with nothing else in it.
pub fn pack(stage: &Path, arch: Arch, version: &str, epoch: &str, to: &Path) -> Result<()> {
    let mut deb = packaging::CARGO_DEB.command()?.context("cargo-deb was installed and does not run")?;
    deb.current_dir(places::workspace())
        .args(["--locked", "--no-build", "--no-strip", "--package", "emberscope", "--target", arch.target()])
        // The program xz, in one thread: another version of a library in it would be other bytes.
        .args(["--compress-system", "--deb-version", version, "--output"])
        .arg(to)
        .env("CARGO_TARGET_DIR", stage)
        .env("SOURCE_DATE_EPOCH", epoch);
    step::run("packing the Debian package", &mut deb, "profiler/Cargo.toml says what is in it").map(drop)
}
