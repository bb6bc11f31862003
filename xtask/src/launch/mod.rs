//! Starts what the demo, the measurements and the end-to-end tests watch: a real Spark job, a small Java
//! program, the daemon. Each is ended when its value is dropped, with all that it started.

pub mod allocates;
pub mod asked;
pub mod azure;
pub mod browser;
pub mod daemon;
mod door;
pub mod event_log;
pub mod gs;
mod hadoop;
pub mod hdfs;
pub mod java;
pub mod large;
pub mod pauses;
pub mod port;
pub mod s3;
pub mod spark;
pub mod standalone;
pub mod storage;
pub mod yarn;

mod child;
mod spark_java;

pub use azure::Azure;
pub use browser::Browser;
pub use child::Running;
pub use daemon::Daemon;
pub use event_log::EventLog;
pub use gs::Gs;
pub use hdfs::Hdfs;
pub use java::JavaProgram;
pub use s3::S3;
pub use spark::{Job, SparkJob};
pub use standalone::{HistoryServer, Standalone};
pub use storage::Storage;
pub use yarn::Yarn;
