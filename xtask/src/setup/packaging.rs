//! The tools that make packages: cargo-deb, binutils, zstd, xz and dpkg's own. Needed by `package` only.

use super::cargo_tool::CargoTool;
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
