//! `build`: the BPF object, then the optimised daemon with the object inside.

use crate::setup::bpf_toolchain;
use crate::{bpf, places, step};
use anyhow::Result;
use std::path::PathBuf;

/// Builds all; the path of the daemon is the answer.
pub fn run() -> Result<PathBuf> {
    bpf::build(&bpf_toolchain::ensure()?)?;
    let mut cargo = places::cargo();
    cargo.current_dir(places::workspace()).args([
        "build",
        "--locked",
        "--release",
        "--package",
        "emberscope",
    ]);
    step::run(
        "building emberscope (the first time: some minutes)",
        &mut cargo,
        "the compiler's message is above; when a download failed, check the network",
    )?;
    let binary = places::target().join("release").join("emberscope");
    println!("built {}", binary.display());
    Ok(binary)
}
