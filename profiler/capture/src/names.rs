//! Probes on the functions by which JVMs name their threads, one for each libjvm file.
//!
//! In: an open file and where in it the function is. Out: the kernel tells each name that a thread gives
//! itself, in every process that maps the file ([`super::file_probes`]). At most [`MAX_PROBES`] files.

use super::error::CaptureError;
use super::file_probes::{Detached, FileProbes};
use aya::Ebpf;
use emberscope_model::{FileId, NameProbe};
use std::os::fd::BorrowedFd;

/// Files probed at once, at most. A node has some JDKs, and each container image brings its own; every process
/// that maps a probed file costs the kernel a breakpoint in it.
pub const MAX_PROBES: usize = 256;

/// Tells whose thread names itself, where waits are sampled and the naming function does not.
const WHOSE: &str = "java_names_itself";

/// The programs for a naming function, and where each is attached.
fn programs_of(probe: NameProbe, waits: bool) -> impl Iterator<Item = (&'static str, u64)> {
    let (name, whose) = match probe {
        NameProbe::NativeName { offset, by_java } => (("thread_named", offset), by_java.filter(|_| waits)),
        NameProbe::JavaName { offset } => (("thread_named_java", offset), None),
    };
    [Some(name), whose.map(|offset| (WHOSE, offset))].into_iter().flatten()
}

/// The programs: one for each way in which a name is handed over, and who names itself.
pub(super) const PROGRAMS: [&str; 3] = ["thread_named", "thread_named_java", WHOSE];

/// The probes that are attached.
#[derive(Default)]
pub(super) struct NameProbes(FileProbes);

impl NameProbes {
    /// Attaches a probe, unless the file has one already. `waits`: waits of threads are sampled.
    pub(super) fn attach(
        &mut self,
        ebpf: &mut Ebpf,
        id: FileId,
        file: BorrowedFd<'_>,
        probe: NameProbe,
        waits: bool,
    ) -> Result<(), CaptureError> {
        if !self.0.has(id) && self.0.len() >= MAX_PROBES {
            return Err(CaptureError::TooMany { what: "files with a naming function", limit: MAX_PROBES });
        }
        self.0.attach(ebpf, id, file, programs_of(probe, waits))
    }

    /// Takes a file's probe away, if it has one.
    pub(super) fn detach(&mut self, ebpf: &mut Ebpf, id: FileId) -> Result<Detached, CaptureError> {
        self.0.detach(ebpf, id)
    }

    /// Whether a file's old probe is still being taken away.
    pub(super) fn has_going(&self, id: FileId) -> bool {
        self.0.has_going(id)
    }

    /// How many files have a probe.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
