//! Real YARN: Hadoop's minicluster, a resource manager and a node manager in one JVM, whose containers are processes of
//! their own. Dropped, it ends, with what it started.

use super::{JavaProgram, Running, hadoop};
use crate::bench::procfs;
use crate::{places, root};
use anyhow::{Context as _, Result};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the node manager may give to containers: a driver and two executors of 600 MiB, with what YARN adds.
const MEBIBYTES: u32 = 4096;
/// How long the JVM may take on a busy machine.
const READY: Duration = Duration::from_secs(300);
/// What the servers' classes name, beside what Spark has (pom.xml of Hadoop 3.3.4).
const MORE: [&str; 3] =
    ["junit/junit/4.13.2", "org/bouncycastle/bcprov-jdk15on/1.60", "org/bouncycastle/bcpkix-jdk15on/1.60"];

/// The jars that it wants. The inner error says why they cannot be had.
pub fn fetch(venv: &Path) -> Result<Result<Vec<PathBuf>, String>> {
    hadoop::jars(venv, &MORE)
}

/// A cluster of one node.
pub struct Yarn {
    dir: PathBuf,
    // Last: its containers are ended first.
    _server: Running,
}

impl Yarn {
    /// Starts it; it works and logs in `dir`.
    pub fn start(jars: &[PathBuf], java_home: &Path, dir: &Path) -> Result<Self> {
        let conf = dir.join("conf");
        std::fs::create_dir_all(&conf).with_context(|| format!("creating {}", conf.display()))?;
        let source = places::workspace().join("tests/yarn-server/YarnServer.java");
        let source =
            std::fs::read_to_string(&source).with_context(|| format!("reading {}", source.display()))?;
        let mut server = JavaProgram::new("YarnServer", &source, java_home)
            .class_path(jars)
            .flag("-Xmx512m")
            .flag("-XX:TieredStopAtLevel=1")
            .flag("--add-opens=java.base/java.lang=ALL-UNNAMED")
            .flag("--add-opens=java.base/java.util=ALL-UNNAMED")
            .arg(conf.display().to_string())
            .arg(MEBIBYTES.to_string())
            .start(dir)?;
        server.wait_fact("ready", READY)?;
        Ok(Self { dir: dir.to_owned(), _server: server })
    }

    /// What HADOOP_CONF_DIR is for its clients.
    pub fn conf(&self) -> PathBuf {
        self.dir.join("conf")
    }

    /// Pids of its containers' processes: what works below the node manager's directory.
    pub fn containers(&self) -> Vec<u32> {
        let below = self.dir.join("target");
        let is_one = |pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&below))
        };
        procfs::pids().into_iter().filter(is_one).collect()
    }

    /// What the containers of an application wrote, each to its standard output.
    pub fn outputs(&self, app: &str) -> Vec<PathBuf> {
        below(&self.dir.join("target"), 8)
            .filter(|file| {
                file.file_name().is_some_and(|name| name == "stdout") && file.iter().any(|part| part == app)
            })
            .collect()
    }
}

/// The files below a directory, so many directories deep.
fn below(dir: &Path, deep: usize) -> Box<dyn Iterator<Item = PathBuf>> {
    let entries: Vec<PathBuf> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    Box::new(entries.into_iter().flat_map(move |path| match path.is_dir() && !path.is_symlink() {
        true if deep > 0 => below(&path, deep - 1),
        true => Box::new(std::iter::empty()),
        false => Box::new(std::iter::once(path)),
    }))
}

impl Drop for Yarn {
    fn drop(&mut self) {
        // Sessions of their own: they do not end with the node manager's group.
        self.containers().into_iter().for_each(|pid| root::signal(pid, Signal::KILL));
    }
}
