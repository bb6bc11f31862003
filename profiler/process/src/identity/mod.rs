//! Who a process is to Spark: a pure function from [`ProcessFacts`] to [`Identity`].
//!
//! A file per deployment holds what only that deployment does; here is what they share and the order in
//! which they are asked. What the process itself does not tell (a Python worker's application, whether
//! an executor's parent is a Worker or a driver) comes from its parent's identity, in `family`; what no
//! command line tells (a driver's application id) from `discovery`.

mod connect;
mod family;
mod kubernetes;
mod local;
mod local_cluster;
mod python;
mod run;
#[cfg(test)]
mod secrets;
mod spark;
mod standalone;
mod yarn;

pub use family::{adopt_driver, with_parent};

use super::cgroup;
use super::environ::EnvName;
use super::facts::ProcessFacts;
use super::java::JavaCommand;
use super::text::{base_name, cut};
use emberscope_model::{Deploy, Role, RuntimeId, scrub};

/// Longest application id, executor id, name or host that is kept, in bytes.
pub const MAX_VALUE: usize = 256;

/// What kind of program a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// A JVM.
    Java,
    /// CPython.
    Python,
    /// Anything else.
    #[default]
    Other,
}

/// Which side of PySpark a Python process is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonSide {
    /// The user's program, which talks to a driver.
    Driver,
    /// The process that forks workers (`pyspark.daemon`).
    Daemon,
    /// A worker: runs Python functions of one task at a time.
    Worker,
    /// A process that a worker started, or its forks.
    Helper,
}

/// Where a driver listens, as one of its executors was told.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriverAddress {
    /// Host name or address, without the brackets of IPv6.
    pub host: String,
    /// TCP port of the driver's RPC endpoint.
    pub port: u16,
}

impl DriverAddress {
    /// From `spark://CoarseGrainedScheduler@HOST:PORT` or `HOST:PORT`; HOST may be `[IPv6]`.
    pub fn parse(url: &str) -> Option<Self> {
        let authority = url.rsplit(['@', '/']).next()?;
        let (host, port) = authority.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().ok().filter(|p| *p != 0)?;
        (!host.is_empty()).then(|| Self { host: cut(host, MAX_VALUE).to_owned(), port })
    }
}

/// Who a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What the process is to Spark.
    pub role: Role,
    /// How Spark was deployed.
    pub deploy: Deploy,
    /// Application id: `app-20261122081530-0007`, `application_1795334400000_0007`.
    pub app: Option<String>,
    /// Application name; a provisional one where only the command line tells (see `name_is_sure`).
    pub app_name: Option<String>,
    /// The name was told by the application itself and not by the words that started it.
    pub name_is_sure: bool,
    /// The job that the application is a run of, where who started it says so (label `app_run`).
    pub run: Option<String>,
    /// Executor id; `driver` in local mode.
    pub executor: Option<String>,
    /// Spark's user, where the process or its driver names one: a claim, never the label `user`.
    pub spark_user: Option<String>,
    /// Name of the process's effective user.
    pub user: String,
    /// Host that the executor says it is on.
    pub host: String,
    /// Cores of the executor; 0 when it does not say.
    pub cores: u32,
    /// Container id, of the cgroup or of YARN.
    pub container: Option<String>,
    /// Container id of the cgroup alone: the kernel's word, and not the process's.
    pub cgroup_container: Option<String>,
    /// The application is what the kernel's cgroup says (YARN's container), or claimed from within a pod.
    pub by_kernel: bool,
    /// The process runs in a pod, by the kernel's cgroup.
    pub pod: bool,
    /// Main class without package, or program: for people.
    pub program: String,
    /// What kind of program it is.
    pub runtime: Runtime,
    /// The side of PySpark that it is on, for Python.
    pub python: Option<PythonSide>,
    /// Executors, and the ExecutorLauncher: where their driver listens.
    pub driver_at: Option<DriverAddress>,
    /// A driver's or Worker's own UI port, when its command line tells.
    pub ui_port: Option<u16>,
    /// A driver's that serves Spark Connect: the port that its clients connect to.
    pub connect_port: Option<u16>,
    /// The process has run no program since it was forked.
    pub forked: bool,
    /// A driver JVM whose user program is the Python process that started it.
    pub python_parent: bool,
}

impl Identity {
    /// An identity of which nothing is known but the program.
    pub fn other(program: &str, user: &str) -> Self {
        Self {
            role: Role::Other,
            deploy: Deploy::Unknown,
            app: None,
            app_name: None,
            name_is_sure: false,
            run: None,
            executor: None,
            spark_user: None,
            user: user.to_owned(),
            host: String::new(),
            cores: 0,
            container: None,
            cgroup_container: None,
            by_kernel: false,
            pod: false,
            program: plain_name(program),
            runtime: Runtime::Other,
            python: None,
            driver_at: None,
            ui_port: None,
            connect_port: None,
            forked: false,
            python_parent: false,
        }
    }

    /// Whether the process belongs to Spark or to an application of it.
    pub fn is_spark(&self) -> bool {
        self.role != Role::Other || self.app.is_some()
    }

    /// Takes the application from a process that was not believed: it stays a program of its user's. A driver
    /// stays one, of an application that is not known.
    pub fn disown(&mut self) {
        (self.app, self.app_name, self.name_is_sure, self.executor) = (None, None, false, None);
        self.run = None;
        (self.driver_at, self.cores, self.by_kernel) = (None, 0, false);
        self.host.clear();
        self.container.clone_from(&self.cgroup_container);
        if self.role != Role::Driver {
            (self.role, self.deploy, self.python) = (Role::Other, Deploy::Unknown, None);
        }
    }

    /// Whether the process runs in a driver's JVM, and so is asked for the application's id.
    pub fn is_driver_jvm(&self) -> bool {
        self.role == Role::Driver && self.runtime == Runtime::Java
    }
}

/// The identity that a process has by itself.
pub fn identify(facts: &ProcessFacts) -> Identity {
    let mut identity = Identity::other(program(facts), &facts.user);
    identity.runtime = runtime(facts);
    identity.forked = facts.forked;
    let cgroup = cgroup::parse(&facts.cgroup);
    let in_pod = cgroup.kubernetes || facts.environ.has(EnvName::KubernetesHost);
    identity.container.clone_from(&cgroup.container);
    identity.cgroup_container = cgroup.container;
    identity.pod = cgroup.kubernetes;
    identity.spark_user = facts.environ.get(EnvName::SparkUser).map(bounded);
    match identity.runtime {
        Runtime::Java => {
            if let Some(java) = JavaCommand::parse(&facts.words) {
                identity.program = plain_name(java.short_main());
                spark::java(&mut identity, &java, facts, in_pod);
                identity.run = run::told(&java, facts, identity.role);
            }
        }
        Runtime::Python => python::identify(&mut identity, facts),
        Runtime::Other => {}
    }
    if matches!(identity.role, Role::Other | Role::Python) {
        // What an executor starts, it starts with its own environment.
        yarn::by_environment(&mut identity, facts);
        kubernetes::by_environment(&mut identity, facts);
        standalone::by_environment(&mut identity, facts);
    }
    // An id of Kubernetes is 128 random bits: a pod that has one was given it.
    identity.by_kernel |= cgroup.kubernetes
        && identity.app.as_deref().is_some_and(|app| spark::deploy_of_app(app) == Deploy::Kubernetes);
    identity
}

fn bounded(text: &str) -> String {
    cut(text, MAX_VALUE).to_owned()
}

/// A name that somebody chose, without secrets, as far as [`MAX_VALUE`] bytes reach.
pub fn plain_name(text: &str) -> String {
    cut(&scrub(text), MAX_VALUE).to_owned()
}

/// The program's name: the first word's last part, else comm (kernel threads, vanished processes).
fn program(facts: &ProcessFacts) -> &str {
    let first = facts.words.first().map(|w| base_name(w)).filter(|w| !w.is_empty());
    first.unwrap_or(&facts.comm)
}

fn runtime(facts: &ProcessFacts) -> Runtime {
    let name = program(facts);
    let exe = base_name(&facts.exe);
    if exe == "java" || name == "java" && exe.is_empty() {
        Runtime::Java
    } else if is_python(exe) || exe.is_empty() && is_python(name) {
        Runtime::Python
    } else if facts.runtime == RuntimeId::HOTSPOT {
        // A launcher of its own (jsvc, a JNI program).
        Runtime::Java
    } else {
        Runtime::Other
    }
}

/// `python`, `python3`, `python3.11`, `pypy3`; not `python3-config`.
fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|v| v.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_addresses() {
        let at = |host: &str, port| Some(DriverAddress { host: host.into(), port });
        assert_eq!(
            DriverAddress::parse("spark://CoarseGrainedScheduler@localhost:43695"),
            at("localhost", 43695)
        );
        assert_eq!(
            DriverAddress::parse("spark://CoarseGrainedScheduler@[fd00::1]:7078"),
            at("fd00::1", 7078)
        );
        assert_eq!(DriverAddress::parse("edge-1:41000"), at("edge-1", 41000));
        for bad in ["", "spark://", "host", "host:", ":1", "host:0", "host:99999", "host:x", "spark://a@:7"] {
            assert_eq!(DriverAddress::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn pythons() {
        for name in ["python", "python3", "python3.11", "pypy3"] {
            assert!(is_python(name), "{name}");
        }
        for name in ["python3-config", "ipython", "", "py"] {
            assert!(!is_python(name), "{name}");
        }
    }
}
