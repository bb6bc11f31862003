//! Starts what the demo, the measurements and the end-to-end tests watch: a real Spark job, a small Java
//! program, the daemon. Each is ended when its value is dropped, with all that it started.

pub mod daemon;
pub mod java;
pub mod spark;

mod child;

pub use child::Running;
pub use daemon::Daemon;
pub use java::JavaProgram;
pub use spark::{Job, SparkJob};
