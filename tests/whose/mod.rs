//! Whose word counts: strangers who forge arguments, environment and web servers beside a real Spark job, and what
//! a job's secrets leave behind. Both of one job on one daemon; the truth is /proc.

mod forged;
mod secrets;

use anyhow::{Context as _, Result, ensure};
use emberscope_model::WallTime;
use emberscope_tests::{Daemon, Here, Job, WARM_UP, ran, skip, wait_for};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

const BACKEND: &str = "org.apache.spark.executor.CoarseGrainedExecutorBackend";
const SUBMIT: &str = "org.apache.spark.deploy.SparkSubmit";

/// A job with secrets, and the daemon that sees it.
struct Scene {
    here: Here,
    dir: tempfile::TempDir,
    daemon: Daemon,
    app: String,
    /// Pid of its only executor.
    executor: u32,
    /// Pid of its driver.
    driver: u32,
    job: Job,
}

impl Scene {
    fn start(here: Here) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))?;
        let daemon = here.daemon(dir.path(), &["--log", "trace"])?;
        let job = here.spark("demo.py", &dir.path().join("job")).arg("--seconds").arg("3600");
        let job = secrets::confs().fold(job, |job, (key, value)| job.conf(key, value));
        let mut job = job.master("local-cluster[1,1,1024]").java_options(secrets::java_options()).start()?;
        let app = job.wait_fact("app", WARM_UP)?;
        let executor = wait_for("an executor", WARM_UP, || Ok(with_word(&job, BACKEND).first().copied()))?;
        let driver = *with_word(&job, SUBMIT).first().context("no driver")?;
        Ok(Self { here, dir, daemon, app, executor, driver, job })
    }
}

#[test]
fn strangers_take_nothing_of_an_application_and_its_secrets_are_nowhere() -> Result<()> {
    let test = "strangers_take_nothing_of_an_application_and_its_secrets_are_nowhere";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    if ran(["setpriv", "--version"])?.code != 0 {
        skip(test, "there is no setpriv (package util-linux)");
        return Ok(());
    }
    let scene = Scene::start(here)?;
    // Both are looked at, whatever the first of them says.
    let strangers = forged::strangers_take_nothing_of_an_application(&scene);
    let secrets = secrets::a_jobs_secrets_are_nowhere(scene);
    let parts = [("strangers", strangers), ("secrets", secrets)];
    let wrong = parts.into_iter().filter_map(|(part, result)| Some(format!("{part}: {:#}", result.err()?)));
    let wrong: Vec<String> = wrong.collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn now_ms() -> u64 {
    WallTime::now().as_millis()
}

fn words(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The processes of a job (its group) with this word on their command line.
fn with_word(job: &Job, word: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| group(*pid) == Some(job.pid()) && words(*pid).iter().any(|w| w == word)).collect()
}

/// Process group: field 5 of /proc/PID/stat.
fn group(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

/// Pids whose samples an answer holds.
fn pids(daemon: &Daemon, query: &str) -> Result<BTreeSet<u32>> {
    let reply = daemon.get(&format!("/api/v1/flamegraph?format=folded&{query}&group=pid"))?;
    ensure!(reply.status == 200, "{query}: {} {}", reply.status, reply.body);
    let pid = |line: &str| line.split(';').next()?.strip_prefix("pid=")?.parse().ok();
    reply.body.lines().map(|line| pid(line).with_context(|| line.to_owned())).collect()
}
