//! Compiles the BPF programs: profiler-ebpf's `emberscope-bpf` -> `<target>/bpf/emberscope.bpf.o`.
//!
//! The object is for little-endian machines (`bpfel`) and for the host's register layout. Cargo decides
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
    // A directory of its own: another compiler, and no waiting for the host's build lock.
    let target_dir = places::target().join("bpf").join("cargo");
    // bpf-linker makes BTF from debug info. bpf_loop's callbacks, and maps, need BTF to load.
    let flags = [
        "-Cdebuginfo=2".to_owned(),
        "-Clink-arg=--btf".to_owned(),
        format!("--cfg=bpf_target_arch=\"{}\"", std::env::consts::ARCH),
    ];
    let mut cargo = toolchain.cargo()?;
    cargo
        .current_dir(places::workspace())
        .env("CARGO_TARGET_DIR", &target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        // The workspace's release profile is the daemon's: thin LTO and line tables only.
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "2")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .args(["--locked", "--release", "--package", "profiler-ebpf", "--bin", "emberscope-bpf"])
        .args(["--features", "program", "--target", TARGET]);
    step::run("building the BPF object", &mut cargo, "`./x setup` checks the BPF toolchain")?;

    let built = target_dir.join(TARGET).join("release").join("emberscope-bpf");
    let bytes = std::fs::read(&built).with_context(|| format!("reading {}", built.display()))?;
    let object = object();
    if std::fs::read(&object).ok().as_deref() != Some(&bytes) {
        std::fs::write(&object, &bytes).with_context(|| format!("writing {}", object.display()))?;
    }
    Ok(object)
}
