//! Labels: who a sample belongs to. The keys are a closed list; values are text from the outside and
//! must be escaped wherever they are shown.

use std::fmt;
use std::sync::Arc;

macro_rules! label_keys {
    (kept { $($(#[$doc:meta])* $variant:ident = $name:literal;)+ } told { $($(#[$says:meta])* $told:ident = $word:literal;)+ }) => {
        /// The closed list of label names, in the order in which sets are kept.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum LabelKey { $($(#[$doc])* $variant,)+ $($(#[$says])* $told,)+ }
        impl LabelKey {
            /// All keys that sets of labels have, in the order in which they are kept.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// All keys that a question may name: those, and what a sample's stack tells when it is asked.
            pub const ASKED: &'static [Self] = &[$(Self::$variant,)+ $(Self::$told,)+];
            /// Keys that no set of labels has: told of a sample when it is asked.
            pub const TOLD: &'static [Self] = &[$(Self::$told,)+];
            /// The name in queries, answers and the store.
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name,)+ $(Self::$told => $word,)+ } }
            /// The key of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ $($word => Some(Self::$told),)+ _ => None }
            }
        }
    };
}

label_keys! {
    kept {
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
        /// What makes applications runs of one job: what who started them says, else what their names have in common.
        AppRun = "app_run";
        /// User that runs the process: the kernel's user id, by its name on the node.
        User = "user";
        /// User that the program itself names (SPARK_USER, its web server's `sparkUser`): nobody checks it.
        SparkUser = "spark_user";
        /// What the process is to Spark: a [`super::Role`] slug.
        Role = "role";
        /// Executor id; `driver` in local mode.
        Executor = "executor";
        /// Container id from the cgroup or environment.
        Container = "container";
        /// Id of the stage whose task the thread runs.
        Stage = "stage";
        /// Attempt of the stage, from 0.
        StageAttempt = "stage_attempt";
        /// Index of the task in its task set.
        TaskIndex = "task_index";
        /// Attempt of the task, from 0.
        TaskAttempt = "task_attempt";
        /// Spark's task id (TID), unique in the application.
        Task = "task";
        /// Class of the thread: a [`super::ThreadClass`] slug.
        ThreadClass = "thread_class";
        /// Why the thread waited, of a sample of a wait: a [`super::WaitReason`] slug.
        Wait = "wait";
        /// Class of the object whose lock the thread waited for, of a sample of such a wait.
        Lock = "lock";
        /// Name of the thread that held that lock, when the wait began; without the task that it ran.
        LockOwner = "lock_owner";
        /// Which of the events that a user named a sample is of ([`super::NamedEvent`]); of a disk's request, the disk and which way.
        Event = "event";
        /// Program name of the process (comm).
        Process = "process";
        /// Process id in the initial PID namespace.
        Pid = "pid";
        /// Who took the sample, where that was not Emberscope: of an imported profile.
        Source = "source";
    }
    told {
        /// Id of the Spark job that the sample's stage is of, by what Spark said: of several the first, which ran it. No set
        /// of labels has it.
        SparkJob = "spark_job";
        /// Id of the execution of Spark SQL that the sample's stage is of, by what Spark said. No set of labels has it.
        Sql = "sql";
        /// The operator of Spark SQL that a sample works for, by its stack ([`super::Operator`]). No set of labels has it.
        Operator = "operator";
    }
}

impl LabelKey {
    /// Whether the key tells of a thread; other keys tell of its process, and are the same for all its threads.
    pub const fn is_of_thread(self) -> bool {
        matches!(
            self,
            Self::Stage
                | Self::StageAttempt
                | Self::TaskIndex
                | Self::TaskAttempt
                | Self::Task
                | Self::ThreadClass
                | Self::Wait
                | Self::Lock
                | Self::LockOwner
                | Self::Event
                | Self::SparkJob
                | Self::Sql
        )
    }
    /// Whether only samples of some kinds have the key: why their thread waited, and for what lock; which event or disk they are
    /// of. Exact sums of threads and samples of CPU time do not.
    pub const fn is_of_sample(self) -> bool {
        matches!(self, Self::Wait | Self::Lock | Self::LockOwner | Self::Event)
    }
    /// Whether a sample's value is made of its application's or stage's when it is asked, whatever the sample's own process
    /// knew.
    pub const fn is_joined(self) -> bool {
        self.is_told_by_stage() || matches!(self, Self::AppRun)
    }
    /// Whether the key tells what a stage is of: known once its application and stage are.
    pub const fn is_told_by_stage(self) -> bool {
        matches!(self, Self::SparkJob | Self::Sql)
    }
}

impl fmt::Display for LabelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

type Pair = (LabelKey, Arc<str>);

/// A set of labels, each key at most once, sorted by key. An absent key reads as the empty text.
///
/// The process's labels are one allocation that the sets of its threads share: a node may have a
/// thousand tasks in a window, each with a set of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelSet {
    process: Arc<[Pair]>,
    thread: Box<[Pair]>,
}

impl LabelSet {
    /// The value of a key; empty when it is not set.
    pub fn get(&self, key: LabelKey) -> &str {
        let pairs = if key.is_of_thread() { &*self.thread } else { &*self.process };
        pairs.binary_search_by_key(&key, |(k, _)| *k).map_or("", |i| &pairs[i].1)
    }
    /// All pairs, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (LabelKey, &Arc<str>)> {
        // A thread's keys stand together in the list of keys.
        let first = self.thread.first().map_or(LabelKey::Pid, |(key, _)| *key);
        let (before, after) = self.process.split_at(self.process.partition_point(|(key, _)| *key < first));
        before.iter().chain(&*self.thread).chain(after).map(|(k, v)| (*k, v))
    }
    /// Whether this is `process`'s set, with or without a thread's labels added.
    pub fn is_of_process(&self, process: &LabelSet) -> bool {
        Arc::ptr_eq(&self.process, &process.process) || self.process == process.process
    }
    /// The set of the process alone.
    pub fn without_thread(&self) -> LabelSet {
        Self { process: self.process.clone(), thread: Box::default() }
    }
    /// The set of a thread of this process. Its labels stand in key order, each key once, none of a process.
    pub fn with_thread(&self, thread: Box<[(LabelKey, Arc<str>)]>) -> LabelSet {
        debug_assert!(
            thread.iter().all(|(key, _)| key.is_of_thread()) && thread.is_sorted_by_key(|(key, _)| *key)
        );
        Self { process: self.process.clone(), thread }
    }
    /// The process's labels, in key order, as all sets of its threads share them.
    pub fn process_part(&self) -> &Arc<[(LabelKey, Arc<str>)]> {
        &self.process
    }
    /// The thread's labels, in key order.
    pub fn thread_part(&self) -> &[(LabelKey, Arc<str>)] {
        &self.thread
    }
    /// How many labels the set has.
    pub fn len(&self) -> usize {
        self.process.len() + self.thread.len()
    }
    /// Whether the set has no label.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Builds a [`LabelSet`]; empty values are left out, a later value of a key wins.
#[derive(Clone, Debug, Default)]
pub struct LabelSetBuilder {
    pairs: Vec<Pair>,
    from: LabelSet,
}

impl LabelSetBuilder {
    /// A builder of an empty set.
    pub fn new() -> Self {
        Self::default()
    }
    /// A builder that starts from a set, and shares the part of its process where that stays as it is.
    pub fn from_set(set: &LabelSet) -> Self {
        Self { pairs: set.iter().map(|(k, v)| (k, v.clone())).collect(), from: set.clone() }
    }
    /// Sets a key; an empty value removes it.
    pub fn set(mut self, key: LabelKey, value: impl Into<Arc<str>>) -> Self {
        let value = value.into();
        self.pairs.retain(|(k, _)| *k != key);
        if !value.is_empty() {
            self.pairs.push((key, value));
        }
        self
    }
    /// The set of the keys that were set.
    pub fn build(mut self) -> LabelSet {
        self.pairs.sort_by_key(|(k, _)| *k);
        let (thread, process): (Vec<_>, Vec<_>) = self.pairs.into_iter().partition(|(k, _)| k.is_of_thread());
        let same = self.from.process.iter().eq(&process);
        let process = if same { self.from.process } else { process.into() };
        LabelSet { process, thread: thread.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_keys_stand_together() {
        let kinds: Vec<bool> = LabelKey::ALL.iter().map(|key| key.is_of_thread()).collect();
        assert_eq!(kinds.chunk_by(|a, b| a == b).count(), 3, "process, thread, process");
    }

    #[test]
    fn a_set_is_its_pairs_in_key_order_however_it_was_made() {
        let all = LabelKey::ALL.iter().rev();
        let whole = all.fold(LabelSetBuilder::new(), |b, key| b.set(*key, key.name())).build();
        assert!(whole.iter().map(|(key, _)| key).eq(LabelKey::ALL.iter().copied()));
        assert!(LabelKey::ALL.iter().all(|key| whole.get(*key) == key.name()));
        let process = LabelSetBuilder::new().set(LabelKey::Pid, "7").set(LabelKey::App, "a").build();
        let thread = LabelSetBuilder::from_set(&process).set(LabelKey::Stage, "3").build();
        assert!(Arc::ptr_eq(&process.process, &thread.process), "shared");
        let again = LabelSetBuilder::new().set(LabelKey::Stage, "3").set(LabelKey::Pid, "7");
        assert_eq!(again.set(LabelKey::App, "a").build(), thread);
        assert_eq!((thread.len(), LabelSetBuilder::new().build().is_empty()), (3, true));
    }

    #[test]
    fn a_threads_set_is_of_its_process() {
        let known = LabelSetBuilder::new().set(LabelKey::App, "a").set(LabelKey::Pid, "7").build();
        let unknown = LabelSetBuilder::from_set(&known).set(LabelKey::App, "unknown").build();
        let thread = LabelSetBuilder::from_set(&unknown).set(LabelKey::Task, "9").build();
        assert!(thread.is_of_process(&unknown) && unknown.is_of_process(&unknown));
        assert!(!thread.is_of_process(&known) && !unknown.is_of_process(&LabelSet::default()));
        let moved = known.with_thread(thread.thread_part().into());
        assert_eq!((moved.get(LabelKey::App), moved.get(LabelKey::Task)), ("a", "9"));
        assert!(moved.is_of_process(&known));
    }
}
