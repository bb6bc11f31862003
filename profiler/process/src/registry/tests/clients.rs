//! Clients of a Spark Connect server: whose they are while they are connected, and who is none.

use super::asks::tick_until;
use super::*;

const SERVER: Pid = 7;
const OTHER_SERVER: Pid = 8;
const CLIENT: Pid = 20;
const STRANGER: Pid = 21;

/// The sockets of the network: a server's on 15002 (3A9A) and its connection to the client, both ends.
#[cfg(target_endian = "little")]
const TABLE: &str = "head
 0: 0100007F:3A9A 00000000:0000 0A 0:0 0:0 0 1000 0 50 1
 1: 0100007F:3A9A 0100007F:C0DE 01 0:0 0:0 0 1000 0 51 1
 2: 0100007F:C0DE 0100007F:3A9A 01 0:0 0:0 0 1000 0 61 1
";

/// Two servers of user 1000, each with an application; a Python of that user, which started `age` ago, and a stranger's.
/// At port 0 nobody is looked for: the test says who is connected.
fn servers_and_pythons(fake: &FakeProc, age: Duration, port: u16) -> Registry {
    let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec.unsigned_abs();
    let hz = rustix::param::clock_ticks_per_second();
    let start = (up.saturating_sub(age.as_secs()) * hz).max(1);
    let class = "org.apache.spark.sql.connect.service.SparkConnectServer";
    let words = [
        "java",
        "org.apache.spark.deploy.SparkSubmit",
        "--master",
        "spark://m:7077",
        "--class",
        class,
        "--conf",
    ];
    let port = format!("spark.connect.grpc.binding.port={port}");
    let status = |uid: u32| format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
    for pid in [SERVER, OTHER_SERVER] {
        let server =
            fake.process(pid, 1, "java", 1).words(&[&words[..], &[&port, "spark-internal"]].concat());
        server.link("exe", "/jdk/bin/java").file("status", status(1000).as_bytes());
    }
    for (pid, uid) in [(CLIENT, 1000), (STRANGER, 65534)] {
        let python = fake.process(pid, 1, "python3", start).words(&["python3", "report.py"]);
        python.link("exe", "/usr/bin/python3.11").file("status", status(uid).as_bytes());
    }
    let limits = Limits { driver_patience: Duration::from_secs(3600), ..Limits::default() };
    let mut registry = Registry::new(RegistryConfig { limits, ..config(fake) });
    registry.scan();
    for (pid, app) in [(SERVER, "app-1"), (OTHER_SERVER, "app-2")] {
        let key = registry.known(pid).unwrap();
        registry.entries.get_mut(&key).unwrap().told.get_or_insert_default().by_url = Some(app.into());
    }
    registry.dirty = true;
    registry
}

/// What becomes of the client's labels.
fn connect(registry: &mut Registry, server: Pid, clients: &[Pid]) -> Vec<Relabel> {
    let clients: Vec<ProcessKey> = clients.iter().map(|pid| registry.known(*pid).unwrap()).collect();
    registry.take_clients(registry.known(server).unwrap(), Some(&clients));
    registry.tick().into_iter().filter(|relabel| relabel.key.pid == CLIENT).collect()
}

fn app_and_role(registry: &mut Registry, pid: Pid) -> (String, String) {
    (label(registry, pid, LabelKey::App), label(registry, pid, LabelKey::Role))
}

fn is(app: &str, role: Role) -> (String, String) {
    (app.to_owned(), role.slug().to_owned())
}

#[test]
#[cfg(target_endian = "little")]
fn a_python_that_is_connected_is_on_the_drivers_side() {
    let fake = FakeProc::new();
    let mut registry = servers_and_pythons(&fake, Duration::ZERO, 15002);
    for (pid, links) in [(SERVER, &[("fd/9", 50), ("fd/10", 51)][..]), (CLIENT, &[("fd/3", 61)])] {
        let dir = fake.path().join(pid.to_string());
        for name in ["net", "fd"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        std::fs::write(dir.join("net/tcp"), TABLE).unwrap();
        for (name, inode) in links {
            std::os::unix::fs::symlink(format!("socket:[{inode}]"), dir.join(name)).unwrap();
        }
    }
    assert_eq!(app_and_role(&mut registry, CLIENT), is("", Role::Other));
    let relabels = tick_until(&mut registry, |r| app_and_role(r, CLIENT) == is("app-1", Role::Driver));
    let of_client = relabels.iter().find(|r| r.key.pid == CLIENT).unwrap();
    assert_eq!(of_client.to.get(LabelKey::App), "app-1", "and so are its first seconds");
    assert_eq!(registry.get(CLIENT).python, Some(PythonSide::Driver));
    assert_eq!(app_and_role(&mut registry, STRANGER), is("", Role::Other));
}

#[test]
fn one_that_leaves_is_itself_again_and_what_it_did_stays_the_applications() {
    let fake = FakeProc::new();
    let mut registry = servers_and_pythons(&fake, Duration::ZERO, 0);
    connect(&mut registry, SERVER, &[CLIENT]);
    assert_eq!(app_and_role(&mut registry, CLIENT), is("app-1", Role::Driver));
    connect(&mut registry, OTHER_SERVER, &[CLIENT]);
    assert_eq!(app_and_role(&mut registry, CLIENT).0, "app-1", "whom it was connected to first");
    assert!(connect(&mut registry, SERVER, &[]).is_empty());
    assert_eq!(app_and_role(&mut registry, CLIENT), is("", Role::Other));
    assert!(connect(&mut registry, OTHER_SERVER, &[CLIENT]).is_empty(), "between the two it was its own");
    assert_eq!(app_and_role(&mut registry, CLIENT).0, "app-2");
    registry.take_clients(registry.known(OTHER_SERVER).unwrap(), None);
    registry.tick();
    assert_eq!(app_and_role(&mut registry, CLIENT).0, "app-2", "nobody looked");
}

#[test]
fn what_an_old_process_did_before_it_connected_is_its_own() {
    let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec.unsigned_abs();
    let fake = FakeProc::new();
    let mut registry = servers_and_pythons(&fake, Duration::from_secs(up), 0);
    assert!(connect(&mut registry, SERVER, &[CLIENT]).is_empty(), "the machine is up for {up} s");
    assert_eq!(app_and_role(&mut registry, CLIENT), is("app-1", Role::Driver), "from now on");
}

/// Whoever opens a connection would put his stacks into another's graph.
#[test]
fn another_users_process_is_no_candidate_unless_the_servers_user_acts_for_others() {
    for (cluster_users, candidates) in
        [(vec![], vec![CLIENT]), (vec!["ana".to_owned()], vec![CLIENT, STRANGER])]
    {
        let fake = FakeProc::new();
        let mut registry = servers_and_pythons(&fake, Duration::ZERO, 0);
        registry.config.cluster_users = cluster_users;
        registry.settle_all();
        let server = &registry.entries[&registry.known(SERVER).unwrap()];
        let asked = registry.may_be_clients(server);
        assert_eq!(asked.iter().map(|c| c.key.pid).collect::<Vec<_>>(), candidates);
    }
}
