//! The build that is released: the profile `dist` of Cargo.toml, in which no path of this machine is left, so that the
//! same commit and the same compilers give the same bytes in any directory.

use crate::arch::Arch;
use crate::setup::{bpf_toolchain, cross};
use crate::{bpf, build, places, step};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// Builds the daemon for an architecture; its path is the answer.
pub fn build(arch: Arch, epoch: &str) -> Result<PathBuf> {
    let object = programs(arch)?;
    let paths = places::remapped()?;
    // The C compiler's flags are split at spaces.
    if let Some((path, _)) = paths.iter().find(|(path, _)| path.to_string_lossy().contains([' ', '='])) {
        bail!("{} has a space or a `=` in it, which compilers' flags cannot hold", path.display());
    }
    // The id is the linker's, of all that it links. With the C library inside, one file runs on every distribution.
    // Relocations are packed into bits (DT_RELR), which a loader would have to know: here glibc 2.36 itself is inside. Debian
    // 12's linker (binutils 2.40) packs those of x86-64 alone.
    let link = match arch {
        Arch::X86_64 => "-Clink-arg=-Wl,--build-id=sha1,-z,pack-relative-relocs",
        Arch::Arm64 => "-Clink-arg=-Wl,--build-id=sha1",
    };
    let flags = [link, "-Ctarget-feature=+crt-static"];
    let mut rust = flags.map(str::to_owned).to_vec();
    rust.extend(paths.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())));
    let c: Vec<_> =
        paths.iter().map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display())).collect();
    // With a target the flags are not those of build scripts.
    let (mut cargo, target) = match Arch::own() == Some(arch) {
        true => {
            let mut cargo = places::cargo();
            cargo.current_dir(places::workspace()).args(["build", "--locked", "--target", arch.target()]);
            (cargo, places::target().to_owned())
        }
        false => {
            cross::ensure(arch)?;
            (cross::cargo(arch, "build"), cross::target_dir())
        }
    };
    cargo
        .args(["--profile", "dist", "--package", "emberscope"])
        .env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"))
        .env("CFLAGS", c.join(" "))
        .env("EMBERSCOPE_BPF_OBJECT", &object)
        .env("SOURCE_DATE_EPOCH", epoch);
    build::daemon(&mut cargo)?;
    Ok(target.join(arch.target()).join("dist/emberscope"))
}

/// The BPF object without its DWARF, four fifths of it: the kernel reads BTF alone.
fn programs(arch: Arch) -> Result<PathBuf> {
    let built = bpf::build(&bpf_toolchain::ensure()?, arch)?;
    let object = places::target().join("xtask").join(arch.own_or_named("dist.bpf")).with_added_extension("o");
    let mut strip = Command::new(bpf_toolchain::objcopy());
    strip.arg("--strip-debug").arg(built).arg(&object);
    let mend = "Debian's package llvm-22 has llvm-objcopy, another LLVM's will do";
    step::run("stripping the BPF object", &mut strip, mend)?;
    Ok(object)
}
