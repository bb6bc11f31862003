//! Labels of a process from its identity.

use super::identity::{Identity, PythonSide};
use emberscope_model::{Deploy, LabelKey, LabelSet, LabelSetBuilder, Pid, Role, RunNames};

/// The application of a driver that is not known yet.
pub const UNKNOWN_APP: &str = "unknown";
/// comm of a process that was gone before it could be read.
pub const UNKNOWN_COMM: &str = "unknown";
/// comm of a process that was not read because too many of its user's were.
pub const UNREAD_COMM: &str = "[process not read: over budget]";

/// The labels of a process on `node`; `runs` tells what an application is a run of, where nobody says it.
pub fn build(node: &str, runs: &RunNames, identity: &Identity, comm: &str, pid: Pid) -> LabelSet {
    let driver_side = identity.role == Role::Driver || identity.python == Some(PythonSide::Driver);
    let known = identity.app.as_deref().unwrap_or_default();
    let app = if known.is_empty() && driver_side { UNKNOWN_APP } else { known };
    let name = identity.app_name.as_deref().unwrap_or_default();
    let service = [name, known, comm].into_iter().find(|t| !t.is_empty()).unwrap_or(UNKNOWN_COMM);
    // Most processes are of no application: the expression is not for them.
    let run = if app.is_empty() { "" } else { identity.run.as_deref().unwrap_or_else(|| runs.of(name)) };
    let deploy =
        if identity.deploy == Deploy::Unknown && !identity.is_spark() { "" } else { identity.deploy.slug() };
    LabelSetBuilder::new()
        .set(LabelKey::ServiceName, service)
        .set(LabelKey::Node, node)
        .set(LabelKey::Deploy, deploy)
        .set(LabelKey::App, app)
        .set(LabelKey::AppName, name)
        .set(LabelKey::AppRun, run)
        .set(LabelKey::User, identity.user.as_str())
        .set(LabelKey::SparkUser, identity.spark_user.as_deref().unwrap_or_default())
        .set(LabelKey::Role, role(identity).slug())
        .set(LabelKey::Executor, identity.executor.as_deref().unwrap_or_default())
        .set(LabelKey::Container, identity.container.as_deref().unwrap_or_default())
        .set(LabelKey::Process, comm)
        .set(LabelKey::Pid, pid.to_string())
        .build()
}

/// A PySpark driver is two processes, the user's Python program and the JVM.
fn role(identity: &Identity) -> Role {
    if identity.python == Some(PythonSide::Driver) { Role::Driver } else { identity.role }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{identity_of, recorded};
    use crate::identity::identify;

    #[test]
    fn an_executors_labels() {
        let labels =
            build("n1", &RunNames::default(), &identify(&recorded("standalone-executor")), "java", 42);
        let all: Vec<(&str, &str)> = labels.iter().map(|(k, v)| (k.name(), &**v)).collect();
        assert_eq!(
            all,
            [
                ("service_name", "app-20261121183613-0000"),
                ("node", "n1"),
                ("deploy", "standalone"),
                ("app", "app-20261121183613-0000"),
                ("user", "ana"),
                ("spark_user", "ana"),
                ("role", "executor"),
                ("executor", "0"),
                ("process", "java"),
                ("pid", "42"),
            ]
        );
    }

    #[test]
    fn a_driver_is_of_the_unknown_app_until_it_is_known() {
        let mut driver = identify(&recorded("local-driver"));
        assert_eq!(build("n", &RunNames::default(), &driver, "java", 1).get(LabelKey::App), "unknown");
        assert_eq!(build("n", &RunNames::default(), &driver, "java", 1).get(LabelKey::ServiceName), "job.py");
        driver.set_app("local-7");
        driver.app_name = Some("sales".into());
        let labels = build("n", &RunNames::default(), &driver, "java", 1);
        assert_eq!((labels.get(LabelKey::App), labels.get(LabelKey::ServiceName)), ("local-7", "sales"));
        assert_eq!(labels.get(LabelKey::AppRun), "sales", "no other word of what it is a run of");
    }

    #[test]
    fn runs_of_a_job_share_what_their_names_have_in_common_or_what_is_said() {
        let names = RunNames::new("^(.*)-[0-9]+$").unwrap();
        let mut driver = identify(&recorded("local-driver"));
        driver.set_app("local-7");
        driver.app_name = Some("sales-20261126".into());
        let run = |driver: &Identity| build("n", &names, driver, "java", 1).get(LabelKey::AppRun).to_owned();
        assert_eq!(run(&driver), "sales");
        driver.run = Some("nightly.load".into());
        assert_eq!(run(&driver), "nightly.load");
        let neighbour = identity_of(&["java", "-Dspark.emberscope.run=x", "com.corp.Main"], &[]);
        assert_eq!(run(&neighbour), "", "a program without an application is no run");
    }

    #[test]
    fn a_pyspark_driver_is_two_processes() {
        let program = identify(&recorded("local-python-driver"));
        let labels = build("n", &RunNames::default(), &program, "python3", 2);
        assert_eq!((labels.get(LabelKey::Role), labels.get(LabelKey::App)), ("driver", "unknown"));
        let worker = build(
            "n",
            &RunNames::default(),
            &identity_of(&["python3", "-m", "pyspark.daemon"], &[]),
            "python3",
            3,
        );
        assert_eq!(worker.get(LabelKey::Role), "python");
    }

    #[test]
    fn a_neighbour_has_no_spark_labels() {
        let labels =
            build("n", &RunNames::default(), &identity_of(&["/usr/sbin/sshd", "-D"], &[]), "sshd", 9);
        assert_eq!(labels.get(LabelKey::Role), "other");
        assert_eq!(labels.get(LabelKey::ServiceName), "sshd");
        for key in [LabelKey::App, LabelKey::Deploy, LabelKey::Executor, LabelKey::Container] {
            assert_eq!(labels.get(key), "", "{key}");
        }
    }
}
