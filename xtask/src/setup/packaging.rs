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
const PROGRAMS: [(&str, &str); 5] = [
    ("objcopy", "binutils"),
    ("zstd", "zstd"),
    ("xz", "xz-utils"),
    ("dpkg-shlibdeps", "dpkg-dev"),
    ("git", "git"),
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

fn programs(wanted: &[(&str, &str)], what: &str) -> Result<()> {
    let missing = wanted.iter().filter(|(program, _)| places::on_path(program).is_none());
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if !packages.is_empty() {
        root::apt_install(&packages, what)?;
    }
    Ok(())
}
