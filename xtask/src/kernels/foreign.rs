//! What a guest of another architecture runs: Debian's C library, busybox, JVM and Python for it, unpacked and not installed.
//!
//! In: an architecture whose compilers are there (`setup::cross`), which lets apt have its packages. Out: a tree.

use crate::arch::Arch;
use crate::setup::chroot::Chroot;
use crate::setup::cross;
use crate::step;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The release of Debian whose packages they are.
const SUITES: &[&str] = &["bookworm"];
/// What programs in C want.
const ARM64: Chroot = Chroot {
    what: "the C library and busybox for arm64",
    dir: "kernels-arm64/system",
    suites: SUITES,
    packages: &["libc6:arm64", "libgcc-s1:arm64", "busybox-static:arm64"],
    program: "/bin/busybox",
};
/// A JVM, and what it wants beside these.
const ARM64_JAVA: Chroot = Chroot {
    what: "a JVM for arm64",
    dir: "kernels-arm64/java",
    suites: SUITES,
    packages: &["openjdk-17-jre-headless:arm64", "libstdc++6:arm64", "zlib1g:arm64"],
    program: "usr/lib/jvm/java-17-openjdk-arm64",
};

/// The version of that JVM.
pub const JAVA: u32 = 17;
/// Python, with what its library wants, and the module that Spark's workers ask for their limits.
const ARM64_PYTHON: Chroot = Chroot {
    what: "Python for arm64",
    dir: "kernels-arm64/python",
    suites: SUITES,
    // By the suite, since a newer one may be installed here.
    packages: &[
        "python3.11-minimal:arm64/bookworm",
        "libpython3.11-minimal:arm64/bookworm",
        "libpython3.11-stdlib:arm64/bookworm",
        "libexpat1:arm64/bookworm",
        "zlib1g:arm64/bookworm",
        "libssl3:arm64/bookworm",
        "libffi8:arm64/bookworm",
        "libbz2-1.0:arm64/bookworm",
        "liblzma5:arm64/bookworm",
        // Spark's scripts are bash's.
        "bash:arm64/bookworm",
        "libtinfo6:arm64/bookworm",
    ],
    program: "/usr/bin/python3.11",
};

/// Puts them in a directory that is not there yet; the busybox is the answer. A JVM is at `/jdk`, where it is asked for.
pub fn unpack(arch: Arch, to: &Path, (with_java, with_python): (bool, bool)) -> Result<PathBuf> {
    if arch != Arch::Arm64 {
        bail!("no guests of {} are made on another architecture", arch.debian());
    }
    cross::ensure(arch)?;
    std::fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    copy(&ARM64.ensure()?, to)?;
    if with_java {
        copy(&ARM64_JAVA.ensure()?, to)?;
        std::os::unix::fs::symlink(ARM64_JAVA.program, to.join("jdk")).context("linking the JVM")?;
    }
    if with_python {
        copy(&ARM64_PYTHON.ensure()?, to)?;
    }
    Ok(to.join(ARM64.program.trim_start_matches('/')))
}

fn copy(root: &Path, to: &Path) -> Result<()> {
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(root.join(".")).arg(to);
    step::run("copying the guest's system", &mut copy, "look whether the disk is full").map(drop)
}
