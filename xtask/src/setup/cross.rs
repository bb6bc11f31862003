//! Finds or installs what compiles the daemon for an architecture that is not this machine's.
//!
//! Debian's way alone: its compiler (which compiles the BPF programs too), its standard library for the other
//! architecture in the same version, and GNU's C compiler for it, which links and compiles ring's C and assembly.

use crate::arch::Arch;
use crate::setup::bpf_toolchain::{DEBIAN_CARGO, DEBIAN_RUSTC};
use crate::{places, root};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's clippy, which goes with its compiler.
const DEBIAN_CLIPPY: &str = "/usr/bin/cargo-clippy";

/// Installs what is missing.
pub fn ensure(arch: Arch) -> Result<()> {
    let library = Path::new("/usr/lib/rustlib").join(arch.target()).join("lib");
    let tools = [DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_CLIPPY];
    let (compiler, package) = arch.gnu();
    let headers = Path::new("/usr").join(compiler).join("include/stdio.h");
    let there = library.is_dir()
        && headers.is_file()
        && tools.iter().all(|tool| Path::new(tool).is_file())
        && places::on_path(&format!("{compiler}-gcc")).is_some();
    if there {
        return Ok(());
    }
    if places::on_path("dpkg").is_none() {
        bail!(
            "compiling for {} takes Debian's packages rustc-web, libstd-rust-web-dev:{} and gcc-{package}, and this \
             is no Debian",
            arch.target(),
            arch.debian()
        );
    }
    root::add_architecture(arch.debian())?;
    let packages = [
        "rustc-web".to_owned(),
        "cargo-web".to_owned(),
        "rust-web-clippy".to_owned(),
        format!("libstd-rust-web-dev:{}", arch.debian()),
        format!("gcc-{package}"),
        format!("libc6-dev-{}-cross", arch.debian()),
    ];
    root::apt_install(&packages.each_ref().map(String::as_str), &format!("compilers for {}", arch.debian()))
}

/// `cargo COMMAND` for the architecture.
pub fn cargo(arch: Arch, command: &str) -> Command {
    let mut cargo = match command {
        // By its path: cargo would take that of another toolchain, which may be first on the PATH.
        "clippy" => Command::new(DEBIAN_CLIPPY),
        _ => Command::new(DEBIAN_CARGO),
    };
    let target = arch.target().to_uppercase().replace('-', "_");
    cargo
        .current_dir(places::workspace())
        .args([command, "--locked", "--target", arch.target()])
        .env("CARGO", DEBIAN_CARGO)
        .env("RUSTC", DEBIAN_RUSTC)
        .env(format!("CARGO_TARGET_{target}_LINKER"), format!("{}-gcc", arch.gnu().0))
        .env("CARGO_TARGET_DIR", target_dir());
    // What was meant for this machine's compiler is not meant for this one.
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER"] {
        cargo.env_remove(variable);
    }
    cargo
}

/// Where other architectures are compiled to: another compiler than the rest's.
pub fn target_dir() -> PathBuf {
    places::target().join("xtask").join("cross")
}
