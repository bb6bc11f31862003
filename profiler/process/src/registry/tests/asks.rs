//! Who is asked for applications and their names, and what is made of the answers.

use super::*;

/// Ticks until the labels of a process are as wanted, at most ten seconds.
pub(super) fn tick_until(registry: &mut Registry, done: impl Fn(&mut Registry) -> bool) -> Vec<Relabel> {
    let start = Instant::now();
    let mut relabels = Vec::new();
    while start.elapsed() < Duration::from_secs(10) {
        relabels.extend(registry.tick());
        if done(registry) {
            return relabels;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("not within ten seconds; relabels so far: {relabels:?}");
}

/// Nobody is asked any more.
fn is_left_alone(registry: &mut Registry) {
    let asked = registry.counters().asked;
    for _ in 0..5 {
        registry.tick();
    }
    assert_eq!(registry.counters().asked, asked, "and then it is left alone");
}

#[test]
#[cfg(target_endian = "little")]
fn executors_name_their_driver_by_its_port() {
    let fake = FakeProc::new();
    let driver = fake.recorded("local-cluster-driver");
    let executor = fake.recorded("local-cluster-executor");
    // 43695, on loopback: where the recorded executor was told that its driver is.
    let table = "head\n 0: 0000000000000000FFFF00000100007F:AAAF 0:0 0A 0:0 0:0 0 0 0 4711 1\n";
    let dir = fake.path().join(driver.to_string());
    std::fs::create_dir_all(dir.join("fd")).unwrap();
    std::fs::create_dir_all(dir.join("net")).unwrap();
    std::fs::write(dir.join("net/tcp6"), table).unwrap();
    std::os::unix::fs::symlink("socket:[4711]", dir.join("fd/278")).unwrap();
    let mut registry = Registry::new(config(&fake));
    registry.scan();
    let first = registry.get(driver).labels.clone();
    assert_eq!(first.get(LabelKey::App), "unknown");
    let relabels =
        tick_until(&mut registry, |r| label(r, driver, LabelKey::App) == "app-20261121183115-0000");
    let of_driver = relabels.iter().find(|r| r.key.pid == driver).unwrap();
    assert_eq!((&of_driver.from, of_driver.to.get(LabelKey::App)), (&first, "app-20261121183115-0000"));
    // The driver's words name the application, and with its id known the executors share the name.
    assert_eq!(label(&mut registry, executor, LabelKey::AppName), "lc-name");
    assert!(relabels.iter().any(|r| r.key.pid == executor && r.to.get(LabelKey::ServiceName) == "lc-name"));
    assert!(registry.tick().is_empty(), "and then it is quiet");
    assert_eq!(registry.counters().asked, 2, "where the driver is, and what it calls the application");
}

/// `appName` in a program's code is on no command line: `spark-submit job.py` tells the script's name alone.
#[test]
fn a_driver_tells_what_its_program_calls_the_application() {
    let fake = FakeProc::new();
    let words = ["java", "org.apache.spark.deploy.SparkSubmit", "--master", "spark://m:7077", "job.py"];
    fake.process(7, 1, "java", 100).words(&words).link("exe", "/jdk/bin/java");
    let word = ["java", "org.apache.spark.executor.CoarseGrainedExecutorBackend", "--app-id", "app-1"];
    fake.process(8, 1, "java", 900).words(&word).link("exe", "/jdk/bin/java");
    let limits = Limits { ask_interval: Duration::ZERO, ..Limits::default() };
    let mut registry = Registry::new(RegistryConfig { limits, ..config(&fake) });
    registry.scan();
    let key = registry.known(7).unwrap();
    registry.entries.get_mut(&key).unwrap().told.get_or_insert_default().by_url = Some("app-1".into());
    registry.dirty = true;
    tick_until(&mut registry, |r| label(r, 8, LabelKey::AppName) == "job.py");
    tick_until(&mut registry, |r| r.counters().asked >= 3);
    let told = |id: &str| RestApp { id: id.into(), name: "nightly orders".into(), user: "ana".into() };
    registry.take_rest(key, Server::Driver, Some(&[told("app-2")]));
    registry.tick();
    assert_eq!(label(&mut registry, 8, LabelKey::AppName), "job.py", "it tells of another");
    registry.take_rest(key, Server::Driver, Some(&[told("app-1")]));
    tick_until(&mut registry, |r| {
        [7, 8].iter().all(|pid| label(r, *pid, LabelKey::AppName) == "nightly orders")
    });
    is_left_alone(&mut registry);
}

#[test]
fn a_driver_without_a_web_server_is_left_alone_at_last() {
    let fake = FakeProc::new();
    let words = ["java", "org.apache.spark.deploy.SparkSubmit", "--master", "k8s://https://m", "job.py"];
    let pod =
        ["SPARK_APPLICATION_ID=spark-0123456789abcdef0123456789abcdef", "KUBERNETES_SERVICE_HOST=10.0.0.1"];
    fake.process(7, 1, "java", 100).words(&words).environ(&pod).link("exe", "/jdk/bin/java");
    let limits = Limits { ask_interval: Duration::ZERO, ..Limits::default() };
    let mut registry = Registry::new(RegistryConfig { limits, ..config(&fake) });
    registry.scan();
    // Nobody listens, which may be for it starts: that long it is asked beside.
    let most = u64::from(super::super::asks::MAX_NAME_ASKS + super::super::turn::STARTS);
    tick_until(&mut registry, |r| r.counters().asked >= most);
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(20));
        registry.tick();
    }
    assert_eq!(registry.counters().asked, most);
}

#[test]
fn a_driver_is_asked_for_what_nothing_surer_tells() {
    let spark = ["java", "org.apache.spark.deploy.SparkSubmit", "--master"];
    let words = |master| [&spark[..], &[master, "job.py"]].concat();
    let hour = Duration::from_secs(3600);
    let older_than_this_machine = Duration::from_secs(100 * 365 * 86_400);
    let pod =
        ["SPARK_APPLICATION_ID=spark-0123456789abcdef0123456789abcdef", "KUBERNETES_SERVICE_HOST=10.0.0.1"];
    for (master, environ, patience, asked) in [
        ("local[2]", &[][..], hour, 1),
        ("spark://m:7077", &[], Duration::ZERO, 1),
        ("spark://m:7077", &[], hour, 0),
        ("k8s://https://m", &pod, older_than_this_machine, 0),
        ("k8s://https://m", &pod, Duration::ZERO, 1),
    ] {
        let fake = FakeProc::new();
        fake.process(7, 1, "java", 100).words(&words(master)).environ(environ).link("exe", "/jdk/bin/java");
        let limits = Limits { driver_patience: patience, ..Limits::default() };
        let mut registry = Registry::new(RegistryConfig { limits, ..config(&fake) });
        registry.scan();
        registry.tick();
        assert_eq!(registry.get(7).role, Role::Driver, "{master}");
        assert_eq!(registry.counters().asked, asked, "{master} {patience:?}");
        let mut silent = Registry::new(RegistryConfig { limits, ask_drivers: false, ..config(&fake) });
        silent.scan();
        silent.tick();
        assert_eq!(silent.counters().asked, 0, "{master}");
    }
}

#[test]
fn a_worker_is_asked_only_for_names_of_its_executors() {
    let fake = FakeProc::new();
    let worker = fake.recorded("standalone-worker");
    let mut registry = Registry::new(config(&fake));
    registry.scan();
    registry.tick();
    assert_eq!(registry.counters().asked, 0, "it has none");
    let word = ["java", "org.apache.spark.executor.CoarseGrainedExecutorBackend", "--app-id", "app-1"];
    fake.process(7, worker, "java", 900).words(&word).link("exe", "/jdk/bin/java");
    registry.get(7);
    registry.tick();
    assert_eq!(registry.counters().asked, 1);
}

#[test]
fn a_worker_is_asked_until_it_tells_what_an_application_calls_itself() {
    let fake = FakeProc::new();
    let (worker, driver) = (fake.recorded("standalone-worker"), fake.recorded("standalone-driver"));
    let word = ["java", "org.apache.spark.executor.CoarseGrainedExecutorBackend", "--app-id", "app-1"];
    let executor = fake.process(7, worker, "java", 900).words(&word).link("exe", "/jdk/bin/java");
    executor.file("status", b"Uid:\t1000\t1000\t1000\t1000\n");
    let limits = Limits { ask_interval: Duration::ZERO, ..Limits::default() };
    let mut registry = Registry::new(RegistryConfig { limits, ..config(&fake) });
    registry.scan();
    // The driver is found before the Worker has answered: its words lend the application a name.
    let key = registry.known(driver).unwrap();
    registry.entries.get_mut(&key).unwrap().told.get_or_insert_default().by_url = Some("app-1".into());
    registry.dirty = true;
    tick_until(&mut registry, |r| label(r, 7, LabelKey::AppName) == "job.py");
    let before = registry.counters().asked;
    tick_until(&mut registry, |r| r.counters().asked > before + 1);
    let app = RestApp { id: "app-1".into(), name: "sales of the day".into(), user: "ana".into() };
    let worker = registry.known(worker).unwrap();
    registry.take_rest(worker, Server::Worker, Some(&[app]));
    tick_until(&mut registry, |r| {
        [7, driver].iter().all(|pid| label(r, *pid, LabelKey::AppName) == "sales of the day")
    });
    is_left_alone(&mut registry);
}

/// Forty drivers of a stranger's, each of which may keep the thread that asks for seconds, and one of somebody else's.
#[test]
fn a_strangers_drivers_do_not_keep_anothers_from_being_asked() {
    let fake = FakeProc::new();
    let words = ["java", "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "job.py"];
    for pid in 10..51 {
        let uid = if pid == 50 { 1000 } else { 65534 };
        let process = fake.process(pid, 1, "java", 100).words(&words).link("exe", "/jdk/bin/java");
        process.file("status", format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n").as_bytes());
    }
    let mut registry = Registry::new(config(&fake));
    registry.scan();
    registry.tick();
    let counters = registry.counters();
    assert_eq!((counters.asked, counters.asks_refused), (5, 36), "four of his, and the other's");
    // The others' turn comes with the answers.
    tick_until(&mut registry, |r| r.counters().asked >= 41);
}

/// Who told where the driver is may be forgotten when the answer comes.
#[test]
fn an_answer_to_one_who_is_gone_is_an_answer() {
    let fake = FakeProc::new();
    let executor = fake.recorded("local-cluster-executor");
    let mut registry = Registry::new(config(&fake));
    registry.scan();
    let key = registry.known(executor).unwrap();
    registry.ask();
    assert_eq!(registry.counters().asked, 1);
    registry.forget(key);
    registry.take_driver("app-20261121183115-0000".to_owned(), key, None);
    assert_eq!(registry.waiting().values().sum::<usize>(), 0);
}

#[test]
fn what_was_told_outlives_the_teller() {
    let fake = FakeProc::new();
    let executor = fake.recorded("local-cluster-executor");
    fake.recorded("local-cluster-driver");
    fake.process(900, executor, "python3", 5).words(&["python3", "-m", "pyspark.daemon"]);
    let limits = Limits { exit_grace: Duration::ZERO, ..Limits::default() };
    let mut registry = Registry::new(RegistryConfig { limits, ask_drivers: false, ..config(&fake) });
    registry.scan();
    let before = registry.get(900).labels.clone();
    fake.remove(executor);
    registry.on_task(&task(executor, TaskEvent::Exit));
    registry.tick();
    registry.dirty = true;
    assert!(registry.tick().is_empty());
    assert_eq!(registry.get(900).labels, before);
}
