//! Why a file of a target is not read: reason values, each with a short name for metrics and a sentence for people.

use rustix::io::Errno;

/// Why a file of a target is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// There is no such file.
    Missing,
    /// The file is a symbolic link.
    Symlink,
    /// The file is a FIFO, directory, device or socket.
    NotRegular,
    /// The file belongs to somebody else.
    WrongOwner,
    /// The file is on a file system that a user's program serves (FUSE): reading could block for ever.
    SlowFilesystem,
    /// The contents do not look like what they should be.
    Rubbish,
    /// Opening or reading failed.
    Unreadable,
    /// The process ended.
    ProcessGone,
    /// Reading takes too long, or took so before: it is left alone for a time.
    Late,
    /// The daemon has no descriptor left, or the machine no memory.
    Exhausted,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Self; 10] = [
        Self::Missing,
        Self::Symlink,
        Self::NotRegular,
        Self::WrongOwner,
        Self::SlowFilesystem,
        Self::Rubbish,
        Self::Unreadable,
        Self::ProcessGone,
        Self::Late,
        Self::Exhausted,
    ];
    /// Stable short name, for metrics.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Symlink => "symlink",
            Self::NotRegular => "not_regular",
            Self::WrongOwner => "wrong_owner",
            Self::SlowFilesystem => "slow_filesystem",
            Self::Rubbish => "rubbish",
            Self::Unreadable => "unreadable",
            Self::ProcessGone => "process_gone",
            Self::Late => "late",
            Self::Exhausted => "exhausted",
        }
    }
    /// What is wrong with the file, for people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Missing => "it is not there",
            Self::Symlink => "it is a symbolic link",
            Self::NotRegular => "it is not a regular file",
            Self::WrongOwner => "it belongs to another user",
            Self::SlowFilesystem => "it is on a FUSE file system",
            Self::Rubbish => "it is not a perf map",
            Self::Unreadable => "it cannot be read",
            Self::ProcessGone => "the process ended",
            Self::Late => "reading it takes too long: it is left alone for a time",
            Self::Exhausted => "emberscope has no file descriptor left, or the machine no memory",
        }
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::Missing,
            Errno::LOOP => Self::Symlink,
            Errno::SRCH => Self::ProcessGone,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM => Self::Exhausted,
            _ => Self::Unreadable,
        }
    }
}
