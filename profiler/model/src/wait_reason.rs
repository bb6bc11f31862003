//! Why a thread waited: the values of the label `wait`.

/// What a thread waited for, as its stack tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitReason {
    /// The task's Python worker, or a program that it pipes through.
    Python,
    /// Blocks of a shuffle, or of another executor's cache.
    Shuffle,
    /// A file, HDFS or an object store.
    Storage,
    /// Another peer, by a socket.
    Network,
    /// A monitor or a lock of java.util.concurrent, or a native one.
    Lock,
    /// The garbage collector, or another operation for which the JVM stops its threads.
    Gc,
    /// The end of a sleep that the thread asked for.
    Sleep,
    /// The thread's next task.
    Idle,
    /// Anything else, or the stack does not tell.
    Other,
}

impl WaitReason {
    /// All reasons, in the order of answers.
    pub const ALL: [Self; 9] = [
        Self::Python,
        Self::Shuffle,
        Self::Storage,
        Self::Network,
        Self::Lock,
        Self::Gc,
        Self::Sleep,
        Self::Idle,
        Self::Other,
    ];

    /// The value of the label `wait`.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Shuffle => "shuffle",
            Self::Storage => "storage",
            Self::Network => "network",
            Self::Lock => "lock",
            Self::Gc => "gc",
            Self::Sleep => "sleep",
            Self::Idle => "idle",
            Self::Other => "other",
        }
    }

    /// The reason of this name.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.slug() == slug)
    }
}
