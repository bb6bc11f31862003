//! The RPM package: the same tree as the other packages', with the scripts of deploy/rpm.

use super::program::Version;
use crate::arch::Arch;
use crate::places;
use anyhow::{Context as _, Result};
use rpm::{BuildConfig, CompressionWithLevel, Dependency, FileOptions, PackageBuilder};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const SUMMARY: &str = "Always-on profiler for machines that run Apache Spark";
const DESCRIPTION: &str = "A daemon samples every process of a machine with eBPF, knows Spark's applications, executors, stages and \
tasks, names Java, Python, native and kernel frames, and answers with flame graphs for any time that it keeps. Nothing is added \
to a job.";
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
    (arch, glibc): (Arch, Version),
    epoch: &str,
    to: &Path,
) -> Result<()> {
    let epoch: u32 =
        epoch.parse().with_context(|| format!("the time {epoch:?} is no number of seconds since 1970"))?;
    let config = BuildConfig::v4().compression(CompressionWithLevel::Gzip(LEVEL)).source_date(epoch);
    let mut package = PackageBuilder::new("emberscope", version, "MIT OR Apache-2.0", arch.rust(), SUMMARY);
    package.using_config(config).release("1").description(DESCRIPTION).vendor("The Emberscope authors");
    // What rpmbuild would find: the names by which distributions' glibc and libgcc say what they have.
    for library in [format!("libc.so.6(GLIBC_{glibc})(64bit)"), "libgcc_s.so.1()(64bit)".to_owned()] {
        package.requires(Dependency::any(library));
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
            let mode =
                path.metadata().with_context(|| format!("reading {}", path.display()))?.permissions().mode();
            let permissions = (mode & 0o7777) as u16;
            if path.is_dir() {
                if OWN.iter().any(|own| Path::new(&installed).starts_with(own)) {
                    package.with_dir_entry(FileOptions::dir(installed).permissions(0o755))?;
                }
                open.push(path);
                continue;
            }
            let options = FileOptions::new(&installed).permissions(permissions);
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
