//! Spark's JVMs by their main class, whatever the deployment; then the deployment's own file.

use super::{
    DriverAddress, Identity, bounded, connect, kubernetes, local, local_cluster, plain_name, standalone, yarn,
};
use crate::environ::EnvName;
use crate::facts::ProcessFacts;
use crate::java::{JavaCommand, SubmitOptions};
use crate::text::base_name;
use emberscope_model::{Deploy, Role};

/// Works out a JVM's identity.
pub(super) fn java(identity: &mut Identity, java: &JavaCommand<'_>, facts: &ProcessFacts, in_pod: bool) {
    match java.main {
        "org.apache.spark.deploy.SparkSubmit" => submit(identity, java, facts, in_pod),
        "org.apache.spark.executor.CoarseGrainedExecutorBackend" => {
            executor(identity, java);
            standalone::executor(identity, java);
        }
        "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend" => {
            executor(identity, java);
            yarn::executor(identity, facts);
        }
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend" => {
            executor(identity, java);
            kubernetes::executor(identity, facts);
        }
        "org.apache.spark.deploy.yarn.ApplicationMaster" => yarn::application_master(identity, facts),
        "org.apache.spark.deploy.yarn.ExecutorLauncher" => yarn::executor_launcher(identity, java, facts),
        "org.apache.hadoop.yarn.server.nodemanager.NodeManager" => {
            identity.role = Role::NodeManager;
            identity.deploy = Deploy::Yarn;
        }
        "org.apache.spark.deploy.worker.DriverWrapper" => standalone::driver(identity, java),
        "org.apache.spark.deploy.master.Master" => standalone::daemon(identity, java, Role::Master),
        "org.apache.spark.deploy.worker.Worker" => standalone::daemon(identity, java, Role::Worker),
        "org.apache.spark.deploy.ExternalShuffleService" => {
            identity.role = Role::ShuffleService;
            identity.deploy = Deploy::Standalone;
        }
        "org.apache.spark.deploy.history.HistoryServer" => {
            identity.role = Role::HistoryServer;
            let port = java.property("spark.history.ui.port").and_then(|p| p.parse().ok());
            identity.ui_port = port.filter(|p| *p != 0);
        }
        _ => {}
    }
}

/// What every executor backend's arguments tell (CoarseGrainedExecutorBackend.scala, parseArguments).
fn executor(identity: &mut Identity, java: &JavaCommand<'_>) {
    identity.role = Role::Executor;
    identity.app = java.arg("--app-id").map(bounded);
    identity.executor = java.arg("--executor-id").map(bounded);
    identity.host = java.arg("--hostname").map(bounded).unwrap_or_default();
    identity.cores = java.arg("--cores").and_then(|c| c.parse().ok()).unwrap_or(0);
    identity.driver_at = java.arg("--driver-url").and_then(DriverAddress::parse);
}

/// SparkSubmit is the driver, but for cluster mode, where it only hands the application over.
fn submit(identity: &mut Identity, java: &JavaCommand<'_>, facts: &ProcessFacts, in_pod: bool) {
    let submit = SubmitOptions::parse(java.args);
    let asks = submit.get("--kill").is_some() || submit.get("--status").is_some();
    // What is said in words goes before what is in the file (SparkSubmitArguments.scala).
    let file = |key| facts.properties.get(key);
    let mode = submit
        .get("--deploy-mode")
        .or_else(|| submit.conf("spark.submit.deployMode"))
        .or_else(|| file("spark.submit.deployMode"));
    if asks || mode == Some("cluster") || connect::is_client(&submit) {
        return;
    }
    identity.role = Role::Driver;
    identity.python_parent =
        submit.resource == Some("pyspark-shell") || facts.environ.has(EnvName::ConnInfoPath);
    identity.app_name = name(&submit, file("spark.app.name")).map(plain_name);
    let port = submit.conf("spark.ui.port").or_else(|| file("spark.ui.port"));
    identity.ui_port = port.and_then(|p| p.parse().ok()).filter(|p| *p != 0);
    identity.connect_port = connect::port(&submit, facts);
    let master = submit
        .get("--master")
        .or_else(|| submit.conf("spark.master"))
        .or_else(|| java.property("spark.master"))
        .or_else(|| file("spark.master"))
        .unwrap_or_default();
    identity.deploy = deploy_of_master(master);
    if identity.deploy == Deploy::Local {
        local::driver(identity);
    }
    kubernetes::driver(identity, facts, in_pod);
}

/// What spark-submit calls the application unless its program has a name for it: `--name`, the configured name, the main
/// class, the file (SparkSubmitArguments.scala, mergeDefaultSparkProperties). Shells are what their Python is.
fn name<'a>(submit: &SubmitOptions<'a>, file: Option<&'a str>) -> Option<&'a str> {
    let told = submit.get("--name").or_else(|| submit.conf("spark.app.name")).or(file);
    let class = submit.get("--class").filter(|c| !c.starts_with("org.apache.spark."));
    let file = submit.resource.filter(|r| r.ends_with(".py") || r.ends_with(".jar") || r.ends_with(".R"));
    told.or(class).or_else(|| file.map(base_name))
}

/// The deployment that a master URL names.
fn deploy_of_master(master: &str) -> Deploy {
    match master {
        m if local::is_master(m) => Deploy::Local,
        m if local_cluster::is_master(m) => Deploy::LocalCluster,
        m if m.starts_with("spark://") => Deploy::Standalone,
        m if m == "yarn" || m.starts_with("yarn-") => Deploy::Yarn,
        m if m.starts_with("k8s://") => Deploy::Kubernetes,
        _ => Deploy::Unknown,
    }
}

/// The deployment that an application id shows, for a driver whose command line names no master.
pub(super) fn deploy_of_app(app: &str) -> Deploy {
    let hex = |t: &str| t.len() == 32 && t.bytes().all(|b| b.is_ascii_hexdigit());
    match app {
        a if a.starts_with("local-") => Deploy::Local,
        a if a.starts_with("application_") => Deploy::Yarn,
        a if a.strip_prefix("spark-").is_some_and(hex) => Deploy::Kubernetes,
        a if a.starts_with("app-") => Deploy::Standalone,
        _ => Deploy::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::identity_of;

    #[test]
    fn masters_and_ids_name_deployments() {
        for (master, deploy) in [
            ("local", Deploy::Local),
            ("local[*]", Deploy::Local),
            ("local[2,3]", Deploy::Local),
            ("local-cluster[2,1,1024]", Deploy::LocalCluster),
            ("spark://a:7077,b:7077", Deploy::Standalone),
            ("yarn", Deploy::Yarn),
            ("yarn-client", Deploy::Yarn),
            ("k8s://https://10.0.0.1:443", Deploy::Kubernetes),
            ("", Deploy::Unknown),
            ("localhost", Deploy::Unknown),
        ] {
            assert_eq!(deploy_of_master(master), deploy, "{master}");
        }
        assert_eq!(deploy_of_app("spark-0123456789abcdef0123456789abcdef"), Deploy::Kubernetes);
        assert_eq!(deploy_of_app("spark-mine"), Deploy::Unknown);
        assert_eq!(deploy_of_app("local-1795285826503"), Deploy::Local);
    }

    #[test]
    fn a_main_class_inside_another_word_or_place_is_not_one() {
        for words in [
            &[
                "/bin/bash",
                "-c",
                "java -server org.apache.spark.executor.YarnCoarseGrainedExecutorBackend --app-id a",
            ][..],
            &["grep", "org.apache.spark.deploy.SparkSubmit"],
            &[
                "bash",
                "/opt/spark/bin/spark-class",
                "org.apache.spark.deploy.SparkSubmit",
                "--master",
                "local",
            ],
            &[
                "java",
                "-cp",
                "x",
                "org.apache.spark.launcher.Main",
                "org.apache.spark.deploy.SparkSubmit",
                "a.jar",
            ],
            &["java", "-Dmain=org.apache.spark.deploy.SparkSubmit", "com.example.Main"],
        ] {
            assert_eq!(identity_of(words, &[]).role, Role::Other, "{words:?}");
        }
    }

    #[test]
    fn a_submission_to_a_cluster_is_no_driver() {
        let main = "org.apache.spark.deploy.SparkSubmit";
        for words in [
            &["java", main, "--master", "yarn", "--deploy-mode", "cluster", "a.jar"][..],
            &["java", main, "--conf", "spark.submit.deployMode=cluster", "a.jar"],
            &["java", main, "--master", "spark://h:7077", "--kill", "driver-1"],
        ] {
            assert_eq!(identity_of(words, &[]).role, Role::Other, "{words:?}");
        }
        assert_eq!(identity_of(&["java", main, "a.jar", "--deploy-mode", "cluster"], &[]).role, Role::Driver);
    }

    #[test]
    fn servers_of_their_own() {
        for (main, role) in [
            ("org.apache.spark.deploy.ExternalShuffleService", Role::ShuffleService),
            ("org.apache.spark.deploy.history.HistoryServer", Role::HistoryServer),
            ("org.apache.hadoop.yarn.server.nodemanager.NodeManager", Role::NodeManager),
        ] {
            let identity = identity_of(&["java", "-Xmx1g", main], &[]);
            assert_eq!((identity.role, identity.app), (role, None));
        }
        let history = "org.apache.spark.deploy.history.HistoryServer";
        let port = |word| identity_of(&["java", word, history], &[]).ui_port;
        assert_eq!(port("-Dspark.history.ui.port=18190"), Some(18190));
        assert_eq!(port("-Dspark.history.ui.port=0"), None);
        assert_eq!(port("-Dspark.history.ui.port=x"), None);
    }

    #[test]
    fn nonsense_in_an_executors_arguments_is_survived() {
        let backend = "org.apache.spark.executor.CoarseGrainedExecutorBackend";
        let identity = identity_of(
            &["java", backend, "--driver-url", "::::", "--cores", "-1", "--app-id", "", "--executor-id"],
            &[],
        );
        assert_eq!(identity.role, Role::Executor);
        assert_eq!((identity.cores, identity.driver_at, identity.executor), (0, None, None));
    }
}
