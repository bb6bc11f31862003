//! YARN: executors, the ApplicationMaster (the driver in cluster mode), the ExecutorLauncher (client mode).
//!
//! Evidence: CONTAINER_ID, which names the application. It is not asked for a SparkSubmit: a driver that
//! a launcher application (Oozie) started inherits that one's container.

use super::{DriverAddress, Identity, bounded, plain_name};
use crate::cgroup::yarn_application;
use crate::environ::EnvName;
use crate::facts::ProcessFacts;
use crate::java::JavaCommand;
use emberscope_model::{Deploy, Role};

/// An executor; its arguments have told the rest.
pub(super) fn executor(identity: &mut Identity, facts: &ProcessFacts) {
    identity.deploy = Deploy::Yarn;
    container(identity, facts);
}

/// ApplicationMaster: cluster mode, the driver runs inside.
pub(super) fn application_master(identity: &mut Identity, facts: &ProcessFacts) {
    identity.role = Role::Driver;
    identity.deploy = Deploy::Yarn;
    named(identity, facts);
    container(identity, facts);
}

/// ExecutorLauncher: client mode, the driver is elsewhere and listens where `--arg` says.
pub(super) fn executor_launcher(identity: &mut Identity, java: &JavaCommand<'_>, facts: &ProcessFacts) {
    identity.role = Role::AppMaster;
    identity.deploy = Deploy::Yarn;
    identity.driver_at = java.args_named("--arg").find_map(DriverAddress::parse);
    named(identity, facts);
    // In client mode the driver had its name when it asked for this container.
    identity.name_is_sure = identity.app_name.is_some();
    container(identity, facts);
}

/// The name that the application was submitted under. Its pages, which know a later one, are behind YARN's filter.
fn named(identity: &mut Identity, facts: &ProcessFacts) {
    identity.app_name = facts.properties.get("spark.app.name").map(plain_name);
}

/// What runs in a container of a Spark application: Python workers, piped programs, the shell around
/// the JVM. SPARK_YARN_STAGING_DIR tells Spark's containers from others.
pub(super) fn by_environment(identity: &mut Identity, facts: &ProcessFacts) {
    if facts.environ.has(EnvName::YarnStaging) && facts.environ.get(EnvName::ContainerId).is_some() {
        identity.deploy = Deploy::Yarn;
        container(identity, facts);
    }
}

/// Container and, where the arguments did not tell it, application. A container in the cgroup's path is the
/// kernel's word, and goes before arguments and environment, which are the process's own.
fn container(identity: &mut Identity, facts: &ProcessFacts) {
    if let Some(app) = identity.cgroup_container.as_deref().and_then(yarn_application) {
        identity.container.clone_from(&identity.cgroup_container);
        (identity.app, identity.by_kernel) = (Some(app), true);
        return;
    }
    let told = facts.environ.get(EnvName::ContainerId);
    // Where the variable cannot be read, the working directory (`../appcache/application_../container_..`)
    // says the same.
    let place = || facts.cwd.rsplit('/').find(|part| yarn_application(part).is_some());
    let Some(id) = told.filter(|t| yarn_application(t).is_some()).or_else(place) else { return };
    if let Some(app) = yarn_application(id) {
        identity.container = Some(bounded(id));
        identity.app.get_or_insert(app);
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{facts_of, identity_of};
    use crate::identity::{Identity, identify, with_parent};
    use emberscope_model::{Deploy, Role};

    const CONTAINER: &str = "CONTAINER_ID=container_e03_1763740000000_0042_01_000003";
    const STAGING: &str =
        "SPARK_YARN_STAGING_DIR=hdfs://nn/user/ana/.sparkStaging/application_1763740000000_0042";

    fn executor() -> Identity {
        identity_of(
            &[
                "/usr/lib/jvm/java-17/bin/java",
                "-server",
                "-Xmx4096m",
                "-Djava.io.tmpdir=/y/tmp",
                "-Dspark.driver.port=41000",
                "-Dspark.yarn.app.container.log.dir=/y/logs",
                "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend",
                "--driver-url",
                "spark://CoarseGrainedScheduler@edge-1:41000",
                "--executor-id",
                "2",
                "--hostname",
                "node-7",
                "--cores",
                "4",
                "--app-id",
                "application_1763740000000_0042",
                "--resourceProfileId",
                "0",
            ],
            &[CONTAINER, STAGING, "SPARK_USER=ana"],
        )
    }

    #[test]
    fn an_executor() {
        let identity = executor();
        assert_eq!((identity.role, identity.deploy), (Role::Executor, Deploy::Yarn));
        assert_eq!(identity.app.as_deref(), Some("application_1763740000000_0042"));
        assert_eq!(
            (identity.executor.as_deref(), identity.cores, identity.host.as_str()),
            (Some("2"), 4, "node-7")
        );
        assert_eq!(identity.container.as_deref(), Some("container_e03_1763740000000_0042_01_000003"));
        assert_eq!(identity.spark_user.as_deref(), Some("ana"));
    }

    #[test]
    fn the_application_master_is_the_driver() {
        let identity = identity_of(
            &[
                "java",
                "-server",
                "-Xmx1g",
                "org.apache.spark.deploy.yarn.ApplicationMaster",
                "--class",
                "com.example.Main",
                "--jar",
                "file:/j.jar",
                "--arg",
                "a",
                "--properties-file",
                "/y/__spark_conf__/__spark_conf__.properties",
            ],
            &["CONTAINER_ID=container_1763740000000_0042_01_000001", "APPLICATION_WEB_PROXY_BASE=/proxy/x"],
        );
        assert_eq!((identity.role, identity.deploy), (Role::Driver, Deploy::Yarn));
        assert_eq!(identity.app.as_deref(), Some("application_1763740000000_0042"));
        assert_eq!(identity.executor, None);
    }

    #[test]
    fn the_launcher_knows_its_driver() {
        let identity = identity_of(
            &[
                "java",
                "-server",
                "org.apache.spark.deploy.yarn.ExecutorLauncher",
                "--arg",
                "edge-1:41000",
                "--properties-file",
                "p",
            ],
            &[CONTAINER],
        );
        assert_eq!(identity.role, Role::AppMaster);
        assert_eq!(identity.driver_at.map(|d| d.port), Some(41000));
        assert_eq!(identity.app.as_deref(), Some("application_1763740000000_0042"));
    }

    #[test]
    fn the_container_can_be_told_by_directory_or_cgroup() {
        let mut facts = facts_of(&["java", "org.apache.spark.deploy.yarn.ApplicationMaster"], &[]);
        facts.cwd =
            "/y/usercache/ana/appcache/application_1763740000000_0042/container_1763740000000_0042_01_000001"
                .into();
        assert_eq!(identify(&facts).app.as_deref(), Some("application_1763740000000_0042"));
        facts.cwd.clear();
        facts.cgroup = vec!["3:cpu:/hadoop-yarn/container_1763740000000_0043_01_000001".into()];
        assert_eq!(identify(&facts).app.as_deref(), Some("application_1763740000000_0043"));
    }

    #[test]
    fn a_forged_container_does_not_go_before_the_cgroups() {
        let words = ["java", "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend", "--app-id"];
        let words = [&words[..], &["application_1763740000000_0042", "--executor-id", "2"]].concat();
        let mut facts = facts_of(&words, &[CONTAINER, STAGING]);
        facts.cgroup = vec!["0::/hadoop-yarn/container_1763740000000_0043_01_000007".into()];
        let identity = identify(&facts);
        assert_eq!(identity.app.as_deref(), Some("application_1763740000000_0043"));
        assert_eq!(identity.container.as_deref(), Some("container_1763740000000_0043_01_000007"));
        assert!(identity.by_kernel && !executor().by_kernel);
    }

    #[test]
    fn a_python_worker_takes_the_executor_from_its_parent() {
        let own = identity_of(&["python3", "-m", "pyspark.daemon"], &[CONTAINER, STAGING]);
        assert_eq!(
            (own.app.as_deref(), own.executor.as_deref()),
            (Some("application_1763740000000_0042"), None)
        );
        let worker = with_parent(&own, Some(&executor()));
        assert_eq!((worker.role, worker.deploy), (Role::Python, Deploy::Yarn));
        assert_eq!(worker.executor.as_deref(), Some("2"));
    }

    #[test]
    fn the_container_of_another_framework_is_not_sparks() {
        let other = identity_of(&["java", "org.apache.hadoop.mapred.YarnChild"], &[CONTAINER]);
        assert_eq!((other.app, other.role), (None, Role::Other));
        let oozie = identity_of(
            &["java", "org.apache.spark.deploy.SparkSubmit", "--master", "yarn", "a.jar"],
            &[CONTAINER],
        );
        assert_eq!((oozie.app, oozie.role), (None, Role::Driver), "CONTAINER_ID is the launcher's");
        let shell = identity_of(
            &["/bin/bash", "-c", "java .. YarnCoarseGrainedExecutorBackend .."],
            &[CONTAINER, STAGING],
        );
        assert_eq!((shell.role, shell.app.as_deref()), (Role::Other, Some("application_1763740000000_0042")));
    }
}
