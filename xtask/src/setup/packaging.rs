//! The tools that make packages: cargo-deb, binutils, zstd, xz and dpkg's own. Needed by `package` only.

use super::cargo_tool::CargoTool;
use crate::arch::Arch;
use crate::{places, root};
use anyhow::Result;

/// Without its own xz: that of the system is asked.
pub const CARGO_DEB: CargoTool = CargoTool {
    name: "cargo-deb",
    subcommand: "deb",
    version: "3.8.0",
    exact: true,
    arguments: &["--no-default-features"],
};

/// Programs and Debian's packages of them.
const PROGRAMS: [(&str, &str); 6] = [
    ("objcopy", "binutils"),
    ("zstd", "zstd"),
    ("xz", "xz-utils"),
    ("dpkg-shlibdeps", "dpkg-dev"),
    ("git", "git"),
    // Whose certificates are in the image.
    ("update-ca-certificates", "ca-certificates"),
];

/// Finds or installs them.
pub fn ensure() -> Result<()> {
    programs(&PROGRAMS, "what makes packages")?;
    CARGO_DEB.ensure()
}

/// Finds or installs what reads and runs programs of an architecture: of this machine's [`ensure`] has it.
pub fn ensure_for(arch: Arch) -> Result<()> {
    let Some(emulator) = emulator(arch) else { return Ok(()) };
    let objcopy = binutils(arch, "objcopy");
    let package = format!("binutils-{}", arch.gnu().1);
    programs(
        &[(&objcopy, &package), (emulator, "qemu-user-static")],
        &format!("what packages programs for {}", arch.debian()),
    )
}

/// A tool of binutils' for files of an architecture.
pub fn binutils(arch: Arch, tool: &str) -> String {
    if Arch::own() == Some(arch) { tool.to_owned() } else { format!("{}-{tool}", arch.gnu().0) }
}

/// What runs programs of an architecture that is not this machine's, its system calls being this machine's.
pub fn emulator(arch: Arch) -> Option<&'static str> {
    let emulator = match arch {
        Arch::X86_64 => "qemu-x86_64-static",
        Arch::Arm64 => "qemu-aarch64-static",
    };
    (Arch::own() != Some(arch)).then_some(emulator)
}

/// RPM itself, to try its package.
pub fn ensure_rpm() -> Result<()> {
    programs(&[("rpm", "rpm")], "what installs RPM packages")
}

/// What runs containers, to try the image: with runc, since crun takes no host that has cgroups of both versions.
pub fn ensure_podman() -> Result<()> {
    programs(&[("podman", "podman"), ("runc", "runc")], "what runs containers")
}

fn programs(wanted: &[(&str, &str)], what: &str) -> Result<()> {
    let missing = wanted.iter().filter(|(program, _)| places::on_path(program).is_none());
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if !packages.is_empty() {
        root::apt_install(&packages, what)?;
    }
    Ok(())
}
