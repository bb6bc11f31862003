//! What the kernel starts with: busybox, `init.sh`, and the modules that a virtio disk needs.
//!
//! In: an unpacked kernel. Out: a cpio archive. Of the modules those are taken that the kernel has not built in; ext4,
//! the serial console and all that the daemon needs are built into every one of Debian's cloud kernels.

use super::cpio::Archive;
use super::packages::Kernel;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Not each kernel has each (5.10 has no `virtio_pci_modern_dev`); `init.sh` finds the order.
const MODULES: [&str; 6] =
    ["virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_blk"];
const INIT: &str = include_str!("init.sh");

/// The archive.
pub fn make(kernel: &Kernel, busybox: &Path) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for directory in ["bin", "dev", "modules", "proc", "sys", "system"] {
        archive.directory(directory);
    }
    let program = std::fs::read(busybox).with_context(|| format!("reading {}", busybox.display()))?;
    archive.file("bin/busybox", &program);
    archive.file("init", INIT.as_bytes());
    let mut files = Vec::new();
    walk(&kernel.modules, &mut files)?;
    let mut order = String::new();
    for name in MODULES {
        let Some(file) = files.iter().find(|file| module_name(file) == Some(name)) else { continue };
        archive.file(&format!("modules/{name}.ko"), &unpacked(file)?);
        order += &format!("{name}.ko\n");
    }
    archive.file("modules/order", order.as_bytes());
    Ok(archive.finish())
}

/// `virtio_blk` of `virtio_blk.ko.xz`.
fn module_name(file: &Path) -> Option<&str> {
    file.file_name()?.to_str()?.split_once(".ko").map(|(name, _)| name)
}

fn unpacked(file: &Path) -> Result<Vec<u8>> {
    let program = match file.extension().and_then(|end| end.to_str()) {
        Some("ko") => return std::fs::read(file).with_context(|| format!("reading {}", file.display())),
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => bail!("{} is compressed in a way that is not known here", file.display()),
    };
    let mut command = Command::new(program);
    let output = command.arg("-dc").arg(file).output();
    let output = output.with_context(|| format!("cannot start {program}: apt-get install {program}"))?;
    if !output.status.success() {
        bail!("{program} cannot unpack {}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let entry = entry.with_context(|| format!("reading {}", dir.display()))?;
        // Links to the kernel's sources are none of the modules.
        match entry.file_type().with_context(|| format!("reading {}", dir.display()))? {
            kind if kind.is_dir() => walk(&entry.path(), files)?,
            kind if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_told_by_their_whole_names() {
        assert_eq!(module_name(Path::new("/m/virtio_blk.ko.xz")), Some("virtio_blk"));
        assert_eq!(module_name(Path::new("/m/virtio_pci.ko")), Some("virtio_pci"));
        assert_eq!(module_name(Path::new("/m/modules.order")), None);
    }
}
