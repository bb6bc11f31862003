//! What a registry is told: where /proc is, what the user wants kept, and its bounds.

use crate::keep::Keep;
use crate::procfs::{JVM_MARK, Mark};
use emberscope_model::RunNames;
use std::path::PathBuf;
use std::time::Duration;

/// What the registry holds at most, and how often it does what costs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Processes kept, live and exited: more than a node runs at once; each is about a kilobyte. Of a compile farm that
    /// starts more of them in [`exit_grace`](Self::exit_grace), those that exited first go first. A table of 8,192 places takes no
    /// more before it doubles.
    pub processes: usize,
    /// How long an exited process is kept: its samples may still be on their way.
    pub exit_grace: Duration,
    /// Programs read per tick because of an exec, before a sample asks for them; as many more of what Spark's processes
    /// start. A compile farm starts hundreds a second, and each read takes some 100 us.
    pub exec_reads: usize,
    /// Processes per tick of which it is checked that they still are the same.
    pub checks: usize,
    /// Shortest time between two questions to the same driver; doubles up to ten seconds.
    pub ask_interval: Duration,
    /// How long executors have to tell of their driver before it is asked itself. On a busy machine a
    /// driver needs some 15 s to its first executor.
    pub driver_patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            processes: 7_168,
            exit_grace: Duration::from_secs(30),
            exec_reads: 50,
            checks: 256,
            ask_interval: Duration::from_secs(2),
            driver_patience: Duration::from_secs(20),
        }
    }
}

/// What a registry needs to know.
#[derive(Clone, Debug)]
pub struct RegistryConfig {
    /// `/proc`, or a directory like it.
    pub proc_root: PathBuf,
    /// The passwd file that names users.
    pub passwd: PathBuf,
    /// The node's name, which becomes the label `node`.
    pub node: String,
    /// Which Spark processes are kept.
    pub keep: Keep,
    /// Drivers and Workers may be asked over HTTP for application ids and names.
    pub ask_drivers: bool,
    /// Users, by name or number, whose Workers and NodeManagers start executors for others, and whose history
    /// servers tell of others' applications.
    pub cluster_users: Vec<String>,
    /// What an application is a run of, by its name.
    pub run_names: RunNames,
    /// What in the path of a mapped file shows that a process runs a runtime.
    pub marks: Vec<Mark>,
    /// What is kept at most, and how often what costs is done.
    pub limits: Limits,
}

impl RegistryConfig {
    /// The configuration for this host, where everything is kept.
    pub fn host(node: impl Into<String>) -> Self {
        Self {
            proc_root: "/proc".into(),
            passwd: "/etc/passwd".into(),
            node: node.into(),
            keep: Keep::default(),
            ask_drivers: true,
            cluster_users: ["root", "spark", "yarn", "hadoop"].map(str::to_owned).into(),
            run_names: RunNames::default(),
            marks: vec![JVM_MARK],
            limits: Limits::default(),
        }
    }
}
