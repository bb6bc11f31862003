//! Why a JVM cannot be read: reason values, each with a sentence for people and a short name for metrics.

use emberscope_target::memory::ReadError;
use emberscope_target::open::Refusal;

/// Why nothing, or not this, can be read from a process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JvmProblem {
    /// The process ended.
    #[error("the process ended")]
    Gone,
    /// No HotSpot there, or not yet: libjvm.so is loaded some milliseconds after exec. Native images
    /// (GraalVM) and launchers with a statically linked JVM never have one.
    #[error("no libjvm.so is mapped")]
    NoLibjvm,
    /// The process runs another virtual machine, which has a libjvm.so too.
    #[error("it is OpenJ9, not HotSpot")]
    OpenJ9,
    /// The file cannot be opened.
    #[error("its libjvm.so cannot be opened: {0}")]
    File(&'static str),
    /// The file is no library that we understand.
    #[error("its libjvm.so is not understood: {0}")]
    Elf(String),
    /// The file has no vmStructs, HotSpot's description of itself.
    #[error("its libjvm.so exports no {0}: no HotSpot, or one built without its description of itself")]
    NoTables(&'static str),
    /// The JVM has not set up what is needed.
    #[error("the JVM is still starting")]
    NotReady,
    /// The kernel does not let us.
    #[error("its memory may not be read: that takes CAP_SYS_PTRACE")]
    Denied,
    /// A HotSpot that we do not know.
    #[error("its tables do not tell {0}")]
    Missing(&'static str),
    /// What is there is not what the tables say.
    #[error("its memory makes no sense: {0}")]
    Nonsense(&'static str),
    /// The garbage collector was moving objects whenever we looked.
    #[error("the garbage collector was at work each time")]
    Busy,
    /// The daemon has no descriptor left, or the machine no memory.
    #[error("emberscope has no file descriptor left to read it, or the machine no memory")]
    Exhausted,
}

impl JvmProblem {
    /// Stable short name, for metrics.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::NoLibjvm => "no_libjvm",
            Self::OpenJ9 => "openj9",
            Self::File(_) => "file",
            Self::Elf(_) => "elf",
            Self::NoTables(_) => "no_tables",
            Self::NotReady => "not_ready",
            Self::Denied => "denied",
            Self::Missing(_) => "missing",
            Self::Nonsense(_) => "nonsense",
            Self::Busy => "busy",
            Self::Exhausted => "exhausted",
        }
    }
    /// Whether trying again may help.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::NoLibjvm | Self::NotReady | Self::Nonsense(_) | Self::Busy | Self::Exhausted)
    }
}

impl From<ReadError> for JvmProblem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Fault => Self::Nonsense("a pointer leads nowhere"),
            ReadError::Gone => Self::Gone,
            ReadError::Denied => Self::Denied,
            ReadError::Exhausted => Self::Exhausted,
        }
    }
}

impl From<Refusal> for JvmProblem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::ProcessGone => Self::Gone,
            Refusal::Exhausted => Self::Exhausted,
            other => Self::File(other.sentence()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_runtime::Problem;

    #[test]
    fn want_of_descriptors_is_a_reason_of_its_own_and_passes() {
        for problem in [JvmProblem::from(ReadError::Exhausted), Refusal::Exhausted.into()] {
            assert_eq!((problem.slug(), problem.may_pass()), ("exhausted", true));
            assert_eq!(problem.to_string(), Problem::Exhausted.to_string());
            assert_eq!(Problem::from(problem), Problem::Exhausted);
        }
        let name = crate::names::Unnamed::from(ReadError::Exhausted);
        assert_eq!(name.reason().slug(), "daemon exhausted");
    }
}
