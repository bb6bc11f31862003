//! CPython as a [`Runtime`]: its processes opened, each for its layout and its frames' names.

use super::file::Files;
use super::merge::merge;
use super::names::Names;
use super::python::Python;
use emberscope_model::{StackEnd, UnknownReason};
use emberscope_runtime::{
    Answer, DeferredFrame, Fact, Facts, Layout, Meaning, Opened, Problem, Runtime, RuntimeId, Words,
};
use profiler_ebpf::{PythonFrameTag, PythonPlace, UserFrame};
use std::path::Path;

const WORDS: Words = Words {
    slug: "cpython",
    names_threads: false,
    unread: UnknownReason::PythonUnreadable,
    // Its native frames are walked whatever is known of it: generated code in them has no table in either case.
    not_ready: StackEnd::NoTable,
    not_known: StackEnd::NoTable,
    opening: "its interpreter is being looked at",
    walked: "Python frames are walked by the interpreter's own structures",
    by_frame_pointers: "only its native frames are shown",
    facts: &["python"],
    counts: &[],
};

/// Releases, as facts.
const RELEASES: [&str; 7] = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"];

/// The runtime: what is known of interpreters' files, shared by all processes.
#[derive(Debug, Default)]
pub struct CPython {
    files: Files,
}

impl Runtime for CPython {
    fn id(&self) -> RuntimeId {
        RuntimeId::CPYTHON
    }

    fn words(&self) -> &'static Words {
        &WORDS
    }

    /// A shared library, a program, or PyPy, which is told apart when it is opened.
    fn marks(&self) -> &'static [&'static str] {
        &["/libpython3.", "/bin/python3.", "/libpypy3"]
    }

    fn open(&self, dir: &Path, start_ticks: u64) -> Result<Box<dyn Opened>, Problem> {
        let python = Python::open(dir, start_ticks, &self.files)?;
        Ok(Box::new(OpenPython { python, names: Names::default() }))
    }

    /// A code object with its checksum is not another's.
    fn meaning(&self, _: &DeferredFrame) -> Meaning {
        Meaning::Forever
    }

    /// Its code object, which goes when its last reference does: with a module that is loaded again, or a function that is
    /// made for one call.
    fn passing(&self, frame: &DeferredFrame) -> Option<u64> {
        let tag = PythonFrameTag::from_number(frame.frame.kind);
        let is_function = matches!(tag, Some(PythonFrameTag::Function | PythonFrameTag::Entry));
        // Addresses of objects have their lowest three bits free, and end below 2^47.
        let code = PythonPlace(frame.frame.value).code() >> 3;
        is_function.then(|| code ^ u64::from(frame.frame.cookie) << 32)
    }

    fn arranged(&self, user: &[UserFrame], end: StackEnd) -> Option<Vec<UserFrame>> {
        Some(merge(user, end == StackEnd::Root))
    }
}

/// An interpreter, opened once.
struct OpenPython {
    python: Python,
    names: Names,
}

impl Opened for OpenPython {
    fn layout(&mut self) -> Result<Layout, Problem> {
        Ok(Layout::new(RuntimeId::CPYTHON, &self.python.layout()?.to_bytes()))
    }

    fn name(&mut self, frames: &[DeferredFrame]) -> Vec<Answer> {
        frames.iter().map(|frame| self.names.name(&self.python, frame)).collect()
    }

    fn facts(&mut self) -> Result<Facts, Problem> {
        let release = RELEASES.get(usize::from(self.python.minor).saturating_sub(8)).copied();
        Ok(Facts(vec![("python", Fact::Text(release.unwrap_or("3")))]))
    }

    fn share(&mut self, held: usize) {
        self.names.share(held);
    }
}
