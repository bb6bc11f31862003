//! Java 8, which no Debian release still carries and sid does: unpacked beside the C library that it wants, in a
//! directory of the cache, and run in a chroot there. Nothing of the system is changed; needs root to run.

use super::runtime::Runtime;
use crate::fresh::apt;
use crate::{places, root, step};
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::Command;

/// Package and suite: the JRE is built against trixie's C library.
const PACKAGES: [&str; 5] =
    ["openjdk-8-jre-headless/sid", "libc6/trixie", "zlib1g/trixie", "libgcc-s1/trixie", "libstdc++6/trixie"];
/// Debian's keys.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// In the chroot.
const JAVA: &str = "/usr/lib/jvm/java-8-openjdk-amd64/jre/bin/java";
/// The same one's libjvm, in the chroot.
pub const LIBJVM: &str = "usr/lib/jvm/java-8-openjdk-amd64/jre/lib/amd64/server/libjvm.so";
/// A mount of /proc in a mount namespace of its own goes with the program.
const RUN: &str = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" \"$@\"";

/// Finds or installs it.
pub fn ensure() -> Result<Runtime> {
    if !root::is_root() {
        bail!("Java 8 runs in a chroot, which needs root");
    }
    let dir = places::cache()?.join("jdks/debian-8");
    let stamp = dir.join("stamp");
    if !stamp.is_file() {
        let _lock = places::lock_cache()?;
        let _ = std::fs::remove_dir_all(&dir);
        unpack(&dir)?;
        std::fs::write(&stamp, "whole").with_context(|| format!("writing {}", stamp.display()))?;
    }
    runtime(&dir)
}

/// What was installed before; nothing is fetched.
pub fn installed() -> Option<Runtime> {
    let dir = places::cache().ok()?.join("jdks/debian-8");
    dir.join("stamp").is_file().then(|| runtime(&dir).ok()).flatten()
}

fn runtime(dir: &Path) -> Result<Runtime> {
    let root = dir.join("root");
    let path = root.to_str().context("the cache's name is not UTF-8")?;
    let command = ["unshare", "--mount", "sh", "-c", RUN, path, JAVA].map(str::to_owned).to_vec();
    Ok(Runtime { major: 8, command, root: Some(root) })
}

/// Fetches the packages by apt, with lists and a cache of their own, and unpacks them.
fn unpack(dir: &Path) -> Result<()> {
    let made = |name: &str| -> Result<std::path::PathBuf> {
        let path = dir.join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(path)
    };
    let (debs, root) = (made("debs")?, made("root")?);
    made("lists/partial")?;
    made("cache/archives/partial")?;
    let sources = apt::sources()?;
    let list: String = ["sid", "trixie"]
        .map(|suite| format!("deb [signed-by={KEYS}] {} {suite} main\n", sources.main()))
        .concat();
    std::fs::write(dir.join("sources.list"), list).context("writing a sources.list")?;
    let apt = || {
        let mut apt = Command::new("apt-get");
        let option = |key: &str, name: &str| format!("{key}={}", dir.join(name).display());
        apt.current_dir(&debs)
            .args([
                "-q",
                "-o",
                &option("Dir::Etc::sourcelist", "sources.list"),
                "-o",
                "Dir::Etc::sourceparts=-",
            ])
            .args(["-o", &option("Dir::State::lists", "lists"), "-o", &option("Dir::Cache", "cache")])
            .args(["-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none"])
            // Descriptions and icons of programs: most of what a suite lists.
            .args(["-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]);
        apt
    };
    let mend = "check that apt reaches Debian's mirror";
    step::run("reading the package lists of sid and trixie", apt().arg("update"), mend)?;
    step::run("fetching Java 8", apt().arg("download").args(PACKAGES), mend)?;
    for entry in std::fs::read_dir(&debs).context("reading the packages")? {
        let deb = entry.context("reading the packages")?.path();
        let mut dpkg = Command::new("dpkg-deb");
        step::run("unpacking a package of Java 8", dpkg.arg("-x").arg(&deb).arg(&root), mend)?;
    }
    for made in ["proc", "tmp", "dev"] {
        std::fs::create_dir_all(root.join(made)).context("making the chroot's directories")?;
    }
    for link in ["lib", "lib64"] {
        let at = root.join(link);
        if !at.exists() {
            std::os::unix::fs::symlink(format!("usr/{link}"), &at).context("linking /lib into /usr")?;
        }
    }
    for gone in ["debs", "lists", "cache"] {
        let _ = std::fs::remove_dir_all(dir.join(gone));
    }
    Ok(())
}
