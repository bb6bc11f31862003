//! A user beside a real job who claims its application in every way there is: the victim keeps its own samples,
//! names and links, and the forger's are his.

use super::{BACKEND, SUBMIT, Scene, group, now_ms, pids, words};
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Here, Running, WARM_UP, wait_for, wait_visible};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const YARN_BACKEND: &str = "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend";

/// Starts a lookalike as another user.
fn forge(
    here: &Here,
    dir: &Path,
    name: &str,
    arguments: &[String],
    environ: &[(&str, &str)],
) -> Result<Running> {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "nice"])
        .arg(here.java.join("bin/java"));
    command.args(["-Xmx32m", "-XX:+UseSerialGC", "-cp"]).arg(dir.join("classes")).args(arguments);
    command.env_clear().env("PATH", "/usr/bin:/bin").envs(environ.iter().copied()).current_dir("/");
    Running::start(name, &mut command, &dir.join(format!("{name}.log")))
}

pub fn strangers_take_nothing_of_an_application(scene: &Scene) -> Result<()> {
    let Scene { here, dir, daemon, app, executor, driver, job } = scene;
    let (dir, executor, driver) = (dir.path(), *executor, *driver);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/forged");
    let classes = dir.join("classes");
    let compiled = Command::new(here.java.join("bin/javac"))
        .arg("-d")
        .arg(&classes)
        .args([sources.join("Executors.java"), sources.join("Driver.java")])
        .status()?;
    ensure!(compiled.success(), "javac: {compiled}");

    // Its very words; those with a container's environment; a driver that answers for it.
    let all = words(executor);
    let at = all.iter().position(|word| word == BACKEND).context("no main class")?;
    let copied: Vec<String> = all[at..].iter().filter(|word| !word.is_empty()).cloned().collect();
    let yarn: Vec<String> = [YARN_BACKEND, "--executor-id", "0", "--app-id", app].map(str::to_owned).into();
    let submit: Vec<String> = [SUBMIT, "--master", "local[1]", "forged.jar"].map(str::to_owned).into();
    let container = [
        ("CONTAINER_ID", "container_1763740000000_0042_01_000003"),
        ("SPARK_YARN_STAGING_DIR", "hdfs://nn/x"),
    ];
    let log_url = format!("http://127.0.0.1/logPage/?appId={app}&executorId=0");
    let mut forgers = [
        forge(here, dir, "argv", &copied, &[("SPARK_LOG_URL_STDOUT", &log_url)])?,
        forge(here, dir, "container", &yarn, &container)?,
        forge(here, dir, "driver", &submit, &[("FORGED", app)])?,
    ];
    forgers[0].wait_fact("started", WARM_UP)?;
    forgers[1].wait_fact("started", WARM_UP)?;
    let port = forgers[2].wait_fact("port", WARM_UP)?;
    let forged: BTreeSet<u32> = forgers.iter().map(|forger| forger.pid()).collect();

    // All three are seen through, with who holds the application; the driver's web server was asked.
    let conflicts = wait_for("conflicts in the status", WARM_UP, || {
        let status = daemon.json("/api/v1/status")?;
        let now = status["conflicts"]["now"].as_array().context("no conflicts in the status")?.clone();
        let seen: BTreeSet<u32> = now.iter().filter_map(|c| c["pid"].as_u64()?.try_into().ok()).collect();
        Ok(forged.is_subset(&seen).then_some(now))
    })?;
    for conflict in
        conflicts.iter().filter(|c| c["pid"].as_u64().is_some_and(|pid| forged.contains(&(pid as u32))))
    {
        println!("{conflict}");
        ensure!(conflict["uid"] == 65534 && conflict["claims"] == *app, "{conflict}");
    }
    let (from, length) = (now_ms() / 10_000 * 10_000 + 10_000, 20_000);
    std::thread::sleep(std::time::Duration::from_millis(from + length - now_ms()));
    wait_visible(daemon, from + length)?;
    let range = format!("from={from}&until={}", from + length);

    // The victim's samples are its own processes', all of them.
    let of_app = pids(daemon, &format!("{range}&app={app}"))?;
    println!("{app} has samples of {of_app:?}; forged: {forged:?}");
    ensure!(of_app.is_disjoint(&forged), "{of_app:?} has some of {forged:?}");
    ensure!(
        of_app.contains(&executor) && of_app.contains(&driver),
        "{of_app:?} lacks {executor} or {driver}"
    );
    let without = pids(daemon, &format!("{range}&app="))?;
    ensure!(!without.contains(&executor) && !without.contains(&driver));
    // The forger's are his: of his user, of no application (a driver's is unknown).
    let his = pids(daemon, &format!("{range}&query={}", "%7Buser%3D~%22nobody%7C65534%22%7D"))?;
    ensure!(forged.is_subset(&his), "{his:?} lacks some of {forged:?}");
    ensure!(pids(daemon, &format!("{range}&role=executor"))?.is_disjoint(&forged));

    // Names, and links to the victim's own pages.
    let apps = daemon.json(&format!("/api/v1/apps?{range}"))?;
    let row = apps["apps"]
        .as_array()
        .and_then(|rows| rows.iter().find(|row| row["id"] == *app))
        .context("no row")?;
    println!("{row}");
    ensure!(row["name"] == "emberscope-demo" && row["user"] == "root" && row["executors"] == 1, "{row}");
    // The JVM and, where a sample met it in these 20 s, the Python program that started it, which mostly waits.
    let drivers: BTreeSet<u32> =
        row["drivers"].as_array().into_iter().flatten().filter_map(|p| p.as_u64()?.try_into().ok()).collect();
    let sampled = pids(daemon, &format!("{range}&app={app}&role=driver"))?;
    ensure!(drivers == sampled && drivers.contains(&driver) && drivers.is_disjoint(&forged), "{row}");
    ensure!(drivers.iter().all(|pid| group(*pid) == Some(job.pid())), "{row}");
    // What else it has is the executor, and what that forked for a moment.
    let others = of_app.difference(&drivers).filter(|pid| **pid != executor);
    for pid in others {
        let labels = daemon.json(&format!("/api/v1/processes?{range}&pid={pid}"))?;
        println!("another process of the application: {labels}");
        ensure!(group(*pid).is_none_or(|group| group == job.pid()), "{pid} is none of the job's: {labels}");
    }
    let stages = wait_for("Spark's names of stages", WARM_UP, || {
        let stages = daemon.json(&format!("/api/v1/stages?{range}&app={app}"))?;
        let ready = ["ready", "stale"].contains(&stages["spark"]["state"].as_str().unwrap_or_default());
        // What was read before the first stage began has none of them; what is read next has.
        let named = stages["stages"]
            .as_array()
            .is_some_and(|rows| rows.iter().any(|row| row["spark"]["page"].is_string()));
        Ok((ready && named).then_some(stages))
    })?;
    let source = stages["spark"]["source"].as_str().context("no source")?;
    println!("stages are named by {source}; the forged driver is at {port}");
    ensure!(!source.ends_with(&format!(":{port}")) && !stages.to_string().contains("forged"), "{stages}");
    let rows = stages["stages"].as_array().context("no stages")?;
    let pages: Vec<&str> = rows.iter().filter_map(|row| row["spark"]["page"].as_str()).collect();
    ensure!(!pages.is_empty() && pages.iter().all(|page| page.starts_with(source)), "{pages:?}");
    let counted = daemon.get("/metrics")?.body;
    let counted = counted.lines().find_map(|line| line.strip_prefix("emberscope_identity_conflicts_total "));
    println!("conflicts counted: {counted:?}");
    ensure!(counted.and_then(|n| n.parse::<f64>().ok()).is_some_and(|n| n >= 3.0), "{counted:?}");
    ensure!(!Value::to_string(&apps).contains("forged"));
    Ok(())
}
