//! Spark's long-lived servers on a standalone cluster with a shuffle service of its own: Spark Connect with two sessions, the
//! server for JDBC, a worker that is killed under an application, and a history server when the drivers are gone.

mod connect;
mod jdbc;
mod worker;

use crate::held::now_ms;
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, Job, SparkJob, VISIBLE, WARM_UP, skip, wait_for, wait_visible};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::bench::procfs;
use xtask::launch::{HistoryServer, Standalone};
use xtask::setup::{SparkKit, jdk::Jdk, packages};

/// How long queries and tasks may take on a crowded machine.
const WORK: Duration = Duration::from_secs(300);
/// Two hosts to Spark.
const HOSTS: [&str; 2] = ["127.0.0.1", "127.0.0.2"];
/// How far samples may be from /proc, beside their error.
const OFF: f64 = 0.01;

#[test]
fn servers_of_a_standalone_cluster() -> Result<()> {
    const TEST: &str = "servers_of_a_standalone_cluster";
    let Some(here) = Here::or_skip(TEST).and_then(|here| here.with_newest_spark(TEST)) else { return Ok(()) };
    let of_client = [packages::connect_installed(&here.venv), packages::pandas_installed(&here.venv)];
    let [Some(connect), Some(pandas)] = of_client else {
        skip(TEST, "what a client of Spark Connect imports has not been fetched: `./x setup` does");
        return Ok(());
    };
    let of_client = std::env::join_paths([connect, pandas])?;
    let dir = tempfile::tempdir()?;
    let kit = SparkKit { venv: here.venv.clone(), jdk: Jdk { home: here.java.clone(), major: 0 } };
    let daemon = here.daemon(dir.path(), &["--window", "2s"])?;
    let place = dir.path().join("cluster");
    let cluster = Standalone::start(&kit, &HOSTS, 3, &place)?.with_shuffle_service(&kit, &place)?;
    let events = dir.path().join("events");
    std::fs::create_dir(&events)?;
    let mut world = World { here, dir: dir.path().to_owned(), kit, daemon, cluster, events };
    let from = now_ms()?;
    let jdbc = jdbc::Jdbc::start(&world)?;
    let connect = connect::Connect::start(&world)?;
    connect.holds(&world, of_client.as_ref())?;
    jdbc.holds(&world)?;
    worker::killed_under_an_application(&mut world)?;
    world.roles(from)?;
    let apps = [connect.end()?, jdbc.end()?];
    world.history(&apps)?;
    ensure!(world.daemon.stop()?.success());
    Ok(())
}

/// The daemon, and what it looks at.
struct World {
    here: Here,
    dir: PathBuf,
    kit: SparkKit,
    daemon: Daemon,
    cluster: Standalone,
    events: PathBuf,
}

impl World {
    /// A job's settings on this cluster: two executors of a core each, one on each host.
    fn on_cluster(&self, job: SparkJob) -> Result<SparkJob> {
        let port = self.cluster.shuffle_port().context("no shuffle service")?;
        Ok(job
            .master(self.cluster.url())
            .conf("spark.cores.max", "2")
            .conf("spark.executor.cores", "1")
            .conf("spark.executor.memory", "512m")
            .conf("spark.driver.memory", "600m")
            .conf("spark.shuffle.service.enabled", "true")
            .conf("spark.shuffle.service.port", port.to_string())
            .conf("spark.eventLog.enabled", "true")
            .conf("spark.eventLog.dir", format!("file://{}", self.events.display())))
    }

    /// Starts a server and waits until it listens; out: it, and its application's id.
    fn serve(
        &self,
        name: &str,
        class: &str,
        port: u16,
        configure: impl FnOnce(SparkJob) -> SparkJob,
    ) -> Result<(Job, String)> {
        let job = SparkJob::server(class, &self.here.venv, &self.here.java, &self.dir.join(name));
        let job = self.on_cluster(job)?.conf("spark.app.name", name);
        let mut server = configure(job).start()?;
        wait_for(&format!("{name} to listen"), WARM_UP, || {
            ensure!(server.ended()?.is_none(), "{name} ended: {}", std::fs::read_to_string(server.log())?);
            Ok(TcpStream::connect(("127.0.0.1", port)).ok())
        })?;
        let log = std::fs::read_to_string(server.log())?;
        let at = log.find("app-").with_context(|| format!("no application's id: {log}"))?;
        let app = log[at..].split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next();
        Ok((server, app.unwrap_or_default().to_owned()))
    }

    /// The values of a label.
    fn values(&self, label: &str, query: &str) -> Result<BTreeSet<String>> {
        let answer = self.daemon.json(&format!("/api/v1/labels/{label}/values?{query}"))?;
        let rows = answer["values"].as_array().with_context(|| format!("no values: {answer}"))?;
        Ok(rows.iter().filter_map(|row| row["value"].as_str()).map(str::to_owned).collect())
    }

    /// Folded stacks with their numbers.
    fn folded(&self, query: &str) -> Result<Vec<(String, u64)>> {
        let reply = self.daemon.get(&format!("/api/v1/flamegraph?format=folded&{query}"))?;
        ensure!(reply.status == 200, "{query}: {}", reply.body);
        let line = |line: &str| {
            let (stack, count) = line.rsplit_once(' ').context("no count")?;
            Ok((stack.to_owned(), count.parse()?))
        };
        reply.body.lines().map(line).collect()
    }

    /// An application's row, called `name`, with that driver.
    fn is_known(&self, app: &str, name: &str, driver: u32) -> Result<Value> {
        let answer = self.daemon.json(&format!("/api/v1/apps?app={app}"))?;
        let row = answer["apps"][0].clone();
        ensure!(row["name"] == name && row["deploy"] == "standalone", "{answer}");
        let drivers = row["drivers"].as_array().context("no drivers")?;
        ensure!(drivers.contains(&Value::from(driver)), "{driver} is no driver of {row}");
        Ok(row)
    }

    /// The executors of an application that run, as their command lines say, are its own; each CPU time is /proc's.
    fn executors_are_as_proc_says(&self, app: &str) -> Result<()> {
        let there = procfs::executors(app);
        ensure!(there.len() == 2, "{app} has the executors {there:?}");
        let until = now_ms()?;
        let spent: Vec<f64> = there.iter().map(|pid| procfs::cpu_seconds(*pid)).collect::<Result<_>>()?;
        wait_visible(&self.daemon, until)?;
        for (pid, spent) in there.iter().zip(spent) {
            let of_it = format!("app={app}&role=executor&pid={pid}&until={until}");
            let ns: u64 = self.folded(&format!("{of_it}&unit=ns"))?.iter().map(|(_, ns)| ns).sum();
            let samples: u64 = self.folded(&of_it)?.iter().map(|(_, count)| count).sum();
            let (sampled, error) = (ns as f64 / 1e9, 3.0 / (samples as f64).sqrt());
            println!("executor {pid} of {app}: {sampled:.2} s sampled (n {samples}), {spent:.2} s by /proc");
            ensure!((sampled / spent - 1.0).abs() < OFF + error, "executor {pid} of {app}");
        }
        Ok(())
    }

    /// Every part of the cluster was told apart.
    fn roles(&self, from: u64) -> Result<()> {
        let seen = self.values("role", &format!("from={from}"))?;
        let all = ["driver", "executor", "python", "master", "worker", "shuffle-service"];
        println!("roles: {seen:?}");
        ensure!(all.iter().all(|role| seen.contains(*role)), "{seen:?}");
        Ok(())
    }

    /// With the drivers gone a history server on the node tells of their stages.
    fn history(&self, apps: &[String]) -> Result<()> {
        let server = HistoryServer::start(&self.kit, &self.events, &self.dir.join("history"))?;
        let source = format!("http://127.0.0.1:{}", server.port());
        for app in apps {
            let answer = wait_for(&format!("the history of {app}"), WORK, || {
                let answer = self.daemon.json(&format!("/api/v1/stages?app={app}"))?;
                let told = answer["spark"]["state"] == "ready" && answer["spark"]["source"] == source;
                Ok(told.then_some(answer))
            })?;
            let rows = answer["stages"].as_array().context("no stages")?;
            let rows = rows.iter().filter(|row| row["stage"] != "unknown");
            let unnamed = rows.clone().filter(|row| row["spark"]["name"].as_str().is_none_or(str::is_empty));
            let (all, unnamed) = (rows.count(), unnamed.count());
            println!("{app}: {all} stages, {unnamed} without a name by {source}");
            ensure!(all > 0 && unnamed == 0, "{answer}");
        }
        let seen = wait_for("the history server's role", VISIBLE, || {
            Ok(self.values("role", "")?.contains("history-server").then_some(()))
        });
        seen.context("it has burnt CPU")
    }
}

/// Ends a server as its service would, so that its event log is whole.
fn end(mut server: Job) -> Result<()> {
    server.signal(Signal::TERM);
    wait_for("a server's end", WORK, || Ok(server.ended()?.map(drop)))
}

/// Where a program works and logs.
fn made(dir: &Path, name: &str) -> Result<PathBuf> {
    let dir = dir.join(name);
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}
