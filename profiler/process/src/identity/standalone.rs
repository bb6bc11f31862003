//! Standalone: a Master, Workers, and executors that Workers start.

use super::{Identity, bounded, plain_name};
use crate::facts::ProcessFacts;
use crate::java::JavaCommand;
use emberscope_model::{Deploy, Role};

/// An executor with a Worker's URL. Without one, another scheduler uses the same main class.
pub(super) fn executor(identity: &mut Identity, java: &JavaCommand<'_>) {
    if java.arg("--worker-url").is_some() {
        identity.deploy = Deploy::Standalone;
    }
}

/// A Master or a Worker.
pub(super) fn daemon(identity: &mut Identity, java: &JavaCommand<'_>, role: Role) {
    identity.role = role;
    identity.deploy = Deploy::Standalone;
    identity.ui_port = java.arg("--webui-port").and_then(|p| p.parse().ok()).filter(|p| *p != 0);
}

/// A driver that a Worker started (cluster mode). Its directory and log URL name a driver id, which is
/// not the application's.
pub(super) fn driver(identity: &mut Identity, java: &JavaCommand<'_>) {
    identity.role = Role::Driver;
    identity.deploy = Deploy::Standalone;
    identity.app_name = java.property("spark.app.name").map(plain_name);
    identity.ui_port = java.property("spark.ui.port").and_then(|p| p.parse().ok()).filter(|p| *p != 0);
}

/// What an executor starts inherits its log URLs (ExecutorRunner.scala), and these name app and executor.
pub(super) fn by_environment(identity: &mut Identity, facts: &ProcessFacts) {
    if identity.app.is_some() {
        return;
    }
    if let Some(app) = facts.environ.log_url_parameter("appId") {
        identity.app = Some(bounded(app));
        identity.executor = facts.environ.log_url_parameter("executorId").map(bounded);
        identity.deploy = Deploy::Standalone;
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{identity_of, recorded};
    use crate::identity::{PythonSide, identify, with_parent};
    use emberscope_model::{Deploy, Role};

    #[test]
    fn recorded_master_and_worker() {
        let master = identify(&recorded("standalone-master"));
        assert_eq!(
            (master.role, master.deploy, master.ui_port),
            (Role::Master, Deploy::Standalone, Some(18080))
        );
        let worker = identify(&recorded("standalone-worker"));
        assert_eq!(
            (worker.role, worker.deploy, worker.ui_port),
            (Role::Worker, Deploy::Standalone, Some(18081))
        );
    }

    #[test]
    fn a_recorded_executor_stays_standalone_below_its_worker() {
        let worker = identify(&recorded("standalone-worker"));
        let executor = with_parent(&identify(&recorded("standalone-executor")), Some(&worker));
        assert_eq!((executor.role, executor.deploy), (Role::Executor, Deploy::Standalone));
        assert_eq!(executor.app.as_deref(), Some("app-20261121183613-0000"));
        assert_eq!((executor.executor.as_deref(), executor.cores), (Some("0"), 2));
        assert_eq!(executor.spark_user.as_deref(), Some("ana"));
    }

    #[test]
    fn recorded_python_workers_name_app_and_executor_by_environment_alone() {
        let daemon = identify(&recorded("standalone-python-daemon"));
        assert_eq!((daemon.role, daemon.python), (Role::Python, Some(PythonSide::Daemon)));
        assert_eq!(daemon.app.as_deref(), Some("app-20261121183613-0000"));
        assert_eq!(daemon.executor.as_deref(), Some("0"));
    }

    #[test]
    fn a_driver_in_cluster_mode() {
        let identity = identity_of(
            &[
                "java",
                "-cp",
                "x",
                "-Dspark.master=spark://h:7077",
                "-Dspark.app.name=nightly",
                "org.apache.spark.deploy.worker.DriverWrapper",
                "spark://Worker@h:40001",
                "/j.jar",
                "com.example.Main",
            ],
            &[
                "SPARK_DRIVER_LOG_URL_STDOUT=http://h:8081/logPage/?driverId=driver-20261121163009-0000&logType=stdout",
            ],
        );
        assert_eq!((identity.role, identity.deploy), (Role::Driver, Deploy::Standalone));
        assert_eq!((identity.app, identity.app_name.as_deref()), (None, Some("nightly")));
    }
}
