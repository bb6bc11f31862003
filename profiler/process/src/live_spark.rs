//! The registry on this machine's /proc and real Spark. Needs SPARK_HOME (a pyspark package will do) and
//! `java`; without them each test is skipped and says so.

use super::discovery::{NamesConfig, SparkNames};
use super::registry::{Process, Registry, RegistryConfig};
use emberscope_model::{Deploy, Joined, LabelKey, Pid, RawTask, Role, SparkSource, TaskEvent};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A job that keeps Python workers busy for longer than a test waits under a name that no command line has.
const JOB: &str = r#"
import time
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
spark = SparkSession.builder.appName("sales of the day").getOrCreate()
f = udf(lambda x: sum(i * x for i in range(1000)), "long")
end = time.time() + 900
while time.time() < end:
    spark.range(0, 5000, 1, 2).select(f("id").alias("y")).agg({"y": "sum"}).collect()
"#;

/// A driver that shares its cores with builds may take minutes to start its first Python worker.
const WAIT: Duration = Duration::from_secs(600);
/// How long one question of stages or tasks waits for its answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A Spark program that is stopped at the end, with what it started.
struct Running {
    child: Child,
    _job: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        // SIGTERM: a driver takes its executors and their Python down with it.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

fn spark_home() -> Option<PathBuf> {
    let home =
        std::env::var_os("SPARK_HOME").map(PathBuf::from).filter(|h| h.join("bin/spark-submit").exists());
    let java = Command::new("java").arg("-version").stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    let reason = match (&home, java) {
        (Some(_), true) => return home,
        (None, _) => "SPARK_HOME names no Spark",
        (_, false) => "no java",
    };
    emberscope_testkit::skip(reason);
    None
}

fn run(home: &std::path::Path, program: &str, args: &[&str]) -> Running {
    run_with(home, program, args, &[])
}

fn run_with(home: &std::path::Path, program: &str, args: &[&str], environ: &[(&str, &str)]) -> Running {
    let job = tempfile::tempdir().unwrap();
    std::fs::write(job.path().join("job.py"), JOB).unwrap();
    let child = Command::new(home.join("bin").join(program))
        .args(args)
        .current_dir(job.path())
        .env("SPARK_HOME", home)
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .env("SPARK_WORKER_DIR", job.path())
        .envs(environ.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Running { child, _job: job }
}

/// A port that nobody has, in words: what another run of these tests left behind has the one before.
fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

fn registry() -> Registry {
    Registry::new(RegistryConfig::host("here"))
}

/// Looks once a second, as the daemon does, until `done`; `main` stands in for the exec events of the
/// program's start.
fn watch<T>(registry: &mut Registry, main: &[Pid], done: impl Fn(&Registry) -> Option<T>) -> T {
    let start = Instant::now();
    while start.elapsed() < WAIT {
        for pid in main {
            registry.on_task(&RawTask { time_ns: 0, pid: *pid, tid: *pid, event: TaskEvent::Exec });
        }
        registry.scan();
        registry.tick();
        if let Some(found) = done(registry) {
            eprintln!("found after {:?}: {:?}", start.elapsed(), registry.counters());
            return found;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    let spark = registry.iter().filter(|p| p.role != Role::Other);
    let known: Vec<String> = spark.map(|p| format!("{:?} exited={}", p.labels, p.exited)).collect();
    panic!("not found in {WAIT:?}: {:?}\n{}", registry.counters(), known.join("\n"));
}

/// Live processes of a role below `ancestor`.
fn below(registry: &Registry, ancestor: Pid, role: Role) -> Vec<&Process> {
    let parent = |pid: Pid| registry.iter().find(|p| p.key.pid == pid && !p.exited).map(|p| p.ppid);
    let is_below = |process: &&Process| {
        let mut pid = process.ppid;
        for _ in 0..16 {
            if pid == ancestor {
                return true;
            }
            pid = parent(pid).unwrap_or(0);
        }
        false
    };
    registry.iter().filter(|p| p.role == role && !p.exited).filter(is_below).collect()
}

fn value(process: &Process, key: LabelKey) -> String {
    process.labels.get(key).to_owned()
}

#[test]
fn a_local_driver_tells_its_id_and_name_itself() {
    let Some(home) = spark_home() else { return };
    let spark = run(&home, "spark-submit", &["--master", "local[1]", "job.py"]);
    let pid = spark.child.id();
    let mut registry = registry();
    let (id, python) = watch(&mut registry, &[pid], |r| {
        let driver = r.iter().find(|p| p.key.pid == pid && p.role == Role::Driver)?;
        let id = value(driver, LabelKey::App);
        let python: Vec<Process> = below(r, pid, Role::Python).into_iter().cloned().collect();
        // The user's program, the daemon, a worker.
        (id != "unknown" && python.len() >= 3).then_some((id, python))
    });
    assert!(id.starts_with("local-"), "{id}");
    let driver = registry.get(pid);
    assert!(driver.is_jvm());
    assert_eq!(value(driver, LabelKey::ServiceName), "sales of the day");
    assert_eq!(value(driver, LabelKey::Executor), "driver");
    for process in python {
        assert_eq!(value(&process, LabelKey::App), id);
        let executor = if process.record.program == "job.py" { "" } else { "driver" };
        assert_eq!(value(&process, LabelKey::Executor), executor, "{}", process.record.program);
    }
}

#[test]
fn executors_lead_to_the_driver_of_a_local_cluster() {
    let Some(home) = spark_home() else { return };
    let options =
        ["--master", "local-cluster[1,1,512]", "--conf", "spark.executor.memory=512m", "--name", "words"];
    // Without a web server only the executors' URL can tell.
    let no_ui = ["--conf", "spark.ui.enabled=false", "job.py"];
    let spark = run(&home, "spark-submit", &[&options[..], &no_ui[..]].concat());
    let pid = spark.child.id();
    let mut registry = registry();
    let (id, executor, workers) = watch(&mut registry, &[pid], |r| {
        let driver = r.iter().find(|p| p.key.pid == pid && p.role == Role::Driver)?;
        let id = Some(value(driver, LabelKey::App)).filter(|id| id != "unknown")?;
        let executor = (*below(r, pid, Role::Executor).first()?).clone();
        let workers: Vec<Process> = below(r, executor.key.pid, Role::Python).into_iter().cloned().collect();
        (workers.len() >= 2).then_some((id, executor, workers))
    });
    assert!(id.starts_with("app-"), "{id}");
    assert_eq!(value(&executor, LabelKey::App), id);
    assert_eq!(value(&executor, LabelKey::Deploy), Deploy::LocalCluster.slug());
    assert_eq!(value(&executor, LabelKey::AppName), "words", "shared by the driver's command line");
    assert_eq!(value(&executor, LabelKey::AppRun), "words", "nobody says what it is a run of");
    assert_eq!(executor.record.cores, 1);
    for worker in workers {
        assert_eq!(
            (value(&worker, LabelKey::App), value(&worker, LabelKey::Executor)),
            (id.clone(), "0".into())
        );
    }
}

#[test]
fn a_worker_names_the_applications_of_a_driver_elsewhere() {
    let Some(home) = spark_home() else { return };
    let (port, master_ui, worker_ui) = (free_port(), free_port(), free_port());
    let master_url = &format!("spark://127.0.0.1:{port}");
    let class = |main, rest: &[&str]| run(&home, "spark-class", &[&[main][..], rest].concat());
    let ports = ["--host", "127.0.0.1", "--port", &port, "--webui-port", &master_ui];
    let _master = class("org.apache.spark.deploy.master.Master", &ports);
    let worker = class(
        "org.apache.spark.deploy.worker.Worker",
        &["--webui-port", &worker_ui, "-c", "1", "-m", "1g", master_url],
    );
    let no_ui = ["--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=512m", "job.py"];
    let driver = run(&home, "spark-submit", &[&["--master", master_url][..], &no_ui[..]].concat());
    let (worker, driver) = (worker.child.id(), driver.child.id());
    let mut registry = registry();
    let executor = watch(&mut registry, &[worker, driver], |r| {
        let executors = below(r, worker, Role::Executor);
        executors.into_iter().find(|e| value(e, LabelKey::AppName) == "sales of the day").cloned()
    });
    assert_eq!(value(&executor, LabelKey::Deploy), Deploy::Standalone.slug());
    let driver_app = watch(&mut registry, &[], |r| {
        let driver = r.iter().find(|p| p.key.pid == driver && p.role == Role::Driver)?;
        Some(value(driver, LabelKey::App)).filter(|id| id != "unknown")
    });
    assert_eq!(driver_app, value(&executor, LabelKey::App));
}

/// Asks until Spark told, as a user would. A driver's first answer may take longer than a request may on a
/// busy machine; then the next one gets it.
fn ask<T: std::fmt::Debug>(question: impl Fn() -> Joined<T>) -> Arc<T> {
    let start = Instant::now();
    loop {
        match question() {
            Joined::Ready(told) => return told,
            other => assert!(start.elapsed() < WAIT, "{other:?}"),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_driver_and_then_a_history_server_tell_of_stages_and_tasks() {
    let Some(home) = spark_home() else {
        return;
    };
    let log = tempfile::tempdir().unwrap();
    let log_dir = format!("spark.eventLog.dir=file://{}", log.path().display());
    let options = ["--master", "local-cluster[1,1,512]", "--conf", "spark.executor.memory=512m", "--conf"];
    let logged = ["spark.eventLog.enabled=true", "--conf", &log_dir, "job.py"];
    let spark = run(&home, "spark-submit", &[&options[..], &logged[..]].concat());
    let pid = spark.child.id();
    let mut registry = registry();
    let places = registry.places();
    let names = || SparkNames::new(NamesConfig { urls: vec![], ask_found: true }, places.clone());
    let app = watch(&mut registry, &[pid], |r| {
        let driver = r.iter().find(|p| p.key.pid == pid && p.role == Role::Driver)?;
        // Its first Python worker is about its first task.
        let working = below(r, pid, Role::Python).len() >= 3;
        Some(value(driver, LabelKey::App)).filter(|id| id != "unknown" && working)
    });
    let stages = |names: &SparkNames| ask(|| names.stages(&app, PATIENCE));
    // Its tasks are all known once it is over: with one core the second of two begins after the first.
    let (start, mut of_driver) = (Instant::now(), stages(&names()));
    while of_driver.stages.first().is_none_or(|stage| &*stage.status != "COMPLETE") {
        assert!(start.elapsed() < WAIT, "{of_driver:?}");
        std::thread::sleep(Duration::from_millis(200));
        of_driver = stages(&names());
    }
    eprintln!("the driver told: {} stages from {}", of_driver.stages.len(), of_driver.source);
    let stage = of_driver.stages.first().unwrap();
    assert!(stage.name.starts_with("collect at ") && stage.name.contains("job.py:"), "{stage:?}");
    assert_eq!((&*stage.job_ids, stage.tasks), (&[0][..], 2));
    assert_eq!(stage.sql.as_ref().map(|sql| sql.id), Some(0));
    assert!(!of_driver.completed);

    drop(spark);
    let port = free_port();
    let options = format!(
        "-Dspark.history.fs.logDirectory=file://{} -Dspark.history.ui.port={port}",
        log.path().display()
    );
    let history = run_with(
        &home,
        "spark-class",
        &["org.apache.spark.deploy.history.HistoryServer"],
        &[("SPARK_HISTORY_OPTS", &options)],
    );
    let pid = history.child.id();
    watch(&mut registry, &[pid], |r| {
        let server = r.iter().find(|p| p.key.pid == pid && p.role == Role::HistoryServer)?;
        // It reads the logs once it listens.
        let names = names();
        matches!(names.stages(&app, PATIENCE), Joined::Ready(_)).then(|| server.key)
    });
    let names = names();
    let of_history = stages(&names);
    assert_eq!(of_history.get(stage.id, stage.attempt).map(|s| &s.name), Some(&stage.name));
    assert!(
        of_history.source.ends_with(&format!(":{port}")) && of_history.completed,
        "{}",
        of_history.source
    );
    let tasks = ask(|| names.tasks(&app, stage.id, stage.attempt, PATIENCE));
    let of_stage = of_history.get(stage.id, stage.attempt).unwrap();
    assert_eq!(tasks.tasks.len() as u64, of_stage.tasks);
    assert_eq!(tasks.tasks.iter().map(|t| t.executor_cpu_ns).sum::<u64>(), of_stage.executor_cpu_ns);
}
