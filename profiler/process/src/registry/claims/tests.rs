use super::super::Registry;
use super::super::config::RegistryConfig;
use crate::discovery::{RestApp, Server};
use crate::fixtures::{FakeProc, FakeProcess, fixture_words};
use emberscope_model::{LabelKey, Pid, ProcessKey};

/// The application of the recorded local-cluster driver and its executor, user 1000's.
const APP: &str = "app-20261121183115-0000";
const MALLORY: u32 = 65534;
const BACKEND: &str = "org.apache.spark.executor.CoarseGrainedExecutorBackend";
const YARN_BACKEND: &str = "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend";

fn process(fake: &FakeProc, pid: Pid, parent: Pid, start: u64, uid: u32, words: &[&str]) -> FakeProcess {
    let status = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{pid}\n");
    let exe = if words.first() == Some(&"java") { "/jdk/bin/java" } else { "/bin/x" };
    let process = fake.process(pid, parent, words.first().unwrap_or(&"x"), start).words(words);
    process.file("status", status.as_bytes()).link("exe", exe)
}

fn registry(fake: &FakeProc) -> Registry {
    let host = RegistryConfig::host("n1");
    let mut registry = Registry::new(RegistryConfig {
        proc_root: fake.path(),
        passwd: fake.passwd(),
        ask_drivers: false,
        ..host
    });
    registry.scan();
    registry
}

fn labels(registry: &mut Registry, pid: Pid) -> [String; 4] {
    let labels = registry.get(pid).labels.clone();
    [LabelKey::App, LabelKey::Role, LabelKey::Executor, LabelKey::User].map(|key| labels.get(key).to_owned())
}

fn key(registry: &Registry, pid: Pid) -> ProcessKey {
    registry.known(pid).unwrap()
}

fn told(registry: &mut Registry, pid: Pid, id: &str, name: &str) {
    let app = RestApp { id: id.into(), name: name.into(), user: "ana".into() };
    let key = key(registry, pid);
    registry.take_rest(key, Server::Driver, Some(&[app]));
    registry.tick();
}

/// A lookalike of the recorded executor, of another user.
fn forged_executor(fake: &FakeProc, pid: Pid, start: u64) -> FakeProcess {
    let words = fixture_words("local-cluster-executor");
    process(fake, pid, 1, start, MALLORY, &words.iter().map(String::as_str).collect::<Vec<_>>())
        .link("exe", "/home/mallory/java")
}

#[test]
fn a_forged_executor_is_its_own_users_and_the_victim_keeps_its_application() {
    let fake = FakeProc::new();
    let (driver, executor) = (fake.recorded("local-cluster-driver"), fake.recorded("local-cluster-executor"));
    let mut registry = registry(&fake);
    let executor_key = key(&registry, executor);
    let driver_key = key(&registry, driver);
    registry.take_driver(APP.into(), executor_key, Some(driver_key));
    registry.tick();
    // Forked before the victim was, and now it is a lookalike; a Python worker of its own has the environment.
    forged_executor(&fake, 70, 1);
    process(&fake, 71, 70, 2, MALLORY, &["python3", "-m", "pyspark.daemon"])
        .link("exe", "/usr/bin/python3")
        .environ(&[format!("SPARK_LOG_URL_STDOUT=http://h/?appId={APP}&executorId=1")]);
    registry.get(71);
    let relabels = registry.tick();
    for pid in [70, 71] {
        assert_eq!(labels(&mut registry, pid), ["", "other", "", "65534"], "{pid}");
        let moved = relabels.iter().find(|r| r.key.pid == pid).unwrap();
        assert_eq!(
            moved.from.get(LabelKey::App),
            APP,
            "what it was sampled with before the tick is put right"
        );
    }
    assert_eq!(labels(&mut registry, executor), [APP, "executor", "1", "ana"]);
    assert_eq!(labels(&mut registry, driver), [APP, "driver", "", "ana"]);
    let [conflict] = registry.conflicts()[..] else { panic!("{:?}", registry.conflicts()) };
    assert_eq!((conflict.pid, conflict.uid, &*conflict.app, &*conflict.holder), (70, MALLORY, APP, "ana"));
    assert_eq!(registry.counters().conflicts, 1);
    // It leads to the victim's driver, which stays what it is.
    let forged = key(&registry, 70);
    registry.take_driver("app-evil".into(), forged, Some(driver_key));
    registry.tick();
    assert_eq!(labels(&mut registry, driver)[0], APP);
    assert_eq!(registry.counters().conflicts, 2);
}

/// On YARN all containers may have one user.
#[test]
fn what_an_executor_starts_is_no_executor_of_another_application_of_the_same_user() {
    let fake = FakeProc::new();
    let (driver, executor) = (fake.recorded("local-cluster-driver"), fake.recorded("local-cluster-executor"));
    let other = ["java", BACKEND, "--executor-id", "1", "--app-id", "app-2"];
    process(&fake, 80, 1, 9_000_000, 1000, &other);
    let forged = fixture_words("local-cluster-executor");
    process(&fake, 81, 80, 9_000_001, 1000, &forged.iter().map(String::as_str).collect::<Vec<_>>())
        .link("exe", "/home/ana/java");
    // A driver that an executor starts may be of any application, and its executors with it.
    process(&fake, 82, 80, 9_000_002, 1000, &["java", BACKEND, "--executor-id", "2", "--app-id", "app-2"]);
    let mut registry = registry(&fake);
    let executor_key = key(&registry, executor);
    let driver_key = key(&registry, driver);
    registry.take_driver(APP.into(), executor_key, Some(driver_key));
    registry.tick();
    registry.tick();
    assert_eq!(labels(&mut registry, executor)[0], APP);
    assert_eq!(labels(&mut registry, 80)[..3], ["app-2", "executor", "1"]);
    assert_eq!(labels(&mut registry, 82)[0], "app-2");
    assert_eq!(labels(&mut registry, 81)[0], "app-2", "the word of a process below app-2's executor");
    let conflicts = registry.conflicts();
    assert_eq!(conflicts.len(), 1);
    assert_eq!((conflicts[0].pid, conflicts[0].holder.as_str()), (81, "executor 80 of app-2"));
}

#[test]
fn a_squatter_yields_to_an_application_with_its_driver() {
    let fake = FakeProc::new();
    forged_executor(&fake, 70, 1);
    let mut registry = registry(&fake);
    registry.tick();
    assert_eq!(labels(&mut registry, 70)[0], APP, "nobody else claims it");
    let (driver, executor) = (fake.recorded("local-cluster-driver"), fake.recorded("local-cluster-executor"));
    registry.scan();
    let (executor_key, driver_key) = (key(&registry, executor), key(&registry, driver));
    registry.take_driver(APP.into(), executor_key, Some(driver_key));
    let relabels = registry.tick();
    assert_eq!(labels(&mut registry, 70), ["", "other", "", "65534"]);
    assert_eq!(labels(&mut registry, executor), [APP, "executor", "1", "ana"]);
    assert!(relabels.iter().any(|r| r.key.pid == 70 && r.to.get(LabelKey::App).is_empty()));
}

#[test]
fn a_forged_drivers_answer_names_its_own_processes_alone() {
    let fake = FakeProc::new();
    let words = ["java", "org.apache.spark.deploy.SparkSubmit", "--master", "local[1]", "job.py"];
    process(&fake, 50, 1, 500, 1000, &words);
    process(&fake, 60, 1, 600, MALLORY, &words);
    let mut registry = registry(&fake);
    told(&mut registry, 50, "local-1", "sales");
    told(&mut registry, 60, "local-1", "evil");
    assert_eq!(labels(&mut registry, 50), ["local-1", "driver", "driver", "ana"]);
    assert_eq!(labels(&mut registry, 60), ["unknown", "driver", "", "65534"]);
    assert_eq!(registry.get(50).labels.get(LabelKey::AppName), "sales");
    assert_eq!(registry.get(60).labels.get(LabelKey::AppName), "");
    let places = registry.places().of("local-1");
    assert_eq!(
        places.iter().map(|p| p.process.key.pid).collect::<Vec<_>>(),
        [50],
        "only the victim's is asked"
    );
    // A web server that names the applications of others names nothing.
    let answer = [RestApp { id: "local-1".into(), name: "evil".into(), user: String::new() }];
    let forged = key(&registry, 60);
    registry.take_rest(forged, Server::Worker, Some(&answer));
    registry.dirty = true;
    registry.tick();
    assert_eq!(registry.get(50).labels.get(LabelKey::AppName), "sales");
}

#[test]
fn a_forged_container_id_makes_no_container_of_the_application() {
    let fake = FakeProc::new();
    let container = "CONTAINER_ID=container_1763740000000_0042_01_000003";
    let staging = "SPARK_YARN_STAGING_DIR=hdfs://nn/x";
    let app = "application_1763740000000_0042";
    let words = ["java", YARN_BACKEND, "--executor-id", "2", "--app-id", app];
    // LinuxContainerExecutor: root changes to the user below the NodeManager.
    process(&fake, 40, 1, 400, 13, &["java", "org.apache.hadoop.yarn.server.nodemanager.NodeManager"]);
    process(&fake, 41, 40, 900, 1000, &["bash", "-c", "java .."]).environ(&[container, staging]);
    process(&fake, 42, 41, 901, 1000, &words).environ(&[container, staging]);
    // Older, and of the same words; one below a NodeManager of its own, one a set-uid program there.
    process(&fake, 30, 1, 300, MALLORY, &words).environ(&[container, staging]);
    process(&fake, 31, 1, 310, MALLORY, &["java", "org.apache.hadoop.yarn.server.nodemanager.NodeManager"]);
    process(&fake, 32, 31, 311, MALLORY, &words).environ(&[container, staging]);
    process(&fake, 33, 31, 312, 0, &["su"]).environ(&[container, staging]);
    // In a container of its own, where its code starts a lookalike.
    let own = "CONTAINER_ID=container_1763740000000_0043_01_000003";
    process(&fake, 43, 40, 320, MALLORY, &["bash", "-c", "java .."]).environ(&[own, staging]);
    process(&fake, 44, 43, 321, MALLORY, &words).environ(&[container, staging]);
    let mut registry = registry(&fake);
    assert_eq!(labels(&mut registry, 42), [app, "executor", "2", "ana"]);
    assert_eq!(labels(&mut registry, 41)[0], app);
    for pid in [30, 32, 33] {
        assert_eq!(labels(&mut registry, pid)[..2], ["", "other"], "{pid}");
        assert_eq!(registry.get(pid).labels.get(LabelKey::Container), "", "{pid}");
    }
    assert_eq!(labels(&mut registry, 44)[0], "application_1763740000000_0043", "its own container's");
}

#[test]
fn a_clusters_service_may_start_executors_of_other_users_drivers() {
    let fake = FakeProc::new();
    let (worker, backend) = ("org.apache.spark.deploy.worker.Worker", BACKEND);
    let words = |executor| ["java", backend, "--executor-id", executor, "--app-id", "app-1"];
    process(&fake, 20, 1, 200, 0, &["java", worker]);
    process(&fake, 21, 20, 700, 0, &words("0"));
    process(
        &fake,
        22,
        1,
        600,
        1000,
        &["java", "org.apache.spark.deploy.SparkSubmit", "--master", "spark://m:7077"],
    );
    process(&fake, 30, 1, 100, MALLORY, &["java", worker]);
    process(&fake, 31, 30, 110, MALLORY, &words("1"));
    let mut registry = registry(&fake);
    let (executor, driver, forged) = (key(&registry, 21), key(&registry, 22), key(&registry, 31));
    registry.take_driver("app-1".into(), forged, Some(driver));
    registry.tick();
    assert_eq!(labels(&mut registry, 22)[0], "unknown", "another user's executor does not name a driver");
    registry.take_driver("app-1".into(), executor, Some(driver));
    registry.tick();
    assert_eq!(labels(&mut registry, 21), ["app-1", "executor", "0", "root"]);
    assert_eq!(labels(&mut registry, 22), ["app-1", "driver", "", "ana"]);
    assert_eq!(labels(&mut registry, 31)[..2], ["", "other"]);
}

#[test]
fn history_servers_tell_of_others_only_where_they_are_the_clusters() {
    let fake = FakeProc::new();
    let history = ["java", "org.apache.spark.deploy.history.HistoryServer"];
    let submit = ["java", "org.apache.spark.deploy.SparkSubmit", "--master", "local[1]", "job.py"];
    process(&fake, 20, 1, 200, 0, &history);
    process(&fake, 21, 1, 300, 1000, &history);
    process(&fake, 22, 1, 400, MALLORY, &history);
    process(&fake, 50, 1, 500, 1000, &submit);
    let mut registry = registry(&fake);
    told(&mut registry, 50, "local-1", "sales");
    let pids = |app| registry.places().of(app).iter().map(|p| p.process.key.pid).collect::<Vec<_>>();
    assert_eq!(pids("local-1"), [50, 21, 20]);
    assert_eq!(pids("local-9"), [20]);
}

#[test]
fn pods_of_client_mode_have_users_of_their_own() {
    let fake = FakeProc::new();
    let pod = |id: char| {
        let (a, b) = ("/kubepods.slice/kubepods-pod1.slice/cri-containerd-", String::from(id).repeat(64));
        format!("0::{a}{b}.scope\n")
    };
    let ids = ["spark-0123456789abcdef0123456789abcdef", "spark-ffffffffffffffffffffffffffffffff"];
    let backend = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend";
    let words = |app| {
        ["java", backend, "--executor-id", "1", "--app-id", app, "--driver-url", "spark://x@10.0.0.1:7078"]
    };
    let submit =
        ["java", "org.apache.spark.deploy.SparkSubmit", "--master", "k8s://https://m", "pyspark-shell"];
    process(&fake, 50, 1, 500, 1000, &submit).file("cgroup", pod('a').as_bytes());
    process(&fake, 51, 1, 501, 185, &words(ids[0])).file("cgroup", pod('b').as_bytes());
    process(&fake, 52, 1, 502, 186, &words(ids[0])).file("cgroup", pod('c').as_bytes());
    process(&fake, 60, 1, 600, 187, &words(ids[1])).file("cgroup", pod('d').as_bytes());
    process(&fake, 61, 1, 100, MALLORY, &words(ids[0]));
    let mut registry = registry(&fake);
    let (driver, executor, stranger) = (key(&registry, 50), key(&registry, 51), key(&registry, 60));
    registry.take_driver(ids[0].into(), executor, Some(driver));
    registry.tick();
    registry.take_driver(ids[1].into(), stranger, Some(driver));
    registry.tick();
    assert_eq!(labels(&mut registry, 50)[..2], [ids[0], "driver"]);
    for pid in [51, 52] {
        assert_eq!(labels(&mut registry, pid)[..3], [ids[0], "executor", "1"], "{pid}");
    }
    assert_eq!(labels(&mut registry, 61)[..2], ["", "other"], "it is in no pod");
}
