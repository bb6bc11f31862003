//! Why an interpreter cannot be read: reason values, each with a sentence for people.

use emberscope_runtime::Problem;
use emberscope_target::memory::ReadError;
use emberscope_target::open::Refusal;

/// Why nothing, or not this, can be read from a process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PythonProblem {
    /// The process ended.
    #[error("the process ended")]
    Gone,
    /// Another implementation, whose frames are laid out otherwise.
    #[error("it is PyPy, whose frames are not known")]
    PyPy,
    /// No file of CPython is mapped, or not yet.
    #[error("no program or library of CPython is mapped")]
    NotFound,
    /// The file cannot be opened.
    #[error("the interpreter's file cannot be opened: {0}")]
    File(&'static str),
    /// The file is no program that we understand.
    #[error("the interpreter's file is not understood: {0}")]
    Elf(String),
    /// A symbol that every build of CPython exports is not there.
    #[error("the interpreter's file exports no {0}")]
    NoSymbol(&'static str),
    /// A release that is not known.
    #[error("CPython {0}.{1} is not known: 3.8 to 3.14 are")]
    Version(u8, u8),
    /// Built without the lock: frames are laid out otherwise.
    #[error("it is a free-threaded build, whose frames are not known")]
    FreeThreaded,
    /// Built with the JIT compiler: frames may run in code that it made.
    #[error("it is a build with the JIT compiler, whose code cannot be told from the eval loop")]
    Jit,
    /// Where the code of the eval loop ends is not known.
    #[error("where the code of its eval loop begins and ends is not known: {0}")]
    EvalRange(&'static str),
    /// The interpreter has not set up what is needed.
    #[error("the interpreter is still starting")]
    NotReady,
    /// What is there is not what this release has.
    #[error("its memory is not as CPython {0}.{1} lays it out: {2}")]
    Offsets(u8, u8, &'static str),
    /// No C library's way to keep a thread's state fits.
    #[error("where its C library keeps a thread's state is not known")]
    ThreadKey,
    /// The kernel does not let us read the process's memory.
    #[error("its memory may not be read: that takes CAP_SYS_PTRACE")]
    Denied,
    /// A pointer leads nowhere: what is there is no interpreter, or one that changes.
    #[error("its memory makes no sense: a pointer leads nowhere")]
    Fault,
    /// The daemon has no descriptor left, or the machine no memory.
    #[error("emberscope has no file descriptor left to read it, or the machine no memory")]
    Exhausted,
}

impl PythonProblem {
    /// Trying again may help: an interpreter makes its first thread some milliseconds after its exec.
    pub const fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::NotFound
                | Self::NotReady
                | Self::Offsets(..)
                | Self::ThreadKey
                | Self::Fault
                | Self::Exhausted
        )
    }
}

impl From<ReadError> for PythonProblem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Fault => Self::Fault,
            ReadError::Gone => Self::Gone,
            ReadError::Denied => Self::Denied,
            ReadError::Exhausted => Self::Exhausted,
        }
    }
}

impl From<Refusal> for PythonProblem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::ProcessGone => Self::Gone,
            Refusal::Exhausted => Self::Exhausted,
            other => Self::File(other.sentence()),
        }
    }
}

impl From<PythonProblem> for Problem {
    fn from(problem: PythonProblem) -> Self {
        match problem {
            PythonProblem::Gone => Self::Gone,
            PythonProblem::Exhausted => Self::Exhausted,
            problem if problem.may_pass() => Self::NotNow(problem.to_string()),
            problem => Self::Never(problem.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_descriptors_is_a_reason_of_its_own_and_passes() {
        for problem in [PythonProblem::from(ReadError::Exhausted), Refusal::Exhausted.into()] {
            assert!(problem.may_pass() && problem.to_string() == Problem::Exhausted.to_string());
            assert_eq!(Problem::from(problem), Problem::Exhausted);
        }
    }
}
