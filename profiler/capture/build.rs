//! Puts the BPF object into the crate: `EMBERSCOPE_BPF_OBJECT` if set, else
//! `<target dir>/bpf/emberscope.bpf.o` (where `cargo xtask build` leaves it), else an empty stand-in, so
//! that `cargo check`, clippy and unit tests need no BPF toolchain.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=EMBERSCOPE_BPF_OBJECT");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let object = match env::var_os("EMBERSCOPE_BPF_OBJECT") {
        Some(path) if !path.is_empty() => {
            println!("cargo::rerun-if-changed={}", Path::new(&path).display());
            Some(PathBuf::from(path))
        }
        _ => built_object(&out)?,
    };
    let bytes = match &object {
        Some(path) => fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?,
        None => Vec::new(),
    };
    fs::write(out.join("emberscope.bpf.o"), bytes).map_err(|e| format!("cannot write to OUT_DIR: {e}"))
}

/// The object that `cargo xtask build` made, if it did. The folder is made and watched, not the file: a
/// watched file that is missing would run this script at every build.
fn built_object(out: &Path) -> Result<Option<PathBuf>, String> {
    // Cargo leaves the tag only in a directory that it made itself.
    let is_target =
        |dir: &&Path| dir.join("CACHEDIR.TAG").exists() || dir.join("bpf/emberscope.bpf.o").exists();
    let Some(target) = out.ancestors().find(is_target) else { return Ok(None) };
    let dir = target.join("bpf");
    fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    println!("cargo::rerun-if-changed={}", dir.display());
    let object = dir.join("emberscope.bpf.o");
    Ok(object.exists().then_some(object))
}
