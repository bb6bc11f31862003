//! How long a task was throttled by its cgroup's quota of CPU time, against what the kernel has on the cgroup's account: a real
//! JVM with one thread that computes (tests/jobs/Computes.java) in a cgroup of its own, on one CPU.
//!
//! On one CPU the group's time is the thread's: it wants to run all the time. Once with a quota, and once without.

use anyhow::{Context as _, Result, ensure};
use emberscope_model::WallTime;
use emberscope_tests::{Here, skip, wait_for, wait_visible};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(180);
/// Of what the kernel says.
const WITHIN: f64 = 0.05;
/// Seconds: names are given, and the account is read, a moment before and after the task.
const MOMENT: f64 = 0.15;

/// A control group below the root, with a quota of CPU time.
struct Group {
    dir: PathBuf,
    home: PathBuf,
    /// The file with the quota, what sets one of a fifth of a CPU, what none.
    quota: (&'static str, &'static str, &'static str),
}

impl Group {
    /// None where it cannot be made: no such controller, or a kernel that does not tell for how long it was throttled.
    fn new(name: &str) -> Option<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = |wanted: &str| {
            own.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                controllers.split(',').any(|name| name == wanted).then(|| path.trim_start_matches('/'))
            })
        };
        let (root, path, quota, weight) = match path("cpu") {
            Some(path) => {
                let quota = ("cpu.cfs_quota_us", "20000", "-1");
                (Path::new("/sys/fs/cgroup/cpu"), path, quota, ("cpu.shares", "262144"))
            }
            None => {
                let root = Path::new("/sys/fs/cgroup");
                std::fs::write(root.join("cgroup.subtree_control"), "+cpu").ok()?;
                (root, path("")?, ("cpu.max", "20000 100000", "max 100000"), ("cpu.weight", "10000"))
            }
        };
        let dir = root.join(name);
        std::fs::create_dir_all(&dir).ok()?;
        // The most there is: what others want of the CPU must not keep the group within its quota.
        std::fs::write(dir.join(weight.0), weight.1).ok()?;
        let group = Self { dir, home: root.join(path), quota };
        (group.dir.join(quota.0).exists() && group.throttled().is_ok()).then_some(group)
    }

    /// What `start` starts is in the group.
    fn with<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        let enter = |dir: &Path| std::fs::write(dir.join("cgroup.procs"), "0").context("entering a cgroup");
        enter(&self.dir)?;
        let started = start();
        enter(&self.home)?;
        started
    }

    fn set(&self, has_quota: bool) -> Result<()> {
        let (file, some, none) = self.quota;
        Ok(std::fs::write(self.dir.join(file), if has_quota { some } else { none })?)
    }

    /// Seconds for which its threads were throttled, all CPUs together (cgroup_cpu_stat_local, Linux 6.6).
    fn throttled(&self) -> Result<f64> {
        let text = std::fs::read_to_string(self.dir.join("cpu.stat.local"))?;
        let of = |key: &str, unit: f64| {
            Some(text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse::<f64>().ok()? / unit)
        };
        of("throttled_time ", 1e9).or_else(|| of("throttled_usec ", 1e6)).context("no such line")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.dir);
    }
}

#[test]
fn a_quota_throttles_a_task() -> Result<()> {
    let test = "a_quota_throttles_a_task";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let Some(group) = Group::new("emberscope-quota") else {
        skip(test, "no cgroup that tells for how long it was throttled: Linux 6.6, the cpu controller");
        return Ok(());
    };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &["--events", "cpu,off-cpu", "--window", "2s"])?;
    let all = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    one.set(0);
    let program =
        here.java("SparkSubmit", include_str!("jobs/Computes.java")).package("org.apache.spark.deploy");
    let program = program.arg("8").arg("2").flag("-Xmx64m");
    sched_setaffinity(None, &one)?;
    let started = group.with(|| program.start(dir.path()));
    sched_setaffinity(None, &all)?;
    let mut java = started?;
    java.wait_fact("ready", SOON)?;
    let pid = java.pid();
    wait_for("probes on its libjvm", SOON, || {
        let jvm = daemon.jvm(pid)?;
        Ok((jvm["threads"] == "probe").then_some(jvm))
    })?;
    let from = WallTime::now().as_millis();
    for (task, has_quota) in [true, false].into_iter().enumerate() {
        group.set(has_quota)?;
        let before = group.throttled()?;
        std::fs::write(dir.path().join(format!("go{task}")), "")?;
        java.wait_fact(&format!("ended{task}"), SOON)?;
        let kernel = group.throttled()? - before;
        group.set(false)?;
        let until = WallTime::now().as_millis();
        wait_visible(&daemon, until)?;
        let answer = daemon.json(&format!("/api/v1/tasks?stage={task}&from={from}&until={until}&join=no"))?;
        let exact = &answer["tasks"][0]["exact"];
        let figure = |name: &str| exact[name].as_f64().with_context(|| format!("no {name} in {answer}"));
        let (throttled, delay, wall) =
            (figure("throttled_seconds")?, figure("run_delay_seconds")?, figure("wall_seconds")?);
        println!(
            "stage {task}: {throttled} s of {delay} s of {wall} s; the kernel has {kernel} s of the group"
        );
        ensure!(throttled <= delay, "{answer}");
        if has_quota {
            ensure!(kernel > wall / 4.0, "the group was hardly throttled: {kernel} s of {wall} s");
            ensure!(
                (throttled - kernel).abs() <= kernel * WITHIN + MOMENT,
                "{throttled} s, {kernel} s of the group"
            );
            let query =
                format!("stage={task}&type=wall&group=wait&unit=ns&format=folded&from={from}&until={until}");
            let folded = daemon.get(&format!("/api/v1/flamegraph?{query}"))?.body;
            ensure!(folded.contains("wait=throttled;[throttled by a CPU quota]"), "{folded}");
            ensure!(folded.contains("wait=(on cpu);"), "{folded}");
        } else {
            ensure!(throttled < MOMENT, "throttled without a quota: {answer}");
        }
    }
    java.wait(SOON)?;
    ensure!(daemon.stop()?.success());
    Ok(())
}
