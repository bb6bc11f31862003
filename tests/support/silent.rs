//! JVMs that do not describe themselves: HotSpot as it is, but for the name of one symbol, or for all that are not exported.

use anyhow::{Context as _, Result, ensure};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tables that tell where a JVM keeps what (vmStructs.cpp).
const TABLES: &[u8] = b"\0gHotSpotVMStructs\0";
/// Nobody's.
const NOBODYS: &[u8] = b"\0gHotSpotVMStructz\0";

/// Makes `dir` a Java home like `java`, with a copy of its libjvm; gives the directory of that, for `-XXaltjvm=`.
pub fn own_libjvm(java: &Path, dir: &Path) -> Result<PathBuf> {
    let server = dir.join("lib/server");
    std::fs::create_dir_all(&server)?;
    let link_all = |from: &Path, to: &Path, but: &str| -> Result<()> {
        for entry in std::fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
            let name = entry?.file_name();
            if name != but {
                symlink(from.join(&name), to.join(&name))?;
            }
        }
        Ok(())
    };
    link_all(java, dir, "lib")?;
    link_all(&java.join("lib"), &dir.join("lib"), "server")?;
    link_all(&java.join("lib/server"), &server, "libjvm.so")?;
    std::fs::copy(java.join("lib/server/libjvm.so"), server.join("libjvm.so"))?;
    Ok(server)
}

/// The same, of a libjvm without symbols but those that it exports; None: there is no strip.
pub fn stripped_libjvm(java: &Path, dir: &Path) -> Result<Option<PathBuf>> {
    let server = own_libjvm(java, dir)?;
    let stripped = Command::new("strip").arg(server.join("libjvm.so")).status();
    Ok(stripped.is_ok_and(|status| status.success()).then_some(server))
}

/// The same, of a libjvm that exports no tables. The JVM itself never looks the symbol up.
pub fn silent_libjvm(java: &Path, dir: &Path) -> Result<PathBuf> {
    let server = own_libjvm(java, dir)?;
    let mut libjvm = std::fs::read(server.join("libjvm.so"))?;
    let places: Vec<usize> =
        libjvm.windows(TABLES.len()).enumerate().filter(|(_, w)| *w == TABLES).map(|(at, _)| at).collect();
    ensure!(!places.is_empty(), "{} names no tables", java.display());
    for at in places {
        libjvm[at..at + NOBODYS.len()].copy_from_slice(NOBODYS);
    }
    std::fs::write(server.join("libjvm.so"), libjvm)?;
    Ok(server)
}
