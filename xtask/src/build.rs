//! `build`: the BPF object, then the optimised daemon with the object inside.

use crate::arch::Arch;
use crate::setup::{bpf_toolchain, cross};
use crate::{bpf, places, step};
use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::process::Command;

/// What to build.
#[derive(clap::Args, Default)]
pub struct Options {
    /// For another architecture than this machine's
    #[arg(long, value_enum)]
    arch: Option<Arch>,
}

/// Builds what is asked for; the path of the daemon is the answer.
pub fn of(options: &Options) -> Result<PathBuf> {
    options.arch.map_or_else(run, run_for)
}

/// Builds all for an architecture; the path of the daemon is the answer.
pub fn run_for(arch: Arch) -> Result<PathBuf> {
    if Arch::own() == Some(arch) { run() } else { other(arch) }
}

/// Where the daemon of an architecture is built.
pub fn binary(arch: Arch) -> PathBuf {
    let target = match Arch::own() {
        Some(own) if own == arch => places::target(),
        _ => cross::target_dir().join(arch.target()),
    };
    target.join("release").join("emberscope")
}

/// Builds all for this machine; the path of the daemon is the answer.
pub fn run() -> Result<PathBuf> {
    let own = Arch::own().context("the daemon runs on x86-64 and arm64 only")?;
    bpf::build(&bpf_toolchain::ensure()?, own)?;
    let mut cargo = places::cargo();
    cargo.current_dir(places::workspace()).args([
        "build",
        "--locked",
        "--release",
        "--package",
        "emberscope",
    ]);
    daemon(&mut cargo)?;
    let binary = binary(own);
    println!("built {}", binary.display());
    Ok(binary)
}

/// Builds all for another architecture.
fn other(arch: Arch) -> Result<PathBuf> {
    let object = bpf::build(&bpf_toolchain::ensure()?, arch)?;
    cross::ensure(arch)?;
    let mut cargo = cross::cargo(arch, "build");
    cargo.env("EMBERSCOPE_BPF_OBJECT", &object).args(["--release", "--package", "emberscope"]);
    daemon(&mut cargo)?;
    let binary = binary(arch);
    println!("built {}", binary.display());
    Ok(binary)
}

/// Runs a cargo that builds the daemon.
pub fn daemon(cargo: &mut Command) -> Result<()> {
    step::run(
        "building emberscope (the first time: some minutes)",
        cargo,
        "the compiler's message is above; when a download failed, check the network",
    )
    .map(drop)
}
