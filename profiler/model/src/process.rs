//! What is known of a process, kept with the windows it was sampled in.

use super::{LabelSet, ProcessKey};
use std::sync::Arc;

macro_rules! slugs {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $slug:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }
        impl $name {
            /// All variants, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// Stable name, as in labels.
            pub const fn slug(self) -> &'static str { match self { $(Self::$variant => $slug,)+ } }
        }
    };
}

slugs! {
    /// What a process is to Spark.
    Role {
        /// A driver's JVM (in local mode also the executor), or the Python program that it runs for.
        Driver = "driver";
        /// An executor's JVM.
        Executor = "executor";
        /// A Python worker, or the daemon that forks workers.
        Python = "python";
        /// YARN's ApplicationMaster or ExecutorLauncher in client mode.
        AppMaster = "app-master";
        /// The external shuffle service as a process of its own.
        ShuffleService = "shuffle-service";
        /// YARN's NodeManager, which starts containers on the node.
        NodeManager = "node-manager";
        /// The master of a standalone cluster.
        Master = "master";
        /// A worker of a standalone cluster, which starts executors on the node.
        Worker = "worker";
        /// Spark's history server.
        HistoryServer = "history-server";
        /// Everything else on the node.
        Other = "other";
    }
}

slugs! {
    /// How Spark was deployed, as far as the process tells.
    Deploy {
        /// `local[*]`: one JVM is driver and executor.
        Local = "local";
        /// `local-cluster[..]`: master, workers and driver in one JVM, executors of their own.
        LocalCluster = "local-cluster";
        /// Spark's own cluster of master and workers.
        Standalone = "standalone";
        /// By YARN.
        Yarn = "yarn";
        /// In pods of Kubernetes.
        Kubernetes = "kubernetes";
        /// Not Spark, or not known.
        Unknown = "unknown";
    }
}

/// Where the names of a JVM's compiled code come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameSource {
    /// No map yet; the text says what is being waited for.
    Waiting(String),
    /// The JVM's own structures, read from its memory.
    Memory,
    /// A perf map that this daemon asked the JVM for.
    Asked,
    /// A perf map that was already there.
    Found,
    /// None can be had; the text says why (JDK 8, another user, refused file, ...).
    None(String),
}

impl NameSource {
    /// Stable short name, for JSON and the store.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::Waiting(_) => "waiting",
            Self::Memory => "memory",
            Self::Asked => "asked",
            Self::Found => "found",
            Self::None(_) => "none",
        }
    }
    /// Words for people: where the names come from, or why there are none.
    pub fn says(&self) -> &str {
        match self {
            Self::Waiting(why) | Self::None(why) => why,
            Self::Memory => "the JVM's own structures, read from its memory",
            Self::Asked => "its perf map, which this daemon asked for",
            Self::Found => "a perf map that was already there",
        }
    }
}

/// What is known of a JVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JvmFacts {
    /// Version text, e.g. `17.0.15`; empty when not known.
    pub version: String,
    /// Where the names of the JVM's compiled code come from.
    pub names: NameSource,
}

/// A process as it was known when a window closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRecord {
    /// The process, by pid and start time.
    pub key: ProcessKey,
    /// Labels of the process (those of a thread are not in here).
    pub labels: Arc<LabelSet>,
    /// Host the executor says it is on; empty when it does not say.
    pub host: String,
    /// Cores the executor was given; 0 when it does not say.
    pub cores: u32,
    /// Main class or program, for people.
    pub program: String,
    /// What is known of the JVM, when the process is one.
    pub jvm: Option<JvmFacts>,
}
