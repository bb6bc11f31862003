//! `--master local[..]`: one JVM is driver and executor.

use super::Identity;

/// Id of the executor inside a local driver (SparkContext.DRIVER_IDENTIFIER).
pub(super) const DRIVER_EXECUTOR: &str = "driver";

/// `local`, `local[N]`, `local[*]`, `local[N,maxFailures]` (SparkMasterRegex).
pub(super) fn is_master(master: &str) -> bool {
    master == "local" || master.starts_with("local[") && master.ends_with(']')
}

/// A driver in local mode is its own executor.
pub(super) fn driver(identity: &mut Identity) {
    identity.executor = Some(DRIVER_EXECUTOR.to_owned());
}

#[cfg(test)]
mod tests {
    use crate::fixtures::recorded;
    use crate::identity::{PythonSide, identify};
    use emberscope_model::{Deploy, Role};

    #[test]
    fn a_recorded_local_driver() {
        let identity = identify(&recorded("local-driver"));
        assert_eq!((identity.role, identity.deploy), (Role::Driver, Deploy::Local));
        assert_eq!(identity.executor.as_deref(), Some("driver"));
        assert_eq!((identity.app, identity.app_name.as_deref()), (None, Some("job.py")));
        assert_eq!(identity.program, "SparkSubmit");
        assert!(!identity.python_parent);
    }

    #[test]
    fn a_recorded_driver_that_python_started() {
        let identity = identify(&recorded("python-started-driver"));
        assert_eq!((identity.role, identity.deploy), (Role::Driver, Deploy::Unknown), "it names no master");
        assert_eq!(identity.app_name.as_deref(), Some("daily sales é"));
        assert!(identity.python_parent);
    }

    #[test]
    fn the_recorded_python_of_spark_submit() {
        let identity = identify(&recorded("local-python-driver"));
        assert_eq!((identity.role, identity.python), (Role::Python, Some(PythonSide::Driver)));
        assert_eq!(identity.program, "job.py");
    }
}
