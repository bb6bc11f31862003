//! Real HDFS: Hadoop's minicluster (one namenode, one datanode) in a JVM, over a directory, on a free port of loopback.
//!
//! It checks permissions by the user's name as clusters without Kerberos do. Dropped, it ends.

use super::port::free_port;
use super::storage::{Environment, Storage, environment};
use super::{JavaProgram, Running, hadoop};
use crate::places;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// The jars of it. The inner error says why they cannot be had.
pub fn fetch(venv: &Path) -> Result<Result<Vec<PathBuf>, String>> {
    hadoop::jars(venv, &[])
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
