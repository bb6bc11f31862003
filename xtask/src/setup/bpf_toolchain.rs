//! Finds or installs the toolchain that compiles the BPF programs.
//!
//! Two routes. Debian's: `rustc-web` with `libstd-rust-web-dev-bpf`, which carries `core` compiled for
//! BPF, so that no nightly compiler is needed. Rustup's: a nightly with `rust-src`, from which cargo
//! compiles `core` itself. Either wants bpf-linker, since rustc emits LLVM bitcode for this target; its
//! LLVM must not be older than the compiler's. Only Debian's route is installed; it is also tried first.

use crate::{places, root, step};
use anyhow::{Context as _, Result, bail};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The bpf-linker that is installed.
const LINKER: &str = "0.13.0";
/// The rustup toolchain that is looked for.
const NIGHTLY: &str = "nightly";
/// Where Debian's compiler is; rustup's shims hide it on the PATH.
pub const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// Its cargo.
pub const DEBIAN_CARGO: &str = "/usr/bin/cargo";

/// What compiles the BPF programs.
#[derive(Clone, Debug)]
pub enum Toolchain {
    /// Debian's compiler with its `core` for BPF.
    Debian {
        /// Directory of bpf-linker.
        linker: PathBuf,
    },
    /// A rustup nightly with rust-src.
    Nightly {
        /// Directory of bpf-linker.
        linker: PathBuf,
    },
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Debian { linker } => {
                write!(f, "{DEBIAN_RUSTC} with Debian's core for BPF, {}/bpf-linker", linker.display())
            }
            Self::Nightly { linker } => {
                write!(f, "rustup {NIGHTLY} with rust-src, {}/bpf-linker", linker.display())
            }
        }
    }
}

impl Toolchain {
    /// A cargo command that compiles for BPF; the caller adds what to build.
    pub fn cargo(&self) -> Result<Command> {
        let (mut command, linker) = match self {
            Self::Debian { linker } => {
                let mut command = Command::new(DEBIAN_CARGO);
                // asm_experimental_arch, which aya-ebpf uses, is not stable yet.
                command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1").arg("build");
                (command, linker)
            }
            Self::Nightly { linker } => {
                let mut command = Command::new("rustup");
                command.args(["run", NIGHTLY, "cargo", "build", "-Z", "build-std=core"]);
                command.env_remove("RUSTC");
                (command, linker)
            }
        };
        command.env("PATH", places::path_with(linker)?);
        // What was meant for the host's compiler is not meant for this one.
        for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER", "CARGO"]
        {
            command.env_remove(variable);
        }
        Ok(command)
    }
}

/// LLVM's objcopy, which knows BPF as GNU's does not: that of Debian's compiler, else the one on the PATH.
pub fn objcopy() -> PathBuf {
    let versioned = llvm_major().and_then(|major| places::on_path(&format!("llvm-objcopy-{major}")));
    versioned.unwrap_or_else(|| PathBuf::from("llvm-objcopy"))
}

/// The toolchain, installed when neither route is there.
pub fn ensure() -> Result<Toolchain> {
    if let Some(found) = debian().or_else(nightly) {
        return Ok(found);
    }
    if places::on_path("apt-get").is_none() {
        bail!(
            "nothing here compiles BPF programs. Either, with rustup: `rustup toolchain install {NIGHTLY} \
             --component rust-src` and `cargo install bpf-linker`; or, on Debian: the packages \
             rustc-web, cargo-web and libstd-rust-web-dev-bpf"
        );
    }
    let _lock = places::lock_cache()?;
    if core_for_bpf().is_none() {
        root::apt_install(
            &["rustc-web", "cargo-web", "libstd-rust-web-dev-bpf"],
            "the compiler for BPF programs",
        )?;
    }
    install_linker()?;
    debian().context(
        "Debian's compiler for BPF is installed and still does not work: try `/usr/bin/rustc -vV` and \
         `bpf-linker --version`",
    )
}

fn debian() -> Option<Toolchain> {
    core_for_bpf()?;
    let linker = places::tools().ok()?.join("bin");
    linker_matches(llvm_major()?).then_some(Toolchain::Debian { linker })
}

/// Debian's `core` for BPF, if installed.
fn core_for_bpf() -> Option<PathBuf> {
    let core = Path::new("/usr/lib/rustlib/bpfel-unknown-none/lib");
    (core.is_dir() && Path::new(DEBIAN_CARGO).is_file() && Path::new(DEBIAN_RUSTC).is_file())
        .then(|| core.to_owned())
}

/// Major version of the LLVM in Debian's compiler.
fn llvm_major() -> Option<u32> {
    let output = Command::new(DEBIAN_RUSTC).arg("-vV").output().ok()?;
    parse_llvm_major(&String::from_utf8_lossy(&output.stdout))
}

fn parse_llvm_major(rustc_vv: &str) -> Option<u32> {
    let version = rustc_vv.lines().find_map(|line| line.strip_prefix("LLVM version: "))?;
    version.split('.').next()?.parse().ok()
}

/// Whether our bpf-linker was built for this LLVM and runs (its LLVM is a shared library).
fn linker_matches(llvm: u32) -> bool {
    let Ok(tools) = places::tools() else { return false };
    let Ok(receipt) = std::fs::read_to_string(tools.join(".crates2.json")) else { return false };
    let receipt: serde_json::Value = serde_json::from_str(&receipt).unwrap_or_default();
    let built_for = receipt["installs"].as_object().and_then(|installs| {
        let (_, install) =
            installs.iter().find(|(name, _)| name.starts_with(&format!("bpf-linker {LINKER} ")))?;
        Some(install["features"].as_array()?.contains(&format!("llvm-{llvm}").into()))
    });
    built_for == Some(true) && works(&tools.join("bin").join("bpf-linker"))
}

fn works(linker: &Path) -> bool {
    Command::new(linker).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn install_linker() -> Result<()> {
    let llvm = llvm_major().with_context(|| format!("{DEBIAN_RUSTC} -vV does not say its LLVM version"))?;
    if linker_matches(llvm) {
        return Ok(());
    }
    let prefix = format!("/usr/lib/llvm-{llvm}");
    let headers = ["/usr/include/zstd.h", "/usr/include/zlib.h"];
    let present = Path::new(&prefix).join("include/llvm-c/Core.h").is_file()
        && Path::new(&prefix).join("lib/libPolly.a").is_file()
        && headers.iter().all(|header| Path::new(header).is_file())
        && places::on_path("c++").is_some();
    if !present {
        let (dev, polly) = (format!("llvm-{llvm}-dev"), format!("libpolly-{llvm}-dev"));
        root::apt_install(&[&dev, &polly, "libzstd-dev", "zlib1g-dev", "g++"], "LLVM, for the BPF linker")?;
    }
    let mut install = places::cargo();
    install
        .args(["install", "bpf-linker", "--version", LINKER, "--locked", "--force", "--root"])
        .arg(places::tools()?)
        .args(["--no-default-features", "--features", &format!("llvm-{llvm}")])
        .env("LLVM_PREFIX", &prefix);
    step::run(
        "building bpf-linker (once; about a minute)",
        &mut install,
        "check the network; bpf-linker must have a feature for the LLVM version of `/usr/bin/rustc -vV`",
    )?;
    Ok(())
}

fn nightly() -> Option<Toolchain> {
    let output =
        Command::new("rustup").args(["run", NIGHTLY, "rustc", "--print", "sysroot"]).output().ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core");
    if !output.status.success() || !source.is_dir() {
        return None;
    }
    let ours = places::tools().ok().map(|tools| tools.join("bin").join("bpf-linker"));
    let linker = places::on_path("bpf-linker").or(ours).filter(|linker| works(linker))?;
    Some(Toolchain::Nightly { linker: linker.parent()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llvm_version_is_read() {
        assert_eq!(parse_llvm_major("rustc 1.96.0\nhost: x\nLLVM version: 22.1.8\n"), Some(22));
        assert_eq!(parse_llvm_major("rustc 1.96.0\n"), None);
    }

    #[test]
    fn the_hosts_flags_do_not_reach_the_bpf_compiler() {
        let command = Toolchain::Debian { linker: "/linker".into() }.cargo().unwrap();
        let variables: Vec<_> = command.get_envs().collect();
        assert!(variables.contains(&("RUSTFLAGS".as_ref(), None)));
        assert!(variables.contains(&("RUSTC".as_ref(), Some(DEBIAN_RUSTC.as_ref()))));
        let path = variables.iter().find(|(key, _)| *key == "PATH").and_then(|(_, value)| *value).unwrap();
        assert!(path.to_string_lossy().starts_with("/linker:"));
    }
}
