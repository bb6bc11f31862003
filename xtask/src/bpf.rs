//! Compiles the BPF programs: profiler-ebpf's `emberscope-bpf` -> `<target>/bpf/emberscope.bpf.o`.
//!
//! The object is for little-endian machines (`bpfel`) and the host's register layout. Cargo decides
//! whether anything is to be done; the object is replaced only when its bytes differ, so that the daemon
//! is not linked anew for nothing.

use crate::setup::bpf_toolchain::Toolchain;
use crate::{places, step};
use anyhow::{Context as _, Result};
use std::path::PathBuf;

const TARGET: &str = "bpfel-unknown-none";

/// Where the object is left; the daemon's build script looks there.
pub fn object() -> PathBuf {
    places::target().join("bpf").join("emberscope.bpf.o")
}

/// Builds the object.
pub fn build(toolchain: &Toolchain) -> Result<PathBuf> {
    // A directory of its own: another compiler, and no waiting for the host's build lock. Not below the
    // object's: the daemon's build script watches that one.
    let target_dir = places::target().join("xtask").join("bpf");
    let mut cargo = toolchain.cargo()?;
    // The linker and its flags are in .cargo/config.toml, the profile in Cargo.toml.
    cargo
        .current_dir(places::workspace())
        .env("CARGO_TARGET_DIR", &target_dir)
        .args(["--locked", "--profile", "bpf", "--package", "profiler-ebpf", "--bin", "emberscope-bpf"])
        .args(["--features", "program", "--target", TARGET]);
    step::run("building the BPF object", &mut cargo, "`./x setup` checks the BPF toolchain")?;

    let built = target_dir.join(TARGET).join("bpf").join("emberscope-bpf");
    let bytes = std::fs::read(&built).with_context(|| format!("reading {}", built.display()))?;
    let object = object();
    if let Some(dir) = object.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    }
    if std::fs::read(&object).ok().as_deref() != Some(&bytes) {
        std::fs::write(&object, &bytes).with_context(|| format!("writing {}", object.display()))?;
    }
    Ok(object)
}
