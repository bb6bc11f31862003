//! Compiles the BPF programs: profiler-ebpf's `emberscope-bpf` -> `<target>/bpf/emberscope.bpf.o`, and those for another
//! architecture -> `<target>/xtask/bpf/emberscope-ARCH.bpf.o`.
//!
//! An object is for little-endian machines (`bpfel`) and one architecture's registers. Cargo decides
//! whether anything is to be done; an object is replaced only when its bytes differ, so that the daemon
//! is not linked anew for nothing.

mod bare;

use crate::arch::Arch;
use crate::setup::bpf_toolchain::Toolchain;
use crate::{places, step};
use anyhow::{Context as _, Result};
use std::path::PathBuf;

const TARGET: &str = "bpfel-unknown-none";

/// Where the object is left; for this machine, where the daemon's build script looks.
pub fn object(arch: Arch) -> PathBuf {
    if Arch::own() == Some(arch) {
        places::target().join("bpf").join("emberscope.bpf.o")
    } else {
        target_dir().join(format!("emberscope-{}.bpf.o", arch.rust()))
    }
}

/// A directory of its own: another compiler, and no waiting for the host's build lock. Not below the
/// object's: the daemon's build script watches that one.
fn target_dir() -> PathBuf {
    places::target().join("xtask").join("bpf")
}

/// Builds the object, and leaves it where it belongs.
pub fn build(toolchain: &Toolchain, arch: Arch) -> Result<PathBuf> {
    let built = compile(toolchain, arch)?;
    let bytes = std::fs::read(&built).with_context(|| format!("reading {}", built.display()))?;
    let bytes = bare::bare(&bytes)?;
    let object = object(arch);
    if let Some(dir) = object.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    }
    if std::fs::read(&object).ok().as_deref() != Some(&bytes) {
        std::fs::write(&object, &bytes).with_context(|| format!("writing {}", object.display()))?;
    }
    Ok(object)
}

/// The step that compiles it.
pub fn compiling(arch: Arch) -> String {
    format!("building the BPF object for {}", arch.debian())
}

/// Compiles it; cargo's own file is the answer, which the next architecture's replaces.
pub fn compile(toolchain: &Toolchain, arch: Arch) -> Result<PathBuf> {
    let mut cargo = toolchain.cargo()?;
    // The linker and its flags are in .cargo/config.toml, the profile in Cargo.toml.
    cargo
        .current_dir(places::workspace())
        .env("CARGO_TARGET_DIR", target_dir())
        .args(["--locked", "--profile", "bpf", "--package", "profiler-ebpf", "--bin", "emberscope-bpf"])
        .args(["--features", "program", "--target", TARGET]);
    // BTF names the files of lines: as they are called in what is released (xtask/src/package).
    let remapped = places::remapped()?;
    let mut flags: Vec<_> =
        remapped.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect();
    if Arch::own() != Some(arch) {
        // A flag, and not AYA_BPF_TARGET_ARCH: what was compiled for this machine stays as it is.
        flags.push("--cfg".to_owned());
        flags.push(format!("bpf_target_arch=\"{}\"", arch.rust()));
    }
    // JSON's arrays of strings are TOML's.
    let flags = serde_json::to_string(&flags).context("writing the compiler's flags")?;
    cargo.args(["--config", &format!("target.{TARGET}.rustflags={flags}")]);
    step::run(&compiling(arch), &mut cargo, "`./x setup` checks the BPF toolchain")?;
    Ok(target_dir().join(TARGET).join("bpf").join("emberscope-bpf"))
}
