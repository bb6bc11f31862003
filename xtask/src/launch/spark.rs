//! A Spark job: a Python script of tests/jobs run by `python` with pyspark from a virtual environment.
//!
//! The driver is a JVM that python starts; `local-cluster[N,CORES,MB]` starts N executor JVMs of their
//! own. All live in one process group and end with it.

use super::Running;
use crate::places;
use anyhow::{Context as _, Result};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What HotSpot is asked for so that frame pointers lead through its code.
pub const FRAME_POINTERS: &str = "-XX:+PreserveFramePointer";

/// What to run and how.
#[derive(Clone, Debug)]
pub struct SparkJob {
    script: PathBuf,
    arguments: Vec<String>,
    master: String,
    confs: Vec<(String, String)>,
    java_options: String,
    java_home: PathBuf,
    venv: PathBuf,
    work_dir: PathBuf,
}

impl SparkJob {
    /// A script of tests/jobs, by file name. `work_dir` takes its log, scratch and event log. The master
    /// is `local-cluster[2,1,1024]`: two executor JVMs with a core each.
    pub fn new(script: &str, venv: &Path, java_home: &Path, work_dir: &Path) -> Self {
        Self {
            script: places::workspace().join("tests/jobs").join(script),
            arguments: Vec::new(),
            master: "local-cluster[2,1,1024]".to_owned(),
            confs: Vec::new(),
            java_options: FRAME_POINTERS.to_owned(),
            java_home: java_home.to_owned(),
            venv: venv.to_owned(),
            work_dir: work_dir.to_owned(),
        }
    }

    /// Adds an argument of the script.
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets `spark.master`: `local[2]`, `local-cluster[2,1,1024]`.
    pub fn master(mut self, master: impl Into<String>) -> Self {
        self.master = master.into();
        self
    }

    /// Sets a Spark property.
    pub fn conf(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.confs.push((key.into(), value.into()));
        self
    }

    /// Replaces the flags of driver and executors, which are [`FRAME_POINTERS`].
    pub fn java_options(mut self, options: impl Into<String>) -> Self {
        self.java_options = options.into();
        self
    }

    /// Writes Spark's event log, uncompressed, to [`Job::event_log`].
    pub fn event_log(self) -> Self {
        let dir = format!("file://{}", self.work_dir.join("events").display());
        self.conf("spark.eventLog.enabled", "true").conf("spark.eventLog.dir", dir)
    }

    /// Starts it.
    pub fn start(&self) -> Result<Job> {
        for dir in [&self.work_dir, &self.work_dir.join("events"), &self.work_dir.join("scratch")] {
            std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        }
        let mut python = Command::new(self.venv.join("bin/python"));
        python
            .arg(&self.script)
            .args(&self.arguments)
            .current_dir(&self.work_dir)
            .env("JAVA_HOME", &self.java_home)
            .env("PYSPARK_PYTHON", self.venv.join("bin/python"))
            .env("PYSPARK_SUBMIT_ARGS", self.submit_args())
            .env("PYTHONUNBUFFERED", "1")
            .env("SPARK_LOCAL_IP", "127.0.0.1")
            .env("SPARK_LOCAL_DIRS", self.work_dir.join("scratch"))
            .env_remove("SPARK_HOME")
            .env_remove("SPARK_CONF_DIR")
            .env_remove("PYTHONPATH");
        let what = format!("the Spark job {}", self.script.display());
        let running = Running::start(&what, &mut python, &self.work_dir.join("job.log"))?;
        Ok(Job { running, events: self.work_dir.join("events") })
    }

    /// pyspark splits this with shlex.
    fn submit_args(&self) -> String {
        let mut words = vec!["--master".to_owned(), self.master.clone()];
        let mut conf = |key: &str, value: &str| {
            words.push("--conf".to_owned());
            words.push(format!("{key}={value}"));
        };
        if !self.java_options.is_empty() {
            conf("spark.driver.extraJavaOptions", &self.java_options);
            conf("spark.executor.extraJavaOptions", &self.java_options);
        }
        conf("spark.driver.bindAddress", "127.0.0.1");
        conf("spark.driver.host", "127.0.0.1");
        conf("spark.ui.showConsoleProgress", "false");
        for (key, value) in &self.confs {
            conf(key, value);
        }
        words.push("pyspark-shell".to_owned());
        words.iter().map(|word| crate::step::quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// A running Spark job. Our scripts print the facts `app` (the application's id) and `done`.
pub struct Job {
    running: Running,
    events: PathBuf,
}

impl Job {
    /// Spark's event log: one JSON object a line. None before the application has started, or without
    /// [`SparkJob::event_log`].
    pub fn event_log(&self) -> Option<PathBuf> {
        std::fs::read_dir(&self.events).ok()?.flatten().map(|entry| entry.path()).next()
    }
}

impl Deref for Job {
    type Target = Running;
    fn deref(&self) -> &Running {
        &self.running
    }
}

impl DerefMut for Job {
    fn deref_mut(&mut self) -> &mut Running {
        &mut self.running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submit_args_are_quoted_words() {
        let job = SparkJob::new("x.py", Path::new("/venv"), Path::new("/jdk"), Path::new("/work"))
            .master("local[2]")
            .java_options("-Xint -XX:+A")
            .conf("spark.a", "b c");
        let args = job.submit_args();
        assert!(args.starts_with("--master 'local[2]' --conf 'spark.driver.extraJavaOptions=-Xint -XX:+A' "));
        assert!(args.ends_with(" --conf 'spark.a=b c' pyspark-shell"));
    }
}
