//! Facts and identities of processes that were recorded from real Spark, read through a fake /proc.

use super::facts::ProcessFacts;
use super::identity::{Identity, identify};
use super::procfs::{ProcRoot, ReadError};
use super::users::Users;
use emberscope_model::Pid;
pub(crate) use emberscope_testkit::{FakeProc, FakeProcess, fixture, stat_line};

/// A fake /proc as this room reads it.
pub(crate) trait ReadFake {
    fn root(&self) -> ProcRoot;
    fn facts(&self, pid: Pid) -> Result<ProcessFacts, ReadError>;
}

impl ReadFake for FakeProc {
    fn root(&self) -> ProcRoot {
        ProcRoot::new(self.path())
    }
    fn facts(&self, pid: Pid) -> Result<ProcessFacts, ReadError> {
        ProcessFacts::read(&self.root(), &mut Users::new(self.passwd()), pid)
    }
}

/// The words of a recorded process.
pub(crate) fn fixture_words(name: &str) -> Vec<String> {
    fixture(name)["words"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect()
}

/// Facts of a recorded process, read through a fake proc root.
pub(crate) fn recorded(name: &str) -> ProcessFacts {
    let fake = FakeProc::new();
    let pid = fake.recorded(name);
    fake.facts(pid).unwrap()
}

/// Facts of a process with these words and variables.
pub(crate) fn facts_of(words: &[&str], environ: &[&str]) -> ProcessFacts {
    let comm = words.first().map_or("x", |w| w.rsplit('/').next().unwrap());
    let fake = FakeProc::new();
    fake.process(77, 1, comm, 100).words(words).environ(environ);
    fake.facts(77).unwrap()
}

/// The identity of a process with these words and variables.
pub(crate) fn identity_of(words: &[&str], environ: &[&str]) -> Identity {
    identify(&facts_of(words, environ))
}
