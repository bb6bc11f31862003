//! Labels: who a sample belongs to. The keys are a closed list; values are text from the outside and
//! must be escaped wherever they are shown.

use std::fmt;
use std::sync::Arc;

macro_rules! label_keys {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)+) => {
        /// The closed list of label names, in the order in which sets are kept.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum LabelKey { $($(#[$doc])* $variant,)+ }
        impl LabelKey {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// The name in queries, answers and the store.
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name,)+ } }
            /// By name.
            pub fn from_name(name: &str) -> Option<Self> { match name { $($name => Some(Self::$variant),)+ _ => None } }
        }
    };
}

label_keys! {
    /// The app's name, or the process's: the label Grafana groups by.
    ServiceName = "service_name";
    /// Host name of the node.
    Node = "node";
    /// How the process was deployed: a [`super::Deploy`] slug.
    Deploy = "deploy";
    /// Spark application id; `unknown` for a driver whose id is not known yet.
    App = "app";
    /// Spark application name.
    AppName = "app_name";
    /// User that runs it (Spark's user where known, else the process's).
    User = "user";
    /// A [`super::Role`] slug.
    Role = "role";
    /// Executor id; `driver` in local mode.
    Executor = "executor";
    /// Container id from the cgroup or environment.
    Container = "container";
    /// Stage id.
    Stage = "stage";
    /// Stage attempt.
    StageAttempt = "stage_attempt";
    /// Index in the task set.
    TaskIndex = "task_index";
    /// Task attempt.
    TaskAttempt = "task_attempt";
    /// Spark's task id (TID).
    Task = "task";
    /// Class of the thread: a closed list.
    ThreadClass = "thread_class";
    /// Program name of the process (comm).
    Process = "process";
    /// Process id in the initial PID namespace.
    Pid = "pid";
}

impl LabelKey {
    /// It says something of a thread; the others are of its process, and the same for all its threads.
    pub const fn is_of_thread(self) -> bool {
        matches!(
            self,
            Self::Stage
                | Self::StageAttempt
                | Self::TaskIndex
                | Self::TaskAttempt
                | Self::Task
                | Self::ThreadClass
        )
    }
}

impl fmt::Display for LabelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of labels, each key at most once, sorted by key. An absent key reads as the empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelSet(Box<[(LabelKey, Arc<str>)]>);

impl LabelSet {
    /// The value of a key; empty when it is not set.
    pub fn get(&self, key: LabelKey) -> &str {
        self.0.binary_search_by_key(&key, |(k, _)| *k).map_or("", |i| &self.0[i].1)
    }
    /// All pairs, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (LabelKey, &Arc<str>)> {
        self.0.iter().map(|(k, v)| (*k, v))
    }
    /// Whether this is `process`'s set, with or without a thread's labels added.
    pub fn is_of_process(&self, process: &LabelSet) -> bool {
        self.0.iter().filter(|(k, _)| !k.is_of_thread()).eq(process.0.iter())
    }
    /// The labels of its process alone.
    pub fn process_part(&self) -> LabelSet {
        LabelSet(self.0.iter().filter(|(k, _)| !k.is_of_thread()).cloned().collect())
    }
    /// The labels of another process, or of the same by another name, with this one's thread's.
    pub fn moved_to(&self, process: &LabelSet) -> LabelSet {
        let of_thread = self.0.iter().filter(|(k, _)| k.is_of_thread());
        of_thread.fold(LabelSetBuilder::from_set(process), |b, (k, v)| b.set(*k, v.clone())).build()
    }
    /// Number of labels.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Builds a [`LabelSet`]; empty values are left out, a later value of a key wins.
#[derive(Clone, Debug, Default)]
pub struct LabelSetBuilder(Vec<(LabelKey, Arc<str>)>);

impl LabelSetBuilder {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }
    /// One that starts from a set.
    pub fn from_set(set: &LabelSet) -> Self {
        Self(set.0.to_vec())
    }
    /// Sets a key; an empty value removes it.
    pub fn set(mut self, key: LabelKey, value: impl Into<Arc<str>>) -> Self {
        let value = value.into();
        self.0.retain(|(k, _)| *k != key);
        if !value.is_empty() {
            self.0.push((key, value));
        }
        self
    }
    /// The set.
    pub fn build(mut self) -> LabelSet {
        self.0.sort_by_key(|(k, _)| *k);
        LabelSet(self.0.into_boxed_slice())
    }
}
