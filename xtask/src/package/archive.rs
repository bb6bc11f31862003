//! A tree as one file, by GNU tar as <https://reproducible-builds.org/docs/archives/> says: the same bytes each time.

use crate::step;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// One thread: more would cut what is compressed at places of their own.
pub const ZSTD: &str = "zstd -12 -T1 -q";
/// Without a name and a time in its header.
pub const GZIP: &str = "gzip -9 -n";

/// What is packed, and how.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// The directory whose entries are packed.
    pub root: &'a Path,
    /// The entries, each with all that is below it.
    pub entries: &'a [&'a str],
    /// What stands in place of a leading dot in names.
    pub name: &'a str,
    /// The command that compresses; none: it is not compressed.
    pub by: Option<&'a str>,
}

/// Packs a tree.
pub fn pack(tree: Tree<'_>, epoch: &str, to: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--mode=u=rwX,go=rX", &format!("--mtime=@{epoch}")])
        .arg(format!("--transform=s,^[.],{},", tree.name));
    if let Some(by) = tree.by {
        tar.arg(format!("--use-compress-program={by}"));
    }
    tar.args(["--create", "--file"]).arg(to).arg("--directory").arg(tree.root).args(tree.entries);
    let what = format!("packing {}", to.file_name().unwrap_or_default().display());
    step::run(&what, &mut tar, "GNU tar, gzip and zstd must be installed").map(drop)
}
