//! `package`: what is released, into target/package. The same commit and the same tools give the same bytes.
//!
//! In: the daemon, built by the profile `dist` unless a program is given, files of deploy/ and docs/. Out: an
//! archive (tar.zst), a Debian and an RPM package with the stripped program and the same files, a container image (OCI), a Helm
//! chart that names the image by its digest, the program's debug info, the SBOM, and SHA256SUMS of all. Times are the
//! commit's (SOURCE_DATE_EPOCH), owners are root, entries are sorted. For one architecture or more: each has an archive, a Debian
//! and an RPM package and debug info of its own; the image is of all of them, so that one chart is for nodes of each.

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
use anyhow::{Context as _, Result, ensure};
use archive::{Tree, ZSTD};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to package.
#[derive(clap::Args)]
pub struct Options {
    /// Architectures to package for (default: this machine's)
    #[arg(long, value_enum, value_delimiter = ',')]
    arch: Vec<Arch>,
    /// Programs that are built already, one for each architecture, instead of those by the profile `dist`
    #[arg(long, value_delimiter = ',')]
    bin: Vec<PathBuf>,
}

impl Options {
    /// The architectures, each once.
    fn architectures(&self) -> Result<Vec<Arch>> {
        if self.arch.is_empty() {
            return Ok(vec![Arch::own().context("the daemon runs on x86-64 and arm64 only")?]);
        }
        let mut each = Vec::new();
        for arch in &self.arch {
            if !each.contains(arch) {
                each.push(*arch);
            }
        }
        Ok(each)
    }
}

/// Of what the packages are made.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The programs, with their debug info, and what each was built for.
    pub binaries: &'a [(Arch, &'a Path)],
    /// The version in the packages' names.
    pub version: &'a str,
    /// The time that all has, as [`epoch`] tells it.
    pub epoch: &'a str,
}

/// What was made.
#[derive(Debug)]
pub struct Packages {
    /// For each architecture, in the order asked for.
    pub native: Vec<Native>,
    /// The container image, an OCI image layout as a tar.
    pub image: PathBuf,
    /// The Helm chart.
    pub chart: PathBuf,
    /// The SBOM.
    pub sbom: PathBuf,
    /// SHA-256 of all of them.
    pub sums: PathBuf,
    /// The image's digest, `sha256:` and hexadecimal digits.
    pub digest: String,
}

impl Packages {
    /// All but the sums.
    fn files(&self) -> Vec<&PathBuf> {
        let native = self.native.iter().flat_map(|of| [&of.archive, &of.deb, &of.rpm, &of.debug]);
        native.chain([&self.image, &self.chart, &self.sbom]).collect()
    }
}

/// What is of one architecture.
#[derive(Debug)]
pub struct Native {
    /// Which.
    pub arch: Arch,
    /// The archive.
    pub archive: PathBuf,
    /// The Debian package.
    pub deb: PathBuf,
    /// The RPM package.
    pub rpm: PathBuf,
    /// The debug info.
    pub debug: PathBuf,
    /// Bytes of the stripped program.
    pub stripped: u64,
    /// The oldest glibc that the program runs with; none: it is linked statically.
    pub glibc: Option<program::Version>,
}

/// Builds the daemon and packages it.
pub fn run(options: &Options) -> Result<()> {
    let architectures = options.architectures()?;
    let (programs, wanted) = (options.bin.len(), architectures.len());
    ensure!(
        programs == 0 || programs == wanted,
        "--bin names {programs} programs for {wanted} architectures: give one for each, in the order of --arch"
    );
    let dir = places::target().join("package");
    if dir.exists() {
        std::fs::remove_dir_all(&dir).with_context(|| format!("emptying {}", dir.display()))?;
    }
    let epoch = epoch()?;
    let built: Vec<PathBuf> = match options.bin.as_slice() {
        [] => architectures.iter().map(|arch| dist::build(*arch, &epoch)).collect::<Result<_>>()?,
        given => given.to_vec(),
    };
    let binaries: Vec<(Arch, &Path)> =
        architectures.into_iter().zip(built.iter().map(PathBuf::as_path)).collect();
    let source = Source { binaries: &binaries, version: env!("CARGO_PKG_VERSION"), epoch: &epoch };
    let made = make(source, &dir)?;
    println!();
    for path in made.files().into_iter().chain([&made.sums]) {
        let bytes = path.metadata().with_context(|| format!("reading {}", path.display()))?.len();
        println!("{bytes:12} {}", path.display());
    }
    println!("the image is {}", made.digest);
    for Native { arch, stripped, glibc, .. } in &made.native {
        let needs = glibc.map_or("no library".to_owned(), |glibc| format!("glibc {glibc} or newer"));
        println!("the program for {} is {stripped} bytes, stripped, and needs {needs}", arch.debian());
        if *stripped > program::AIM {
            println!("it is to be {} bytes at most: the profile dist in Cargo.toml decides", program::AIM);
        }
    }
    Ok(())
}

/// Packages programs into `dir`.
pub fn make(source: Source<'_>, dir: &Path) -> Result<Packages> {
    packaging::ensure()?;
    let Source { binaries, version, epoch } = source;
    let mut native = Vec::new();
    let mut programs = Vec::new();
    let stage = dir.join("stage");
    for (arch, binary) in binaries {
        let (of, program) = packed(*arch, binary, source, &stage.join(arch.debian()), dir)?;
        native.push(of);
        programs.push((*arch, program));
    }
    let mut made = Packages {
        image: dir.join(image_name(version, &native)),
        chart: dir.join(format!("emberscope-{version}.tgz")),
        sbom: dir.join(format!("emberscope-{version}.cdx.json")),
        sums: dir.join("SHA256SUMS"),
        digest: String::new(),
        native,
    };
    made.digest = image::pack(&programs, (version, epoch), &dir.join("image"), &made.image)?;
    chart::pack(version, &made.digest, epoch, &dir.join("chart"), &made.chart)?;
    sbom::write(&made.sbom)?;
    sum(dir, &made.files(), &made.sums)?;
    for gone in [stage, dir.join("image"), dir.join("chart")] {
        std::fs::remove_dir_all(&gone).with_context(|| format!("removing {}", gone.display()))?;
    }
    Ok(made)
}

/// An image of one architecture has its name.
fn image_name(version: &str, native: &[Native]) -> String {
    match native {
        [one] => format!("emberscope-{version}-{}-linux.oci.tar", one.arch.rust()),
        _ => format!("emberscope-{version}-linux.oci.tar"),
    }
}

/// The packages of one architecture, and its stripped program, which lies in `stage`.
fn packed(
    arch: Arch,
    binary: &Path,
    source: Source<'_>,
    stage: &Path,
    dir: &Path,
) -> Result<(Native, PathBuf)> {
    packaging::ensure_for(arch)?;
    let Source { version, epoch, .. } = source;
    let name = format!("emberscope-{version}-{}-linux", arch.rust());
    let root = deb::root(stage, arch);
    let stripped = root.join("usr/bin/emberscope");
    tree::create_parent(&stripped)?;
    let debug = dir.join(format!("{name}.debug"));
    program::split(arch, binary, &stripped, &debug)?;
    tree::lay(&root, &stripped, packaging::emulator(arch))?;
    let made = Native {
        arch,
        archive: dir.join(format!("{name}.tar.zst")),
        deb: dir.join(format!("emberscope_{version}-1_{}.deb", arch.debian())),
        rpm: dir.join(format!("emberscope-{version}-1.{}.rpm", arch.rust())),
        debug,
        stripped: stripped.metadata().context("reading the stripped program")?.len(),
        glibc: program::glibc(arch, &stripped)?,
    };
    archive::pack(Tree { root: &root, entries: &["."], name: &name, by: Some(ZSTD) }, epoch, &made.archive)?;
    deb::pack(stage, arch, &format!("{version}-1"), epoch, &made.deb)?;
    rpm::pack(&root, version, (arch, made.glibc), epoch, &made.rpm)?;
    Ok((made, stripped))
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
