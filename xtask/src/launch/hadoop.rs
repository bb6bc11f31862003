//! Hadoop's servers for tests. Spark brings all of Hadoop's client; the servers are one more jar, `hadoop-client-minicluster`
//! of the same version. What Spark has not is fetched once from Maven Central into the cache.

use crate::places;
use crate::setup::python;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

const CENTRAL: &str = "https://repo.maven.apache.org/maven2";

/// The jars of the servers for the Hadoop of a Spark, these of Maven Central (`GROUP/ARTIFACT/VERSION`, with slashes) and
/// Spark's own. The inner error says why they cannot be had.
pub fn jars(venv: &Path, more: &[&str]) -> Result<Result<Vec<PathBuf>, String>> {
    let jars = python::spark_home(venv).context("no pyspark in the Python environment")?.join("jars");
    let version = std::fs::read_dir(&jars)
        .with_context(|| format!("reading {}", jars.display()))?
        .flatten()
        .find_map(|jar| {
            let name = jar.file_name().into_string().ok()?;
            Some(name.strip_prefix("hadoop-client-api-")?.strip_suffix(".jar")?.to_owned())
        });
    let Some(version) = version else { return Ok(Err(format!("{} has no Hadoop client", jars.display()))) };
    let servers = format!("org/apache/hadoop/hadoop-client-minicluster/{version}");
    let mut all = Vec::new();
    for artifact in [servers.as_str()].into_iter().chain(more.iter().copied()) {
        match jar(artifact)? {
            Ok(jar) => all.push(jar),
            Err(why) => return Ok(Err(why)),
        }
    }
    all.push(jars.join("*"));
    Ok(Ok(all))
}

/// A jar of Maven Central, in the cache.
fn jar(artifact: &str) -> Result<Result<PathBuf, String>> {
    let mut parts = artifact.rsplit('/');
    let (version, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let name = format!("{name}-{version}.jar");
    let jar = places::cache()?.join("hadoop").join(&name);
    if jar.is_file() {
        return Ok(Ok(jar));
    }
    let _lock = places::lock_cache()?;
    let part = jar.with_extension("part");
    std::fs::create_dir_all(jar.parent().unwrap_or(&jar))
        .with_context(|| format!("creating the directory of {}", jar.display()))?;
    let mut curl = Command::new("curl");
    curl.args(["-fsSL", "--retry", "5", "--retry-all-errors", "-o"])
        .arg(&part)
        .arg(format!("{CENTRAL}/{artifact}/{name}"));
    match curl.output() {
        Ok(out) if out.status.success() => {}
        Ok(out) => {
            let says = String::from_utf8_lossy(&out.stderr).trim().to_owned();
            return Ok(Err(format!("{name} cannot be fetched from Maven Central: {says}")));
        }
        Err(error) => return Ok(Err(format!("no curl command to fetch {name} with: {error}"))),
    }
    // Whole or not at all.
    std::fs::rename(&part, &jar).with_context(|| format!("renaming {}", part.display()))?;
    Ok(Ok(jar))
}
