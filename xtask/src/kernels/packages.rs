//! Debian's kernels: listed, fetched, unpacked, by apt and dpkg.
//!
//! In: the mirrors that this machine's apt knows. Out: directories of the cache with a kernel's `boot` and modules.
//! apt has its lists, its cache and its sources in the cache too, so that nothing of the machine's own is changed;
//! it checks Debian's signatures. What is there already needs no network.

use super::release::{self, Release};
use crate::arch::Arch;
use crate::fresh::apt;
use crate::{places, step};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's keys.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Suites of the archive, and those of its security archive.
const SUITES: [&str; 4] = ["bullseye", "bookworm", "trixie", "trixie-backports"];
const SECURITY: [&str; 3] = ["bullseye-security", "bookworm-security", "trixie-security"];
const MEND: &str = "check that apt reaches Debian's mirror";

/// An unpacked kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The image.
    pub image: PathBuf,
    /// Directory of the modules.
    pub modules: PathBuf,
}

/// The kernels there are: as they were listed last, or now when `update` is asked for or nothing was listed yet.
pub fn list(arch: Arch, update: bool) -> Result<Vec<Release>> {
    let listed = dir(arch)?.join("listed");
    if update || !listed.is_file() {
        let _lock = places::lock_cache()?;
        prepare(arch)?;
        step::run(
            "reading the lists of Debian's kernels",
            apt_command(arch, "apt-get")?.arg("update"),
            MEND,
        )?;
        let names = format!("^linux-(image|binary|modules)-[0-9].*-cloud-{}$", arch.debian());
        let mut search = apt_command(arch, "apt-cache")?;
        let output =
            search.args(["search", "--names-only", &names]).output().context("starting apt-cache")?;
        if output.stdout.is_empty() {
            bail!("{} found nothing; mend: {MEND}", step::shown(&search));
        }
        std::fs::write(&listed, &output.stdout).with_context(|| format!("writing {}", listed.display()))?;
    }
    let text = std::fs::read_to_string(&listed).with_context(|| format!("reading {}", listed.display()))?;
    Ok(release::newest(&text, arch.debian()))
}

/// A kernel, fetched unless it is in the cache.
pub fn ensure(arch: Arch, release: &Release) -> Result<Kernel> {
    let home = dir(arch)?.join(&release.release);
    let stamp = home.join("stamp");
    if !stamp.is_file() {
        let _lock = places::lock_cache()?;
        let _ = std::fs::remove_dir_all(&home);
        unpack(arch, release, &home)?;
        std::fs::write(&stamp, "whole").with_context(|| format!("writing {}", stamp.display()))?;
    }
    find(&home, &release.release)
        .with_context(|| format!("{} lacks the kernel's image or its modules: delete it", home.display()))
}

fn unpack(arch: Arch, release: &Release, home: &Path) -> Result<()> {
    let debs = home.join("debs");
    std::fs::create_dir_all(&debs).with_context(|| format!("creating {}", debs.display()))?;
    let what = format!("fetching Linux {}", release.release);
    let mend = format!("{MEND}; `./x kernels --update` reads its lists anew");
    let mut fetch = apt_command(arch, "apt-get")?;
    step::run(&what, fetch.current_dir(&debs).arg("download").args(&release.packages), &mend)?;
    for entry in std::fs::read_dir(&debs).context("reading the packages")? {
        let deb = entry.context("reading the packages")?.path();
        let mut dpkg = Command::new("dpkg-deb");
        step::run("unpacking a kernel's package", dpkg.arg("-x").arg(&deb).arg(home), &mend)?;
    }
    std::fs::remove_dir_all(&debs).with_context(|| format!("removing {}", debs.display()))
}

/// Before trixie modules are in /lib, then in /usr/lib; since 7.3 the image is with them.
fn find(home: &Path, release: &str) -> Option<Kernel> {
    let modules = ["lib", "usr/lib"].map(|lib| home.join(lib).join("modules").join(release));
    let modules = modules.into_iter().find(|dir| dir.is_dir())?;
    let images = [home.join(format!("boot/vmlinuz-{release}")), modules.join("vmlinuz")];
    let image = images.into_iter().find(|image| image.is_file())?;
    Some(Kernel { image, modules })
}

/// Where an architecture's are kept, and what belongs to them.
pub fn dir(arch: Arch) -> Result<PathBuf> {
    Ok(places::cache()?.join(arch.own_or_named("kernels")))
}

/// Makes apt's directories and its sources.list.
fn prepare(arch: Arch) -> Result<()> {
    let apt_dir = dir(arch)?.join("apt");
    for made in ["lists/partial", "cache/archives/partial"] {
        let path = apt_dir.join(made);
        std::fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
    }
    let sources = apt::sources()?;
    let line = |uri: &str, suite: &str| format!("deb [signed-by={KEYS}] {uri} {suite} main\n");
    let main = SUITES.map(|suite| line(sources.main(), suite)).concat();
    let security = SECURITY.map(|suite| line(sources.security(), suite)).concat();
    let list = apt_dir.join("sources.list");
    std::fs::write(&list, main + &security).with_context(|| format!("writing {}", list.display()))
}

/// `apt-get` or `apt-cache` with a state of its own, for one architecture.
fn apt_command(arch: Arch, program: &str) -> Result<Command> {
    if places::on_path(program).is_none() {
        bail!("Debian's kernels are fetched by apt, and this system has no {program}");
    }
    let apt_dir = dir(arch)?.join("apt");
    let mut apt = Command::new(program);
    let option = |key: &str, name: &str| format!("{key}={}", apt_dir.join(name).display());
    let options = [
        option("Dir::Etc::sourcelist", "sources.list"),
        option("Dir::State::lists", "lists"),
        option("Dir::Cache", "cache"),
        "Dir::Etc::sourceparts=-".to_owned(),
        format!("APT::Architecture={}", arch.debian()),
        format!("APT::Architectures={}", arch.debian()),
        "APT::Sandbox::User=root".to_owned(),
        "Acquire::Languages=none".to_owned(),
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
    ];
    for option in options {
        apt.args(["-o", &option]);
    }
    if program == "apt-get" {
        apt.arg("-q");
    }
    Ok(apt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_in_both_places() {
        let home = std::env::temp_dir().join(format!("xtask-kernel-{}", std::process::id()));
        for (lib, release) in [("lib", "5.10.0-1-cloud-amd64"), ("usr/lib", "6.12.1-cloud-amd64")] {
            std::fs::create_dir_all(home.join(lib).join("modules").join(release)).unwrap();
            assert!(find(&home, release).is_none());
            std::fs::create_dir_all(home.join("boot")).unwrap();
            std::fs::write(home.join(format!("boot/vmlinuz-{release}")), "").unwrap();
            let kernel = find(&home, release).unwrap();
            assert!(
                kernel.modules.starts_with(home.join(lib)) && kernel.image.starts_with(home.join("boot"))
            );
            std::fs::write(kernel.modules.join("vmlinuz"), "").unwrap();
            std::fs::remove_file(kernel.image).unwrap();
            assert!(find(&home, release).is_some());
        }
        std::fs::remove_dir_all(home).unwrap();
    }
}
