//! Why a process of a runtime cannot be read.

use emberscope_target::readers::Unread;

/// A reason, with a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The process ended, or runs another program.
    #[error("the process ended")]
    Gone,
    /// The process is tried again later: it starts, or something was at work.
    #[error("{0}")]
    NotNow(String),
    /// The process will stay so.
    #[error("{0}")]
    Never(String),
    /// Reading the process made the daemon fail.
    #[error("reading it made emberscope fail: it is left alone for a time")]
    Quarantined,
    /// Nothing came within the reader's limit of time.
    #[error("reading it takes too long: it is left alone for a time")]
    Late,
    /// Nothing can be opened any more: that says nothing of the process, which is tried again.
    #[error("emberscope has no file descriptor left to read it, or the machine no memory")]
    Exhausted,
}

impl Problem {
    /// Whether trying again may help.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::NotNow(_) | Self::Quarantined | Self::Late | Self::Exhausted)
    }
}

impl From<Unread> for Problem {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Quarantined => Self::Quarantined,
            Unread::Late => Self::Late,
        }
    }
}
