//! Kubernetes: the driver's and the executors' pods say who they are in their environment
//! (BasicDriverFeatureStep.scala, BasicExecutorFeatureStep.scala; entrypoint.sh of the image).

use super::{DriverAddress, Identity, bounded};
use crate::environ::EnvName;
use crate::facts::ProcessFacts;
use emberscope_model::{Deploy, Role};

/// An executor; where an argument is missing, the environment says the same.
pub(super) fn executor(identity: &mut Identity, facts: &ProcessFacts) {
    identity.deploy = Deploy::Kubernetes;
    let env = |name| facts.environ.get(name).map(bounded);
    identity.app = identity.app.take().or_else(|| env(EnvName::ApplicationId));
    identity.executor = identity.executor.take().or_else(|| env(EnvName::ExecutorId));
    if identity.driver_at.is_none() {
        identity.driver_at = facts.environ.get(EnvName::DriverUrl).and_then(DriverAddress::parse);
    }
}

/// A SparkSubmit that runs in the driver's pod. SPARK_APPLICATION_ID is spark.app.id there. In any
/// other pod (a notebook's) it has neither variable, and its master decides.
pub(super) fn driver(identity: &mut Identity, facts: &ProcessFacts, in_pod: bool) {
    let in_drivers_pod = facts.environ.get(EnvName::DriverBindAddress).is_some();
    if let Some(app) = facts.environ.get(EnvName::ApplicationId)
        && (in_drivers_pod || in_pod)
        && matches!(identity.deploy, Deploy::Kubernetes | Deploy::Unknown)
    {
        identity.deploy = Deploy::Kubernetes;
        identity.app = Some(bounded(app));
    }
}

/// What runs in the pod of a driver or an executor: Python, piped programs, tini.
pub(super) fn by_environment(identity: &mut Identity, facts: &ProcessFacts) {
    if identity.app.is_none()
        && let Some(app) = facts.environ.get(EnvName::ApplicationId)
    {
        identity.app = Some(bounded(app));
        identity.deploy = Deploy::Kubernetes;
        identity.executor = facts.environ.get(EnvName::ExecutorId).map(bounded);
        if identity.role == Role::Other {
            identity.driver_at = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{facts_of, identity_of};
    use crate::identity::identify;
    use emberscope_model::{Deploy, Role};

    const APP: &str = "SPARK_APPLICATION_ID=spark-0123456789abcdef0123456789abcdef";
    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn an_executor() {
        let mut facts = facts_of(
            &[
                "/opt/java/openjdk/bin/java",
                "-Dspark.driver.port=7078",
                "-Xms1024m",
                "-Xmx1024m",
                "-cp",
                "/opt/spark/jars/*",
                "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
                "--driver-url",
                "spark://CoarseGrainedScheduler@pi-driver-svc.jobs.svc:7078",
                "--executor-id",
                "3",
                "--cores",
                "2",
                "--app-id",
                "spark-0123456789abcdef0123456789abcdef",
                "--hostname",
                "10.244.1.9",
                "--resourceProfileId",
                "0",
                "--podName",
                "pi-exec-3",
            ],
            &[APP, "SPARK_EXECUTOR_ID=3", "SPARK_EXECUTOR_POD_NAME=pi-exec-3"],
        );
        facts.cgroup = vec![format!(
            "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-{ID}.scope"
        )];
        let identity = identify(&facts);
        assert_eq!((identity.role, identity.deploy), (Role::Executor, Deploy::Kubernetes));
        assert_eq!(identity.app.as_deref(), Some("spark-0123456789abcdef0123456789abcdef"));
        assert_eq!((identity.executor.as_deref(), identity.cores), (Some("3"), 2));
        assert_eq!((identity.host.as_str(), identity.container.as_deref()), ("10.244.1.9", Some(ID)));
        assert_eq!(identity.driver_at.map(|d| d.port), Some(7078));
    }

    #[test]
    fn the_driver_in_its_pod() {
        let identity = identity_of(
            &[
                "/opt/java/openjdk/bin/java",
                "-cp",
                "/opt/spark/conf/:/opt/spark/jars/*",
                "-Xmx1g",
                "org.apache.spark.deploy.SparkSubmit",
                "--conf",
                "spark.driver.bindAddress=10.244.1.8",
                "--deploy-mode",
                "client",
                "--properties-file",
                "/opt/spark/conf/spark.properties",
                "--class",
                "org.apache.spark.examples.SparkPi",
                "local:///opt/spark/examples.jar",
            ],
            &[APP, "SPARK_DRIVER_BIND_ADDRESS=10.244.1.8", "KUBERNETES_SERVICE_HOST=10.96.0.1"],
        );
        assert_eq!((identity.role, identity.deploy), (Role::Driver, Deploy::Kubernetes));
        assert_eq!(identity.app.as_deref(), Some("spark-0123456789abcdef0123456789abcdef"));
    }

    #[test]
    fn a_local_session_in_a_drivers_pod_is_another_application() {
        let identity = identity_of(
            &["java", "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "pyspark-shell"],
            &[APP, "SPARK_DRIVER_BIND_ADDRESS=10.244.1.8"],
        );
        assert_eq!((identity.deploy, identity.app), (Deploy::Local, None));
    }

    #[test]
    fn python_and_tini_know_the_application() {
        let python = identity_of(&["python3", "-m", "pyspark.daemon"], &[APP, "SPARK_EXECUTOR_ID=3"]);
        assert_eq!((python.role, python.executor.as_deref()), (Role::Python, Some("3")));
        let tini = identity_of(&["/usr/bin/tini", "-s", "--", "/opt/java/openjdk/bin/java"], &[APP]);
        assert_eq!((tini.role, tini.deploy), (Role::Other, Deploy::Kubernetes));
        assert!(tini.app.is_some());
    }
}
