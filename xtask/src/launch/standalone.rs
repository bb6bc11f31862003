//! A standalone cluster on this machine: a master, a worker on each of some addresses, if wanted a shuffle service for all of
//! them; and a history server.
//!
//! Spark makes no speculative copy of a task on the host that runs it already, so it takes two: 127.0.0.1
//! and 127.0.0.2 are two hosts to Spark and loopback to Linux.

use super::Running;
use super::port::free_port;
use crate::setup::{SparkKit, python};
use anyhow::{Context as _, Result, bail};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a server may take to listen.
const START: Duration = Duration::from_secs(180);

/// Programs of Spark's own that are no applications.
struct Programs<'a> {
    home: PathBuf,
    kit: &'a SparkKit,
    dir: &'a Path,
}

impl<'a> Programs<'a> {
    fn new(kit: &'a SparkKit, dir: &'a Path) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let home =
            python::spark_home(&kit.venv).with_context(|| format!("no pyspark in {}", kit.venv.display()))?;
        Ok(Self { home, kit, dir })
    }

    /// Starts a class with flags of its JVM.
    fn start(&self, name: &str, words: &[&str], flags: &str) -> Result<Running> {
        let mut command = Command::new(self.home.join("bin/spark-class"));
        command.args(words).current_dir(self.dir).env("JAVA_HOME", &self.kit.jdk.home);
        command.env("SPARK_HOME", &self.home).env("SPARK_DAEMON_JAVA_OPTS", flags);
        command.env("SPARK_LOCAL_DIRS", self.dir.join("scratch")).env_remove("SPARK_CONF_DIR");
        Running::start(&format!("Spark's {name}"), &mut command, &self.dir.join(format!("{name}.log")))
    }

    /// Starts one that listens, and waits until it does.
    fn serve(&self, name: &str, words: &[&str], flags: &str, port: u16) -> Result<Running> {
        let mut server = self.start(name, words, flags)?;
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = server.ended()? {
                bail!("Spark's {name} ended ({status}): {}", server.log().display());
            }
            if begun.elapsed() > START {
                bail!("Spark's {name} does not listen after {START:?}: {}", server.log().display());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }
}

/// A running cluster; dropped, it ends.
pub struct Standalone {
    url: String,
    shuffle_port: Option<u16>,
    // Workers first: they are dropped in this order.
    workers: Vec<Running>,
    _shuffle_service: Option<Running>,
    _master: Running,
}

impl Standalone {
    /// Starts it, with `cores` on each host. Its processes work and log in `dir`.
    pub fn start(kit: &SparkKit, hosts: &[&str], cores: u32, dir: &Path) -> Result<Self> {
        let programs = Programs::new(kit, dir)?;
        let (port, ui) = (free_port()?, "0");
        let (class, listen) = ("org.apache.spark.deploy.master.Master", port.to_string());
        let words = [class, "--host", "127.0.0.1", "--port", &listen, "--webui-port", ui];
        let master = programs.serve("master", &words, "", port)?;
        let url = format!("spark://127.0.0.1:{port}");
        let worker = |host: &&str| {
            let class = "org.apache.spark.deploy.worker.Worker";
            let work = dir.join(format!("work-{host}"));
            let work = work.to_str().context("the directory's name is not UTF-8")?;
            let (cores, memory) = (cores.to_string(), format!("{}g", 2 * cores));
            let options = ["--cores", &cores, "--memory", &memory, "--webui-port", ui, "--work-dir", work];
            programs.start(
                &format!("worker-{host}"),
                &[&[class, "--host", host], &options[..], &[&url]].concat(),
                "",
            )
        };
        let workers = hosts.iter().map(worker).collect::<Result<_>>()?;
        Ok(Self { url, shuffle_port: None, workers, _shuffle_service: None, _master: master })
    }

    /// Starts a shuffle service, as each host of a cluster has one: a process of its own for all workers here.
    pub fn with_shuffle_service(mut self, kit: &SparkKit, dir: &Path) -> Result<Self> {
        let port = free_port()?;
        let flags = format!("-Dspark.shuffle.service.port={port}");
        let class = "org.apache.spark.deploy.ExternalShuffleService";
        let server = Programs::new(kit, dir)?.serve("shuffle-service", &[class], &flags, port)?;
        (self._shuffle_service, self.shuffle_port) = (Some(server), Some(port));
        Ok(self)
    }

    /// `spark://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The port of its shuffle service.
    pub fn shuffle_port(&self) -> Option<u16> {
        self.shuffle_port
    }

    /// Kills a worker, which says nothing to anybody; its executors end when they notice.
    pub fn kill_worker(&mut self, index: usize) {
        drop(self.workers.remove(index));
    }
}

/// A history server; dropped, it ends.
pub struct HistoryServer {
    port: u16,
    _server: Running,
}

impl HistoryServer {
    /// Starts it on the event logs of a directory. It logs in `dir`.
    pub fn start(kit: &SparkKit, events: &Path, dir: &Path) -> Result<Self> {
        let port = free_port()?;
        let logs = format!("-Dspark.history.fs.logDirectory=file://{}", events.display());
        let flags = format!("{logs} -Dspark.history.ui.port={port} -Dspark.history.fs.update.interval=1s");
        let class = "org.apache.spark.deploy.history.HistoryServer";
        let server = Programs::new(kit, dir)?.serve("history-server", &[class], &flags, port)?;
        Ok(Self { port, _server: server })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }
}
