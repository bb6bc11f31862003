//! The few environment variables that identity needs.
//!
//! In: the bytes of /proc/PID/environ. Out: the values of a closed list of names. Everything else is
//! dropped where it is read, because environments hold secrets (PYSPARK_GATEWAY_SECRET,
//! PYTHON_WORKER_FACTORY_SECRET, _SPARK_AUTH_SECRET, cloud keys). Of names whose value is of no use only
//! the presence is kept.

use super::text::clean;
use std::collections::BTreeMap;

/// Longest value that is kept, in bytes: the longest useful one is a log URL.
pub const MAX_VALUE: usize = 1024;

macro_rules! env_names {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $keep:ident;)+) => {
        /// Names of the variables that are looked at.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum EnvName { $($(#[$doc])* $variant,)+ }
        impl EnvName {
            /// Every name that is looked at.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// The variable's name.
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name,)+ } }
            const fn keeps_value(self) -> bool { match self { $(Self::$variant => env_names!(@$keep),)+ } }
            fn from_name(name: &[u8]) -> Option<Self> {
                Self::ALL.iter().copied().find(|n| n.name().as_bytes() == name)
            }
        }
    };
    (@value) => { true };
    (@presence) => { false };
}

env_names! {
    /// Executors and what they start: `http://..?appId=A&executorId=0&..`, or on YARN a URL with the
    /// container's id. Set by ExecutorRunner.scala.
    LogUrlStdout = "SPARK_LOG_URL_STDOUT", value;
    /// The same for stderr; YARN sets it too (ExecutorRunnable.scala, 2.x).
    LogUrlStderr = "SPARK_LOG_URL_STDERR", value;
    /// Spark's user.
    SparkUser = "SPARK_USER", value;
    /// Kubernetes: the executor's id (BasicExecutorFeatureStep.scala).
    ExecutorId = "SPARK_EXECUTOR_ID", value;
    /// Airflow: the DAG whose task started the driver (airflow/utils/operator_helpers.py, 1.10 to 3.x).
    AirflowDag = "AIRFLOW_CTX_DAG_ID", value;
    /// Airflow: that task.
    AirflowTask = "AIRFLOW_CTX_TASK_ID", value;
    /// Kubernetes: spark.app.id, of driver and executors.
    ApplicationId = "SPARK_APPLICATION_ID", value;
    /// Kubernetes: the executor's pod.
    ExecutorPod = "SPARK_EXECUTOR_POD_NAME", value;
    /// Kubernetes: where the driver is.
    DriverUrl = "SPARK_DRIVER_URL", value;
    /// Kubernetes: the driver pod's address.
    DriverBindAddress = "SPARK_DRIVER_BIND_ADDRESS", value;
    /// Every Kubernetes pod.
    KubernetesHost = "KUBERNETES_SERVICE_HOST", presence;
    /// YARN: the container, and with it the application.
    ContainerId = "CONTAINER_ID", value;
    /// YARN: set by Spark's client for what it starts there.
    YarnStaging = "SPARK_YARN_STAGING_DIR", presence;
    /// YARN: only the ApplicationMaster has it.
    WebProxyBase = "APPLICATION_WEB_PROXY_BASE", presence;
    /// Standalone cluster mode: a driver that a Worker started.
    DriverLogUrl = "SPARK_DRIVER_LOG_URL_STDOUT", presence;
    /// Python under `spark-submit job.py`.
    GatewayPort = "PYSPARK_GATEWAY_PORT", presence;
    /// A driver JVM that Python started (java_gateway.py).
    ConnInfoPath = "_PYSPARK_DRIVER_CONN_INFO_PATH", presence;
    /// Python workers and their daemon (PythonRunner.scala).
    ReuseWorker = "SPARK_REUSE_WORKER", presence;
    /// The same from 4.0 on.
    PythonRuntime = "SPARK_PYTHON_RUNTIME", presence;
}

/// What was kept of an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environ(BTreeMap<EnvName, String>);

impl Environ {
    /// Reads `NAME=value` items that end with NUL. A name that comes twice keeps its first value, as
    /// getenv(3) does.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut kept = BTreeMap::new();
        for item in bytes.split(|b| *b == 0) {
            let Some(equals) = item.iter().position(|b| *b == b'=') else { continue };
            let (name, value) = item.split_at(equals);
            let Some(name) = EnvName::from_name(name) else { continue };
            let value = value.get(1..).unwrap_or_default();
            let value = if name.keeps_value() { clean(value, MAX_VALUE) } else { String::new() };
            kept.entry(name).or_insert(value);
        }
        Self(kept)
    }

    /// The variable's value; None when it is not set or empty, or only its presence is kept.
    pub fn get(&self, name: EnvName) -> Option<&str> {
        self.0.get(&name).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// Whether the variable is set at all.
    pub fn has(&self, name: EnvName) -> bool {
        self.0.contains_key(&name)
    }

    /// A parameter of the executor's log URLs, e.g. `appId`.
    pub fn log_url_parameter(&self, parameter: &str) -> Option<&str> {
        [EnvName::LogUrlStdout, EnvName::LogUrlStderr].into_iter().find_map(|name| {
            let (_, query) = self.get(name)?.split_once('?')?;
            query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .find(|(k, v)| *k == parameter && !v.is_empty())
                .map(|(_, v)| v)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_kept() {
        let env = Environ::parse(
            b"PYSPARK_GATEWAY_SECRET=hush\0PYSPARK_GATEWAY_PORT=35239\0_SPARK_AUTH_SECRET=hush\0\
              PYTHON_WORKER_FACTORY_SECRET=hush\0AWS_SECRET_ACCESS_KEY=hush\0SPARK_USER=ana\0",
        );
        assert!(!format!("{env:?}").contains("hush"));
        assert!(!format!("{env:?}").contains("35239"), "only the presence of the port is of use");
        assert!(env.has(EnvName::GatewayPort));
        assert_eq!(env.get(EnvName::SparkUser), Some("ana"));
    }

    #[test]
    fn log_urls_tell_app_and_executor() {
        let env = Environ::parse(
            b"SPARK_LOG_URL_STDOUT=http://127.0.0.1:45107/logPage/?appId=app-20261121183115-0000&executorId=1&logType=stdout\0",
        );
        assert_eq!(env.log_url_parameter("appId"), Some("app-20261121183115-0000"));
        assert_eq!(env.log_url_parameter("executorId"), Some("1"));
        assert_eq!(env.log_url_parameter("worker"), None);
    }

    #[test]
    fn rubbish_is_skipped_and_values_are_bounded() {
        let mut bytes = b"\0\0no equals\0=empty name\0SPARK_USER=\0\xff\xfe=x\0SPARK_EXECUTOR_ID=".to_vec();
        bytes.extend(std::iter::repeat_n(b'9', 1 << 20));
        let env = Environ::parse(&bytes);
        assert_eq!(env.get(EnvName::SparkUser), None);
        assert_eq!(env.get(EnvName::ExecutorId).map(str::len), Some(MAX_VALUE));
        assert_eq!(env.0.len(), 2);
    }

    #[test]
    fn the_first_of_two_counts() {
        assert_eq!(Environ::parse(b"SPARK_USER=a\0SPARK_USER=b\0").get(EnvName::SparkUser), Some("a"));
    }
}
