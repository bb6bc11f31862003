//! `package`: what is released, into target/package. The same commit and the same tools give the same bytes.
//!
//! In: the daemon, built by the profile `dist` unless a program is given, files of deploy/ and docs/. Out: an
//! archive (tar.zst), a Debian and an RPM package with the stripped program and the same files, a container image (OCI), a Helm
//! chart that names the image by its digest, the program's debug info, the SBOM, and SHA256SUMS of all. Times are the
//! commit's (SOURCE_DATE_EPOCH), owners are root, entries are sorted. Of this machine's architecture alone.

mod archive;
mod chart;
mod deb;
mod dist;
mod image;
mod program;
mod rpm;
mod tree;

use crate::arch::Arch;
use crate::setup::packaging;
use crate::{places, sbom, step};
use anyhow::{Context as _, Result};
use archive::{Tree, ZSTD};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to package.
#[derive(clap::Args)]
pub struct Options {
    /// A program that is built already, instead of one by the profile `dist`
    #[arg(long)]
    bin: Option<PathBuf>,
}

/// Of what the packages are made.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The program, with its debug info.
    pub binary: &'a Path,
    /// The version in the packages' names.
    pub version: &'a str,
    /// The time that all has, as [`epoch`] tells it.
    pub epoch: &'a str,
}

/// What was made.
#[derive(Debug)]
pub struct Packages {
    /// The archive.
    pub archive: PathBuf,
    /// The Debian package.
    pub deb: PathBuf,
    /// The RPM package.
    pub rpm: PathBuf,
    /// The container image, an OCI image layout as a tar.
    pub image: PathBuf,
    /// The Helm chart.
    pub chart: PathBuf,
    /// The debug info.
    pub debug: PathBuf,
    /// The SBOM.
    pub sbom: PathBuf,
    /// SHA-256 of all of them.
    pub sums: PathBuf,
    /// The image's digest, `sha256:` and hexadecimal digits.
    pub digest: String,
    /// Bytes of the stripped program.
    pub stripped: u64,
    /// The oldest glibc that the program runs with; none: it is linked statically.
    pub glibc: Option<program::Version>,
}

impl Packages {
    /// All but the sums.
    fn files(&self) -> [&PathBuf; 7] {
        [&self.archive, &self.deb, &self.rpm, &self.image, &self.chart, &self.debug, &self.sbom]
    }
}

/// Builds the daemon and packages it.
pub fn run(options: &Options) -> Result<()> {
    let dir = places::target().join("package");
    if dir.exists() {
        std::fs::remove_dir_all(&dir).with_context(|| format!("emptying {}", dir.display()))?;
    }
    let epoch = epoch()?;
    let binary = match &options.bin {
        Some(binary) => binary.clone(),
        None => dist::build(&epoch)?,
    };
    let made = make(Source { binary: &binary, version: env!("CARGO_PKG_VERSION"), epoch: &epoch }, &dir)?;
    println!();
    for path in made.files().into_iter().chain([&made.sums]) {
        let bytes = path.metadata().with_context(|| format!("reading {}", path.display()))?.len();
        println!("{bytes:12} {}", path.display());
    }
    println!("the image is {}", made.digest);
    match made.glibc {
        Some(glibc) => {
            println!("the program is {} bytes, stripped, and needs glibc {glibc} or newer", made.stripped)
        }
        None => println!("the program is {} bytes, stripped, and needs no library", made.stripped),
    }
    if made.stripped > program::AIM {
        println!("it is to be {} bytes at most: the profile dist in Cargo.toml decides", program::AIM);
    }
    Ok(())
}

/// Packages a program into `dir`.
pub fn make(source: Source<'_>, dir: &Path) -> Result<Packages> {
    let arch = Arch::own().context("packages are made on x86-64 and arm64 only")?;
    packaging::ensure()?;
    let Source { version, epoch, .. } = source;
    let name = format!("emberscope-{version}-{}-linux", arch.rust());
    // As cargo's target directory looks: cargo-deb packages what lies there.
    let stage = dir.join("stage");
    let root = stage.join("release/root");
    let stripped = root.join("usr/bin/emberscope");
    let made = Packages {
        archive: dir.join(format!("{name}.tar.zst")),
        deb: dir.join(format!("emberscope_{version}-1_{}.deb", arch.debian())),
        rpm: dir.join(format!("emberscope-{version}-1.{}.rpm", arch.rust())),
        image: dir.join(format!("{name}.oci.tar")),
        chart: dir.join(format!("emberscope-{version}.tgz")),
        debug: dir.join(format!("{name}.debug")),
        sbom: dir.join(format!("emberscope-{version}.cdx.json")),
        sums: dir.join("SHA256SUMS"),
        digest: String::new(),
        stripped: 0,
        glibc: None,
    };
    tree::create_parent(&stripped)?;
    program::split(source.binary, &stripped, &made.debug)?;
    tree::lay(&root, &stripped)?;
    archive::pack(Tree { root: &root, entries: &["."], name: &name, by: Some(ZSTD) }, epoch, &made.archive)?;
    deb::pack(&stage, &format!("{version}-1"), epoch, &made.deb)?;
    let glibc = program::glibc(&stripped)?;
    rpm::pack(&root, version, (arch, glibc), epoch, &made.rpm)?;
    let digest = image::pack(&stripped, version, arch, epoch, &dir.join("image"), &made.image)?;
    chart::pack(version, &digest, epoch, &dir.join("chart"), &made.chart)?;
    sbom::write(&made.sbom)?;
    sum(dir, &made.files(), &made.sums)?;
    let bytes = stripped.metadata().context("reading the stripped program")?.len();
    for gone in [stage, dir.join("image"), dir.join("chart")] {
        std::fs::remove_dir_all(&gone).with_context(|| format!("removing {}", gone.display()))?;
    }
    Ok(Packages { digest, stripped: bytes, glibc, ..made })
}

/// Writes the files' SHA-256, by their names, as sha256sum(1) checks them.
fn sum(dir: &Path, files: &[&PathBuf], to: &Path) -> Result<()> {
    let mut names: Vec<_> = files.iter().filter_map(|file| file.file_name()).collect();
    names.sort_unstable();
    let sums = step::output(Command::new("sha256sum").current_dir(dir).args(names))?;
    std::fs::write(to, sums).with_context(|| format!("writing {}", to.display()))
}

/// The time that all has, in seconds since 1970: SOURCE_DATE_EPOCH where it is set, else the commit's.
pub fn epoch() -> Result<String> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let git =
        step::git(&["log", "-1", "--format=%ct"]).context("set SOURCE_DATE_EPOCH where there is no git");
    Ok(git?.trim().to_owned())
}
