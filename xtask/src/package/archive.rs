//! The archive: the tree below a directory of the release's name, by GNU tar as <https://reproducible-builds.org/docs/archives/>
//! says, compressed by zstd.

use crate::step;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// Packs all below `root`; entries begin with `name`.
pub fn pack(root: &Path, name: &str, epoch: &str, to: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--mode=u=rwX,go=rX", &format!("--mtime=@{epoch}"), &format!("--transform=s,^[.],{name},")])
        // One thread: more would cut what is compressed at places of their own.
        .args(["--use-compress-program=zstd -12 -T1 -q", "--create", "--file"])
        .arg(to)
        .arg("--directory")
        .arg(root)
        .arg(".");
    step::run("packing the archive", &mut tar, "GNU tar and zstd must be installed").map(drop)
}
