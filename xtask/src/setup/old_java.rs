//! Java 8, which no Debian release still carries and sid does, in a [`Chroot`].

use super::chroot::Chroot;
use super::runtime::Runtime;
use anyhow::Result;
use std::path::PathBuf;

/// The JRE is built against trixie's C library.
const JAVA_8: Chroot = Chroot {
    what: "Java 8",
    dir: "jdks/debian-8",
    suites: &["sid", "trixie"],
    packages: &[
        "openjdk-8-jre-headless/sid",
        "libc6/trixie",
        "zlib1g/trixie",
        "libgcc-s1/trixie",
        "libstdc++6/trixie",
    ],
    program: "/usr/lib/jvm/java-8-openjdk-amd64/jre/bin/java",
};
/// The same one's libjvm, in the chroot.
pub const LIBJVM: &str = "usr/lib/jvm/java-8-openjdk-amd64/jre/lib/amd64/server/libjvm.so";

/// Finds or installs it.
pub fn ensure() -> Result<Runtime> {
    runtime(JAVA_8.ensure()?)
}

/// What was installed before; nothing is fetched.
pub fn installed() -> Option<Runtime> {
    runtime(JAVA_8.installed()?).ok()
}

fn runtime(root: PathBuf) -> Result<Runtime> {
    Ok(Runtime { major: 8, command: JAVA_8.command(&root)?, root: Some(root) })
}
