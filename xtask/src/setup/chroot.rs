//! Programs of Debian releases that this machine does not run: unpacked beside the C library that they want, in a directory
//! of the cache, and run in a chroot there. Nothing of the system is changed; needs root to run.

use crate::fresh::apt;
use crate::{places, root, step};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's keys.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// A mount of /proc in a mount namespace of its own goes with the program.
const RUN: &str = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" \"$@\"";

/// A program of packages.
pub struct Chroot {
    /// What it is, for people.
    pub what: &'static str,
    /// Its directory below the cache's.
    pub dir: &'static str,
    /// Suites that apt reads.
    pub suites: &'static [&'static str],
    /// Package and suite.
    pub packages: &'static [&'static str],
    /// The program, in the chroot.
    pub program: &'static str,
}

impl Chroot {
    /// Finds or installs it.
    pub fn ensure(&self) -> Result<PathBuf> {
        if !root::is_root() {
            bail!("{} runs in a chroot, which needs root", self.what);
        }
        let dir = places::cache()?.join(self.dir);
        let stamp = dir.join("stamp");
        if !stamp.is_file() {
            let _lock = places::lock_cache()?;
            let _ = std::fs::remove_dir_all(&dir);
            self.unpack(&dir)?;
            std::fs::write(&stamp, "whole").with_context(|| format!("writing {}", stamp.display()))?;
        }
        Ok(dir.join("root"))
    }

    /// Its root, where it was installed before; nothing is fetched.
    pub fn installed(&self) -> Option<PathBuf> {
        let dir = places::cache().ok()?.join(self.dir);
        dir.join("stamp").is_file().then(|| dir.join("root"))
    }

    /// The words that run the program, as one process from beginning to end.
    pub fn command(&self, root: &Path) -> Result<Vec<String>> {
        let path = root.to_str().context("the cache's name is not UTF-8")?;
        Ok(["unshare", "--mount", "sh", "-c", RUN, path, self.program].map(str::to_owned).to_vec())
    }

    /// Fetches the packages by apt, with lists and a cache of their own, and unpacks them.
    fn unpack(&self, dir: &Path) -> Result<()> {
        let made = |name: &str| -> Result<PathBuf> {
            let path = dir.join(name);
            std::fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
            Ok(path)
        };
        let (debs, root) = (made("debs")?, made("root")?);
        made("lists/partial")?;
        made("cache/archives/partial")?;
        let sources = apt::sources()?;
        let line = |suite: &&str| format!("deb [signed-by={KEYS}] {} {suite} main\n", sources.main());
        let list: String = self.suites.iter().map(line).collect();
        std::fs::write(dir.join("sources.list"), list).context("writing a sources.list")?;
        let apt = || {
            let mut apt = Command::new("apt-get");
            let option = |key: &str, name: &str| format!("{key}={}", dir.join(name).display());
            apt.current_dir(&debs)
                .args(["-q", "-o", &option("Dir::Etc::sourcelist", "sources.list")])
                .args(["-o", "Dir::Etc::sourceparts=-"])
                .args(["-o", &option("Dir::State::lists", "lists"), "-o", &option("Dir::Cache", "cache")])
                .args(["-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none"])
                // Descriptions and icons of programs: most of what a suite lists.
                .args(["-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]);
            apt
        };
        let mend = "check that apt reaches Debian's mirror";
        let suites = self.suites.join(" and ");
        step::run(&format!("reading the package lists of {suites}"), apt().arg("update"), mend)?;
        step::run(&format!("fetching {}", self.what), apt().arg("download").args(self.packages), mend)?;
        for entry in std::fs::read_dir(&debs).context("reading the packages")? {
            let deb = entry.context("reading the packages")?.path();
            let mut dpkg = Command::new("dpkg-deb");
            let unpacking = format!("unpacking a package of {}", self.what);
            step::run(&unpacking, dpkg.arg("-x").arg(&deb).arg(&root), mend)?;
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
}
