//! A standalone cluster on this machine: a master, and a worker with one core on each of some addresses.
//!
//! Spark makes no speculative copy of a task on the host that runs it already, so it takes two: 127.0.0.1
//! and 127.0.0.2 are two hosts to Spark and loopback to Linux.

use super::Running;
use super::port::free_port;
use crate::setup::{SparkKit, python};
use anyhow::{Context as _, Result, bail};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long the master may take to listen.
const START: Duration = Duration::from_secs(180);

/// A running cluster; dropped, it ends.
pub struct Standalone {
    url: String,
    // Workers first: they are dropped in this order.
    _workers: Vec<Running>,
    _master: Running,
}

impl Standalone {
    /// Starts it. Its processes work and log in `dir`.
    pub fn start(kit: &SparkKit, hosts: &[&str], dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let home =
            python::spark_home(&kit.venv).with_context(|| format!("no pyspark in {}", kit.venv.display()))?;
        let start = |name: &str, words: &[&str]| {
            let mut command = Command::new(home.join("bin/spark-class"));
            command.args(words).current_dir(dir).env("JAVA_HOME", &kit.jdk.home).env("SPARK_HOME", &home);
            command.env("SPARK_LOCAL_DIRS", dir.join("scratch")).env_remove("SPARK_CONF_DIR");
            Running::start(&format!("Spark's {name}"), &mut command, &dir.join(format!("{name}.log")))
        };
        let (port, ui) = (free_port()?, "0");
        let words = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port"];
        let mut master = start("master", &[&words[..], &[&port.to_string(), "--webui-port", ui]].concat())?;
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = master.ended()? {
                bail!("Spark's master ended ({status}): {}", master.log().display());
            }
            if begun.elapsed() > START {
                bail!("Spark's master does not listen after {START:?}: {}", master.log().display());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let url = format!("spark://127.0.0.1:{port}");
        let worker = |host: &&str| {
            let class = "org.apache.spark.deploy.worker.Worker";
            let work = dir.join(format!("work-{host}"));
            let work = work.to_str().context("the directory's name is not UTF-8")?;
            let options = ["--cores", "1", "--memory", "1g", "--webui-port", ui, "--work-dir", work];
            start(&format!("worker-{host}"), &[&[class, "--host", host], &options[..], &[&url]].concat())
        };
        let workers = hosts.iter().map(worker).collect::<Result<_>>()?;
        Ok(Self { url, _workers: workers, _master: master })
    }

    /// `spark://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }
}
