//! A Python environment with Spark in it (`pyspark` carries all of Spark, Scala's jars too).
//!
//! In `venv-VERSION` of the cache directory, made once. A stamp written last says that it is whole; one
//! that was cut short, or whose Python went away with a system upgrade, is made anew.

use crate::{places, root, step};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Spark of the demo and the tests.
pub const PYSPARK: &str = "3.5.9";
/// The newest Spark that is measured too: it renames idle threads (SPARK-54861).
pub const NEWEST_PYSPARK: &str = "4.3.0";

/// The directory of the environment with [`PYSPARK`], complete.
pub fn ensure() -> Result<PathBuf> {
    ensure_version(PYSPARK)
}

/// The directory of the environment with this version, where it has been made.
pub fn installed(version: &str) -> Option<PathBuf> {
    let venv = places::cache().ok()?.join(format!("venv-{version}"));
    whole(&venv, version).then_some(venv)
}

/// The directory of the environment with this version, complete.
pub fn ensure_version(version: &str) -> Result<PathBuf> {
    let venv = places::cache()?.join(format!("venv-{version}"));
    if whole(&venv, version) {
        return Ok(venv);
    }
    let _lock = places::lock_cache()?;
    if whole(&venv, version) {
        return Ok(venv);
    }
    if venv.exists() {
        std::fs::remove_dir_all(&venv)
            .with_context(|| format!("removing the unfinished {}", venv.display()))?;
    }
    let python = match base() {
        Some(python) => python,
        None => {
            root::apt_install(&["python3", "python3-venv"], "Python with venv")?;
            base()
                .context("python3-venv is installed, yet no python3 from 3.8 to 3.12 can make environments")?
        }
    };
    let mut make = Command::new(&python);
    make.args(["-m", "venv"]).arg(&venv);
    step::run("making a Python environment", &mut make, "apt-get install python3-venv")?;
    let mut install = Command::new(venv.join("bin/python"));
    install
        .args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input"])
        .arg(format!("pyspark=={version}"));
    step::run(
        &format!("installing Spark {version} from PyPI (320 to 450 MB)"),
        &mut install,
        "check that pip reaches PyPI (PIP_INDEX_URL, PIP_CERT and the proxy variables are heeded)",
    )?;
    std::fs::write(stamp(&venv), version).context("writing the environment's stamp")?;
    Ok(venv)
}

/// Where pyspark lies in an environment: what Spark's own scripts call SPARK_HOME.
pub fn spark_home(venv: &Path) -> Option<PathBuf> {
    let pythons = std::fs::read_dir(venv.join("lib")).ok()?.flatten();
    pythons.map(|python| python.path().join("site-packages/pyspark")).find(|home| home.is_dir())
}

fn stamp(venv: &Path) -> PathBuf {
    venv.join("emberscope-stamp")
}

fn whole(venv: &Path, version: &str) -> bool {
    std::fs::read_to_string(stamp(venv)).is_ok_and(|stamped| stamped == version)
        && probe(&venv.join("bin/python"), "import pyspark.version")
}

/// A Python that Spark 3.5 supports (newer Spark some of them) and that can make environments; the system's before others.
fn base() -> Option<PathBuf> {
    let check = "import sys, venv, ensurepip; sys.exit(not (3, 8) <= sys.version_info[:2] <= (3, 12))";
    let candidates = [Some(PathBuf::from("/usr/bin/python3")), places::on_path("python3")];
    candidates.into_iter().flatten().find(|python| probe(python, check))
}

fn probe(python: &Path, code: &str) -> bool {
    // -I: neither the user's environment nor the current directory decides.
    Command::new(python).args(["-I", "-c", code]).output().is_ok_and(|output| output.status.success())
}
