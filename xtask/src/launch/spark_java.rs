//! Java sources compiled against a Spark's own jars, in a jar that spark-submit takes.
//!
//! No Scala compiler and no build tool: Spark's Java API and a JDK's javac and jar are enough.

use crate::setup::jdk;
use crate::step;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `sources` with the JDK in `java_home` into `dir/job.jar`.
pub fn jar(sources: &[PathBuf], spark_home: &Path, java_home: &Path, dir: &Path) -> Result<PathBuf> {
    let (classes, jar) = (dir.join("classes"), dir.join("job.jar"));
    std::fs::create_dir_all(&classes).with_context(|| format!("creating {}", classes.display()))?;
    let mut javac = Command::new(jdk::tool(java_home, "javac"));
    javac.args(["-encoding", "UTF-8", "-nowarn", "-g", "-cp"]).arg(spark_home.join("jars/*"));
    run(javac.arg("-d").arg(&classes).args(sources))?;
    let mut archive = Command::new(jdk::tool(java_home, "jar"));
    run(archive.args(["--create", "--file"]).arg(&jar).arg("-C").arg(&classes).arg("."))?;
    Ok(jar)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {}", step::shown(command)))?;
    if !output.status.success() {
        bail!("{} failed\n{}", step::shown(command), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
