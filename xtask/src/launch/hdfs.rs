//! Real HDFS: Hadoop's minicluster (one namenode, one datanode) in a JVM, over a directory, on a free port of loopback.
//!
//! Spark brings all of Hadoop's client; the servers are one more jar, `hadoop-client-minicluster` of the same version,
//! fetched once from Maven Central into the cache. It checks permissions by the user's name as clusters without
//! Kerberos do. Dropped, it ends.

use super::port::free_port;
use super::storage::{Environment, Storage, environment};
use super::{JavaProgram, Running};
use crate::places;
use crate::setup::python;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const CENTRAL: &str = "https://repo.maven.apache.org/maven2/org/apache/hadoop/hadoop-client-minicluster";
/// The directory that is there, and whose it is.
const DIRECTORY: &str = "/profiles";
const USER: &str = "profiles";
/// How long a JVM may take to start both on a busy machine.
const READY: Duration = Duration::from_secs(300);

/// The servers.
pub struct Hdfs {
    running: Option<Running>,
    program: JavaProgram,
    dir: PathBuf,
    port: u16,
}

/// The jar for the Hadoop of a Spark, and that Spark's own. The inner error says why it cannot be had.
pub fn fetch(venv: &Path) -> Result<Result<Vec<PathBuf>, String>> {
    let jars = python::spark_home(venv).context("no pyspark in the Python environment")?.join("jars");
    let version = std::fs::read_dir(&jars)
        .with_context(|| format!("reading {}", jars.display()))?
        .flatten()
        .find_map(|jar| {
            let name = jar.file_name().into_string().ok()?;
            Some(name.strip_prefix("hadoop-client-api-")?.strip_suffix(".jar")?.to_owned())
        });
    let Some(version) = version else { return Ok(Err(format!("{} has no Hadoop client", jars.display()))) };
    let name = format!("hadoop-client-minicluster-{version}.jar");
    let jar = places::cache()?.join("hadoop").join(&name);
    if !jar.is_file() {
        let _lock = places::lock_cache()?;
        let part = jar.with_extension("part");
        std::fs::create_dir_all(jar.parent().unwrap_or(&jar))
            .with_context(|| format!("creating the directory of {}", jar.display()))?;
        let mut curl = Command::new("curl");
        curl.args(["-fsSL", "--retry", "5", "--retry-all-errors", "-o"])
            .arg(&part)
            .arg(format!("{CENTRAL}/{version}/{name}"));
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
    }
    Ok(Ok(vec![jar, jars.join("*")]))
}

impl Hdfs {
    /// Starts one whose files are in `dir`, with these jars.
    pub fn start(jars: &[PathBuf], java_home: &Path, dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let source = places::workspace().join("tests/hdfs-server/HdfsServer.java");
        let source =
            std::fs::read_to_string(&source).with_context(|| format!("reading {}", source.display()))?;
        let port = free_port()?;
        let files = dir.join("files").display().to_string();
        let program = JavaProgram::new("HdfsServer", &source, java_home)
            .class_path(jars)
            .flag("-Xmx384m")
            .flag("-XX:TieredStopAtLevel=1")
            .arg(port.to_string())
            .arg(files)
            .arg(DIRECTORY)
            .arg(USER);
        let mut server = Self { running: None, program, dir: dir.to_owned(), port };
        server.begin()?;
        Ok(server)
    }
}

impl Storage for Hdfs {
    fn url(&self, prefix: &str) -> String {
        format!("hdfs://127.0.0.1:{}{DIRECTORY}/{prefix}", self.port)
    }

    fn environment(&self) -> Environment {
        environment([("HADOOP_USER_NAME", USER.to_owned())])
    }

    fn refused(&self) -> (Environment, &'static str) {
        (environment([("HADOOP_USER_NAME", "somebody".to_owned())]), "HADOOP_USER_NAME")
    }

    fn end(&mut self) {
        self.running = None;
    }

    fn begin(&mut self) -> Result<()> {
        let mut running = self.program.start(&self.dir)?;
        running.wait_fact("ready", READY)?;
        self.running = Some(running);
        Ok(())
    }
}
