//! `--master local-cluster[N,C,M]`: the driver's JVM hosts the Master and the Workers, so the executors'
//! parent is the driver. Their own command lines are those of standalone mode.

use super::{Identity, Runtime};
use emberscope_model::{Deploy, Role};

/// `local-cluster[workers,cores,megabytes]`.
pub(super) fn is_master(master: &str) -> bool {
    master.starts_with("local-cluster[")
}

/// A standalone executor below a JVM that is no Worker is one of local-cluster.
pub(super) fn refine(executor: &mut Identity, parent: &Identity) {
    if executor.role == Role::Executor
        && executor.deploy == Deploy::Standalone
        && parent.runtime == Runtime::Java
        && parent.role != Role::Worker
    {
        executor.deploy = Deploy::LocalCluster;
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::recorded;
    use crate::identity::{identify, with_parent};
    use emberscope_model::{Deploy, Role};

    #[test]
    fn recorded_executors_below_their_driver() {
        let driver = identify(&recorded("local-cluster-driver"));
        assert_eq!((driver.role, driver.deploy), (Role::Driver, Deploy::LocalCluster));
        assert_eq!(driver.app_name.as_deref(), Some("lc-name"));
        assert_eq!(driver.executor, None);
        let executor = with_parent(&identify(&recorded("local-cluster-executor")), Some(&driver));
        assert_eq!((executor.role, executor.deploy), (Role::Executor, Deploy::LocalCluster));
        assert_eq!(executor.app.as_deref(), Some("app-20261121183115-0000"));
        assert_eq!(executor.executor.as_deref(), Some("1"));
        assert_eq!((executor.host.as_str(), executor.cores), ("127.0.0.1", 1));
        let at = executor.driver_at.unwrap();
        assert_eq!((at.host.as_str(), at.port), ("localhost", 43695));
        assert_eq!(executor.program, "CoarseGrainedExecutorBackend");
    }
}
