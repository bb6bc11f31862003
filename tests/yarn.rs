//! Spark on real YARN, in client and in cluster mode: whose processes they are, what the application is called, and that
//! its tasks are bound. In cluster mode the driver is in a container, and all that was said to spark-submit in a file.

use crate::held::now_ms;
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, Job, SparkJob, VISIBLE, WARM_UP, skip, wait_for, wait_visible};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::bench::procfs;
use xtask::launch::spark::TASK_JOBS;
use xtask::launch::{Yarn, yarn};

/// How long the job's phases may take on a crowded machine.
const WORK: Duration = Duration::from_secs(300);
/// What the application is submitted as, and what of; the program calls itself something else.
const NAME: &str = "nightly on yarn";
const RUN: &str = "etl";
/// Tasks of each of the phase's stages.
const TASKS: u64 = 40;

#[test]
fn yarn_in_client_and_cluster_mode() -> Result<()> {
    let test = "yarn_in_client_and_cluster_mode";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let jars = match yarn::fetch(&here.venv)? {
        Ok(jars) => jars,
        Err(why) => {
            skip(test, &why);
            return Ok(());
        }
    };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &["--window", "2s"])?;
    let cluster = Yarn::start(&jars, &here.java, &dir.path().join("yarn"))?;
    for mode in ["client", "cluster"] {
        let from = now_ms()?;
        let run = Run::start(&here, &cluster, mode, &dir.path().join(mode))?;
        run.wait_fact("done", WORK)?;
        let until = now_ms()?;
        wait_visible(&daemon, until)?;
        run.holds(&daemon, &format!("app={}&from={from}&until={until}", run.app))
            .with_context(|| format!("{mode} mode, {}", run.app))?;
    }
    drop(cluster);
    ensure!(daemon.stop()?.success());
    Ok(())
}

/// An application that runs.
struct Run<'a> {
    mode: &'static str,
    app: String,
    cluster: &'a Yarn,
    submitted: Job,
    driver: u32,
    executor: u32,
}

impl<'a> Run<'a> {
    fn start(here: &Here, cluster: &'a Yarn, mode: &'static str, dir: &Path) -> Result<Self> {
        let mut submitted = SparkJob::java(&TASK_JOBS, &here.venv, &here.java, dir)
            .yarn(cluster, mode)?
            .conf("spark.app.name", NAME)
            .conf("spark.emberscope.run", RUN)
            .conf("spark.executor.instances", "1")
            .arg(format!("short:{TASKS}:2"))
            .arg("steady:4:1")
            .start()?;
        let log = submitted.log().to_owned();
        let mut text_of_log = || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            ensure!(submitted.ended()?.is_none(), "spark-submit ended: {text}");
            Ok(text)
        };
        let app = wait_for("the application's id", WARM_UP, || {
            let text = text_of_log()?;
            let at = text.find("application_").map(|at| &text[at..]);
            Ok(at
                .and_then(|at| at.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next())
                .map(str::to_owned))
        })?;
        let executor = wait_for("an executor", WARM_UP, || {
            text_of_log()?;
            Ok(procfs::executors(&app).first().copied())
        })?;
        let main = match mode {
            "client" => "org.apache.spark.deploy.SparkSubmit",
            _ => "org.apache.spark.deploy.yarn.ApplicationMaster",
        };
        let of = match mode {
            "client" => vec![submitted.pid()],
            _ => cluster.containers(),
        };
        let driver = of
            .into_iter()
            .find(|pid| procfs::command_line(*pid).iter().any(|word| word == main))
            .context("no driver")?;
        Ok(Self { mode, app, cluster, submitted, driver, executor })
    }

    /// What the program printed: in cluster mode in a file of its container's.
    fn fact(&self, name: &str) -> Option<String> {
        if self.mode == "client" {
            return self.submitted.fact(name);
        }
        let before = format!("fact {name}=");
        let of = |file: PathBuf| {
            let text = std::fs::read_to_string(file).ok()?;
            text.lines().find_map(|line| line.strip_prefix(&before)).map(str::to_owned)
        };
        self.cluster.outputs(&self.app).into_iter().find_map(of)
    }

    fn wait_fact(&self, name: &str, timeout: Duration) -> Result<String> {
        wait_for(&format!("the fact {name} of {}", self.app), timeout, || Ok(self.fact(name)))
    }

    fn holds(&self, daemon: &Daemon, range: &str) -> Result<()> {
        let apps = daemon.json(&format!("/api/v1/apps?{range}"))?;
        let [app] = &apps["apps"].as_array().context("no applications")?[..] else {
            anyhow::bail!("not one application: {apps}")
        };
        // In client mode the container's file was written when the program had called itself so.
        let name = if self.mode == "client" { "task jobs" } else { NAME };
        ensure!(app["name"] == name && app["deploy"] == "yarn" && app["executors"] == 1, "{app}");
        ensure!(
            app["drivers"].as_array().is_some_and(|pids| pids.contains(&Value::from(self.driver))),
            "{app}"
        );
        self.roles(daemon, range)?;
        self.tasks(daemon, range)?;
        let runs = daemon.json(&format!("/api/v1/runs?job={RUN}&{range}"))?;
        ensure!(runs["runs"].as_array().is_some_and(|runs| runs.len() == 1), "{runs}");
        // Whatever runs in the application's containers is the application's.
        let executors = daemon.json(&format!("/api/v1/executors?{range}"))?;
        let row = executors["executors"]
            .as_array()
            .and_then(|rows| rows.iter().find(|row| row["role"] == "executor"));
        let row = row.with_context(|| format!("no executor: {executors}"))?;
        ensure!(row["pids"] == serde_json::json!([self.executor]) && row["executor"] == "1", "{row}");
        Ok(())
    }

    /// The roles of what was sampled are those that there are.
    fn roles(&self, daemon: &Daemon, range: &str) -> Result<()> {
        let seen = daemon.json(&format!("/api/v1/labels/role/values?{range}"))?;
        let values = seen["values"].as_array().with_context(|| format!("no values: {seen}"))?;
        let seen: BTreeSet<&str> =
            values.iter().filter_map(|row| row["value"].as_str()).filter(|role| !role.is_empty()).collect();
        println!("{} in {} mode: {seen:?}", self.app, self.mode);
        let want: &[&str] = if self.mode == "client" {
            &["driver", "executor", "app-master"]
        } else {
            &["driver", "executor"]
        };
        ensure!(want.iter().all(|role| seen.contains(role)), "{seen:?} instead of {want:?}");
        Ok(())
    }

    /// Each stage of the phases has all its tasks.
    fn tasks(&self, daemon: &Daemon, range: &str) -> Result<()> {
        let answer = daemon.json(&format!("/api/v1/stages?{range}"))?;
        let rows = answer["stages"].as_array().context("no stages")?;
        for (phase, tasks) in [("short", TASKS), ("steady", 1)] {
            let ids =
                self.fact(&format!("{phase}.stages")).with_context(|| format!("no stages of {phase}"))?;
            for id in ids.split(',') {
                let row = rows.iter().find(|row| row["stage"] == id);
                let row = row.with_context(|| format!("no stage {id} of {phase}: {answer}"))?;
                ensure!(row["tasks"] == tasks, "stage {id} of {phase}: {row}");
            }
        }
        Ok(())
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // It ends when there is such a file; else with the cluster.
        let _ = std::fs::write(format!("/proc/{}/cwd/stop", self.driver), "");
        let _ = wait_for("the application's end", VISIBLE, || {
            let driver = self.mode == "client" || !is_there(self.driver);
            Ok((self.submitted.ended()?.is_some() && driver && !is_there(self.executor)).then_some(()))
        });
    }
}

fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}
