//! The RPM package: the same tree as the other packages', with the scripts of deploy/rpm.

use super::program::Version;
use crate::arch::Arch;
use crate::{places, sbom};
use anyhow::{Context as _, Result};
use rpm::{BuildConfig, CompressionWithLevel, Dependency, FileOptions, PackageBuilder};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Of gzip, its best.
const LEVEL: u32 = 9;
/// Where Debian's zsh looks, and others'.
const ZSH: (&str, &str) = ("/usr/share/zsh/vendor-completions", "/usr/share/zsh/site-functions");
/// Directories that are the package's own, alone or with other packages, with what is below them: they go with the last of these.
const OWN: [&str; 6] = [
    "/etc/emberscope",
    "/usr/lib/sysusers.d",
    "/usr/share/bash-completion",
    "/usr/share/doc/emberscope",
    "/usr/share/fish",
    "/usr/share/zsh",
];

/// Packs the tree that is laid out below `root`.
pub fn pack(
    root: &Path,
    version: &str,
    (arch, glibc): (Arch, Option<Version>),
    epoch: &str,
    to: &Path,
) -> Result<()> {
    let epoch: u32 =
        epoch.parse().with_context(|| format!("the time {epoch:?} is no number of seconds since 1970"))?;
    let config = BuildConfig::v4().compression(CompressionWithLevel::Gzip(LEVEL)).source_date(epoch);
    let manifest = manifest()?;
    let said = |at: &str| {
        manifest
            .pointer(at)
            .and_then(Value::as_str)
            .with_context(|| format!("profiler/Cargo.toml has no {at}"))
    };
    let (licence, summary) = (said("/license")?, said("/description")?);
    let mut package = PackageBuilder::new("emberscope", version, licence, arch.rust(), summary);
    package.using_config(config).release("1").vendor("The Emberscope authors");
    package.description(said("/metadata/deb/extended-description")?);
    // What rpmbuild would find: the names by which distributions' glibc and libgcc say what they have.
    if let Some(glibc) = glibc {
        package.requires(Dependency::any(format!("libc.so.6(GLIBC_{glibc})(64bit)")));
        package.requires(Dependency::any("libgcc_s.so.1()(64bit)"));
    }
    // For TLS: archives on s3://, debuginfod.
    package.recommends(Dependency::any("ca-certificates"));
    package.post_install_script(script("post")?);
    package.pre_uninstall_script(script("preun")?);
    package.post_uninstall_script(script("postun")?);
    add(&mut package, root)?;
    let written = package.build().and_then(|package| package.write_file(to));
    written.with_context(|| format!("writing {}", to.display()))
}

/// What cargo says of the package `emberscope`: the words are the Debian package's, too.
fn manifest() -> Result<Value> {
    let mut metadata = sbom::metadata(&[])?;
    let packages = metadata["packages"].as_array_mut().context("cargo metadata has no packages")?;
    let own = packages.iter_mut().find(|package| package["name"] == "emberscope");
    own.map(Value::take).context("cargo metadata has no package emberscope")
}

fn script(name: &str) -> Result<String> {
    let path = places::workspace().join("deploy/rpm").join(name);
    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// Adds what lies below `root`, by name, for the same bytes each time.
fn add(package: &mut PackageBuilder, root: &Path) -> Result<()> {
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        let listed =
            std::fs::read_dir(&dir).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        let mut entries: Vec<PathBuf> = listed.with_context(|| format!("reading {}", dir.display()))?;
        entries.sort_unstable();
        for path in entries {
            let installed = format!("/{}", path.strip_prefix(root)?.display()).replace(ZSH.0, ZSH.1);
            if path.is_dir() {
                if OWN.iter().any(|own| Path::new(&installed).starts_with(own)) {
                    package.with_dir_entry(FileOptions::dir(installed).permissions(0o755))?;
                }
                open.push(path);
                continue;
            }
            // With the mode that the file has in the tree.
            let options = FileOptions::new(&installed);
            let options = match installed.as_str() {
                settings if settings.starts_with("/etc/") => options.config().noreplace(),
                document if document.starts_with("/usr/share/doc/") => options.doc(),
                _ => options,
            };
            package.with_file(&path, options)?;
        }
    }
    Ok(())
}
