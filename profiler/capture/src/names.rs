//! Probes on the functions by which JVMs name their threads, one for each libjvm file.
//!
//! In: an open file and where in it the function is. Out: the kernel tells each name that a thread gives
//! itself, in every process that maps the file, whatever mount namespace or container it is in: a probe is on
//! the inode (kernel/events/uprobes.c). Files are attached to by descriptor, so no path of a target is walked.
//! At most [`MAX_PROBES`] files.

use super::error::CaptureError;
use super::loader;
use aya::Ebpf;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeLinkId, UProbeScope};
use emberscope_model::{FileId, NameProbe};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Files probed at once, at most. A node has some JDKs, and each container image brings its own; every process
/// that maps a probed file costs the kernel a breakpoint in it.
pub const MAX_PROBES: usize = 256;

/// The program for a naming function, and where it is attached.
fn program_of(probe: NameProbe) -> (&'static str, u64) {
    match probe {
        NameProbe::NativeName { offset } => ("thread_named", offset),
        NameProbe::JavaName { offset } => ("thread_named_java", offset),
    }
}

/// The programs, one for each way in which a name is handed over.
pub(super) const PROGRAMS: [&str; 2] = ["thread_named", "thread_named_java"];

/// The probes that are attached, by file: program and link.
#[derive(Default)]
pub(super) struct NameProbes(BTreeMap<FileId, (&'static str, UProbeLinkId)>);

impl NameProbes {
    /// Attaches a probe, unless the file has one already.
    pub(super) fn attach(
        &mut self,
        ebpf: &mut Ebpf,
        id: FileId,
        file: BorrowedFd<'_>,
        probe: NameProbe,
    ) -> Result<(), CaptureError> {
        if self.0.contains_key(&id) {
            return Ok(());
        }
        if self.0.len() >= MAX_PROBES {
            return Err(CaptureError::TooMany { what: "files with a naming function", limit: MAX_PROBES });
        }
        let (name, offset) = program_of(probe);
        let program: &mut UProbe = loader::program(ebpf, name)?;
        let link = program
            .attach(
                UProbeAttachLocation::AbsoluteOffset(offset),
                format!("/proc/self/fd/{}", file.as_raw_fd()),
                UProbeScope::AllProcesses,
            )
            .map_err(|e| CaptureError::attach(name, e))?;
        self.0.insert(id, (name, link));
        Ok(())
    }

    /// Takes a file's probe away, if it has one.
    pub(super) fn detach(&mut self, ebpf: &mut Ebpf, id: FileId) -> Result<(), CaptureError> {
        let Some((name, link)) = self.0.remove(&id) else { return Ok(()) };
        let program: &mut UProbe = loader::program(ebpf, name)?;
        program.detach(link).map_err(|e| CaptureError::attach(name, e))
    }

    /// How many files have a probe.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
