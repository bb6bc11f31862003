//! Processes that say they are another user's: an executor by its arguments, a container by its environment, a driver
//! by the answers on a port of Spark's. The victim's application keeps its own samples, names and links.

use super::attacks::{Attack, wait};
use super::host::Host;
use crate::bench::row::Row;
use crate::launch::Daemon;
use anyhow::{Context as _, Result, bail};
use std::process::Command;

/// The attackers' method, and what they call all that has a name.
const WORK: &str = "forgedWork";
const FORGED: &str = "forged";
const CLASS: &str = "org.apache.spark.executor.CoarseGrainedExecutorBackend";
/// A container of the forger's; the number is made up, and nobody else's.
const CONTAINER: &str = "container_1700000000000_4242_01_000002";

/// Starts the forgers.
pub fn start(host: &Host, daemon: &Daemon) -> Result<Attack> {
    let classes = host.dir.join("forged");
    std::fs::create_dir_all(&classes).context("making a directory for classes")?;
    let source = classes.join("CoarseGrainedExecutorBackend.java");
    std::fs::write(&source, include_str!("programs/CoarseGrainedExecutorBackend.java"))?;
    let mut javac = Command::new(crate::setup::jdk::tool(&host.kit.jdk.home, "javac"));
    let output = javac.arg("-d").arg(&classes).arg(&source).output().context("cannot start javac")?;
    if !output.status.success() {
        bail!("javac failed\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let forger = |executor: &str, server: bool, environment: &[(&str, &str)]| {
        let mut command = Command::new("env");
        command.args(environment.iter().map(|(name, value)| format!("{name}={value}")));
        command.arg(host.kit.jdk.home.join("bin/java")).arg("-Xmx64m").arg("-XX:+UseSerialGC");
        command.arg(format!("-Dforged.server={}", if server { "true" } else { "false" }));
        command.arg("-cp").arg(&classes).arg(CLASS);
        command.args(["--driver-url", "spark://CoarseGrainedScheduler@127.0.0.1:1"]);
        command.args(["--executor-id", executor, "--hostname", "127.0.0.1", "--cores", "1"]);
        command.args(["--app-id", &host.app, "--resourceProfileId", "0"]);
        host.attack_with(&mut command)
    };
    let before = known(daemon, &host.app)?;
    let mut attack = Attack::default();
    // One more executor, one with the name of a real one, one that answers as the driver would.
    for (executor, server, environment) in [
        ("77", false, &[][..]),
        ("0", false, &[("CONTAINER_ID", CONTAINER), ("SPARK_USER", "nobody")][..]),
        ("driver", true, &[("CONTAINER_ID", CONTAINER), ("SPARK_EXECUTOR_ID", "0")][..]),
    ] {
        attack.running.push(forger(executor, server, environment)?);
    }
    let mut pids = Vec::new();
    for running in &mut attack.running {
        wait(running, "ready")?;
        pids.push(running.pid());
    }
    if let Some(port) = attack.running.iter().find_map(|running| running.fact("server")) {
        attack.told.push(format!("the forged driver answers at {port}"));
    }
    let app = host.app.clone();
    attack.check = Some(Box::new(move |daemon, range| check(daemon, &app, &before, &pids, range)));
    Ok(attack)
}

/// Name of the application, and user, drivers, deployment and number of executors, as `/api/v1/apps` has them.
fn known(daemon: &Daemon, app: &str) -> Result<(String, String)> {
    let answer = daemon.json("/api/v1/apps")?;
    let all = answer["apps"].as_array().map_or(&[][..], Vec::as_slice);
    let row = all.iter().find(|row| row["id"] == app).with_context(|| format!("{app} is not known"))?;
    let name = row["name"].as_str().with_context(|| format!("{app} has no name"))?.to_owned();
    Ok((name, ["user", "drivers", "deploy", "executors"].map(|key| row[key].to_string()).join(", ")))
}

fn check(
    daemon: &Daemon,
    app: &str,
    before: &(String, String),
    pids: &[u32],
    (from, until): (u64, u64),
) -> Result<Vec<Row>> {
    let range = format!("from={from}&until={until}");
    let folded = daemon.get(&format!("/api/v1/flamegraph?app={app}&{range}&format=folded"))?;
    let (mut all, mut forged) = (0, 0);
    for line in folded.body.lines() {
        let count: usize = line.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
        all += count;
        forged += if line.contains(WORK) { count } else { 0 };
    }
    let mut rows =
        vec![Row::at_most("identity: the forgers' samples in the victim's application", forged, 0, all)];
    let mut theirs = 0;
    for pid in pids {
        let answer = daemon.json(&format!("/api/v1/flamegraph?pid={pid}&{range}&format=json"))?;
        theirs += answer["quality"]["samples"].as_u64().unwrap_or(0) as usize;
    }
    rows.push(Row::is(
        "identity: the forgers' samples are kept, as theirs",
        theirs.to_string(),
        "> 0",
        theirs > 0,
        theirs,
    ));
    let (name, whose) = known(daemon, app)?;
    let same = (&name, &whose) == (&before.0, &before.1);
    let what = "identity: name, user, driver and executors of the application";
    rows.push(Row::is(what, format!("{name}, {whose}"), "unchanged", same, 1));
    let stages = daemon.get(&format!("/api/v1/stages?app={app}&{range}"))?.body;
    let names = stages.matches(FORGED).count();
    rows.push(Row::at_most("identity: forged names and links of its stages", names, 0, stages.len().min(1)));
    let executors = daemon.get(&format!("/api/v1/executors?app={app}&{range}"))?.body;
    let there = executors.contains("\"77\"");
    rows.push(Row::is(
        "identity: the forged executor 77",
        if there { "among its own" } else { "not its own" },
        "not its own",
        !there,
        1,
    ));
    Ok(rows)
}
