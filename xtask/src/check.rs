//! `check`: whether both sides compile for an architecture, with clippy's word on the daemon. Nothing runs.

use crate::arch::Arch;
use crate::setup::{bpf_toolchain, cross};
use crate::{bpf, step};
use anyhow::Result;

/// What to check.
#[derive(clap::Args)]
pub struct Options {
    /// The architecture
    #[arg(long, value_enum)]
    arch: Arch,
    /// Only the BPF programs
    #[arg(long)]
    bpf: bool,
}

/// Checks it, and installs what that takes.
pub fn run(options: &Options) -> Result<()> {
    programs(options.arch)?;
    if options.bpf {
        return Ok(());
    }
    cross::ensure(options.arch)?;
    // Clippy is `cargo check` with more to say.
    let mut clippy = cross::cargo(options.arch, "clippy");
    clippy.args(["--workspace", "--all-targets", "--", "-D", "warnings"]);
    let what = format!("clippy for {} (the first time: some minutes)", options.arch.debian());
    step::run(&what, &mut clippy, "mend what clippy says above").map(drop)
}

/// Whether the BPF programs compile for an architecture.
pub fn programs(arch: Arch) -> Result<()> {
    bpf::compile(&bpf_toolchain::ensure()?, arch).map(drop)
}
