//! What a process takes over from its parent: applications of Python workers and of programs that
//! executors and drivers start. Pure; the registry brings the parents.

use super::spark::deploy_of_app;
use super::{Identity, PythonSide, Runtime, local, local_cluster};
use emberscope_model::{Deploy, Role};

/// The identity of a process below a parent whose own identity is settled.
pub fn with_parent(own: &Identity, parent: Option<&Identity>) -> Identity {
    let mut identity = own.clone();
    let Some(parent) = parent else { return identity };
    if own.is_fork_of(parent) {
        return fork_of(own, parent);
    }
    match identity.role {
        Role::Executor => local_cluster::refine(&mut identity, parent),
        // Nothing else names it so far: the script that started it does.
        Role::Driver if identity.python_parent && parent.runtime == Runtime::Python => {
            let script = Some(&parent.program).filter(|p| p.ends_with(".py"));
            identity.app_name = identity.app_name.or_else(|| script.cloned());
        }
        // pyspark reads the same from its parent, be it the daemon, an executor or a local driver.
        Role::Python => {
            identity.python = match (identity.python, parent.python) {
                (Some(PythonSide::Daemon), Some(PythonSide::Daemon)) => Some(PythonSide::Worker),
                (own, Some(PythonSide::Worker | PythonSide::Helper)) if own != Some(PythonSide::Driver) => {
                    Some(PythonSide::Helper)
                }
                (own, parent) => own.or(parent),
            };
            if has_children_of_its_app(parent) {
                belong(&mut identity, parent);
            }
        }
        Role::Other if has_children_of_its_app(parent) => {
            belong(&mut identity, parent);
            // A daemon module of the user's own, and its forks.
            let side = match parent.python {
                None if parent.role == Role::Executor => Some(PythonSide::Daemon),
                Some(PythonSide::Daemon) => Some(PythonSide::Worker),
                _ => None,
            };
            if identity.runtime == Runtime::Python && side.is_some() {
                (identity.role, identity.python) = (Role::Python, side);
            }
        }
        _ => {}
    }
    identity
}

/// A JVM's fork on its way to an exec (ProcessBuilder's jspawnhelper, or vfork): already what its parent starts, and no
/// driver or executor of its own.
fn fork_of(own: &Identity, parent: &Identity) -> Identity {
    let mut identity = Identity {
        runtime: own.runtime,
        forked: own.forked,
        pod: own.pod,
        container: own.cgroup_container.clone(),
        cgroup_container: own.cgroup_container.clone(),
        ..Identity::other(&own.program, &own.user)
    };
    if has_children_of_its_app(parent) {
        belong(&mut identity, parent);
    }
    identity
}

/// Children of these work for the same application.
fn has_children_of_its_app(parent: &Identity) -> bool {
    match parent.role {
        Role::Executor | Role::Driver | Role::AppMaster => true,
        Role::Python => true,
        // `sh -c` between an executor and what it pipes to. Its own application is certain.
        Role::Other => parent.app.is_some(),
        _ => false,
    }
}

/// Takes over application, executor and user.
fn belong(identity: &mut Identity, parent: &Identity) {
    let same_app = parent.app.is_none() || identity.app.is_none() || identity.app == parent.app;
    if parent.app.is_some() {
        identity.app.clone_from(&parent.app);
    }
    identity.app_name = parent.app_name.clone().or(identity.app_name.take());
    identity.name_is_sure = parent.name_is_sure;
    identity.run = parent.run.clone().or(identity.run.take());
    if parent.deploy != Deploy::Unknown {
        identity.deploy = parent.deploy;
    }
    // The user's program is on the driver's side and runs no tasks, in local mode too.
    if identity.python == Some(PythonSide::Driver) {
        identity.executor = None;
    } else if parent.executor.is_some() || !same_app {
        identity.executor.clone_from(&parent.executor);
    }
    identity.container = identity.container.take().or_else(|| parent.container.clone());
    identity.spark_user = parent.spark_user.clone().or(identity.spark_user.take());
}

/// The Python process that started a driver's JVM is the user's program.
pub fn adopt_driver(python: &Identity, driver: &Identity) -> Identity {
    let mut identity = python.clone();
    identity.role = Role::Python;
    identity.python = Some(PythonSide::Driver);
    belong(&mut identity, driver);
    identity
}

impl Identity {
    /// Whether the process is a fork of the parent's JVM that has run no program yet. HotSpot runs no Java in one.
    pub fn is_fork_of(&self, parent: &Self) -> bool {
        let java = [self, parent].iter().all(|identity| identity.runtime == Runtime::Java);
        self.forked && java && self.program == parent.program
    }

    /// The application of a driver became known.
    pub fn set_app(&mut self, app: &str) {
        self.app = Some(super::bounded(app));
        if self.deploy == Deploy::Unknown {
            self.deploy = deploy_of_app(app);
            if self.deploy == Deploy::Local {
                local::driver(self);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{identity_of, recorded};
    use crate::identity::identify;

    fn local_driver() -> Identity {
        let mut driver = identify(&recorded("local-driver"));
        driver.set_app("local-1795285826503");
        driver.app_name = Some("daily sales".into());
        driver
    }

    #[test]
    fn workers_of_a_local_driver_are_of_its_executor_and_its_program_is_not() {
        let daemon =
            with_parent(&identity_of(&["python3", "-m", "pyspark.daemon"], &[]), Some(&local_driver()));
        let worker = with_parent(&identity_of(&["python3", "-m", "pyspark.daemon"], &[]), Some(&daemon));
        assert_eq!(
            (daemon.python, worker.python),
            (Some(PythonSide::Daemon), Some(PythonSide::Worker)),
            "the same words"
        );
        for python in [&daemon, &worker] {
            assert_eq!(python.app.as_deref(), Some("local-1795285826503"));
            assert_eq!((python.executor.as_deref(), python.deploy), (Some("driver"), Deploy::Local));
            assert_eq!(python.app_name.as_deref(), Some("daily sales"));
        }
        let program = with_parent(&identify(&recorded("local-python-driver")), Some(&local_driver()));
        assert_eq!((program.app.as_deref(), program.executor), (Some("local-1795285826503"), None));
    }

    #[test]
    fn a_python_that_started_the_jvm_is_adopted() {
        let mut jvm = identify(&recorded("python-started-driver"));
        jvm.set_app("local-1");
        assert_eq!((jvm.deploy, jvm.executor.as_deref()), (Deploy::Local, Some("driver")), "the id shows it");
        let python = adopt_driver(&identify(&recorded("python-that-starts")), &jvm);
        assert_eq!((python.role, python.python), (Role::Python, Some(PythonSide::Driver)));
        assert_eq!((python.app.as_deref(), python.executor), (Some("local-1"), None));
        assert_eq!(python.program, "job.py");
    }

    #[test]
    fn what_an_executor_pipes_to_is_of_its_app() {
        let executor = identify(&recorded("standalone-executor"));
        let shell = with_parent(&identity_of(&["/bin/sh", "-c", "sort"], &[]), Some(&executor));
        let sort = with_parent(&identity_of(&["sort"], &[]), Some(&shell));
        assert_eq!((sort.role, sort.app.as_deref()), (Role::Other, Some("app-20261121183613-0000")));
        assert_eq!(sort.executor.as_deref(), Some("0"));
        let of_a_daemon = |words: &[&str]| {
            let own = identity_of(words, &[]);
            let daemon = with_parent(&own, Some(&executor));
            let worker = with_parent(&own, Some(&daemon));
            let pool = with_parent(&own, Some(&worker));
            let sides = [daemon, worker, pool].map(|identity| (identity.role, identity.python));
            sides.map(|(role, side)| (role == Role::Python).then_some(side).flatten())
        };
        let [daemon, worker, helper] = [PythonSide::Daemon, PythonSide::Worker, PythonSide::Helper].map(Some);
        assert_eq!(of_a_daemon(&["python3", "-m", "pyspark.daemon"]), [daemon, worker, helper]);
        assert_eq!(of_a_daemon(&["python3", "-m", "corp.daemon"]), [daemon, worker, None]);
        assert_eq!(of_a_daemon(&["python3", "-m", "pyspark.worker"])[0], worker, "without a daemon");
    }

    #[test]
    fn drivers_and_daemons_take_no_application_from_a_parent() {
        let driver = local_driver();
        let notebook_server = identity_of(&["python3", "-m", "jupyter"], &["PYSPARK_GATEWAY_PORT=1"]);
        let python = with_parent(&notebook_server, Some(&driver));
        assert!(python.app.is_some());
        let jvm = with_parent(&identify(&recorded("python-started-driver")), Some(&python));
        assert_eq!(jvm.app, None, "a session of its own");
        let mut nameless = identify(&recorded("python-started-driver"));
        nameless.app_name = None;
        let script = identify(&recorded("python-that-starts"));
        assert_eq!(with_parent(&nameless, Some(&script)).app_name.as_deref(), Some("job.py"));
        assert_eq!(with_parent(&nameless, Some(&notebook_server)).app_name, None, "a module is no script");
        let executor = with_parent(&identify(&recorded("local-cluster-executor")), Some(&driver));
        assert_eq!(executor.app.as_deref(), Some("app-20261121183115-0000"));
        let worker = identify(&recorded("standalone-worker"));
        assert_eq!(with_parent(&identity_of(&["sh"], &[]), Some(&worker)).app, None);
    }
}
