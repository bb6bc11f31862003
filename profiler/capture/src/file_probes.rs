//! Uprobes on functions of files: on each file all that are asked for, or none.
//!
//! In: an open file, where in it the functions are, and the program of each. Out: the programs run in every process that
//! maps the file, whatever mount namespace or container it is in: a probe is on the inode (kernel/events/uprobes.c).
//! Files are attached to by descriptor, so no path of a target is walked. How many files there may be is the caller's.

use super::error::CaptureError;
use super::loader;
use aya::Ebpf;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeLinkId, UProbeScope};
use emberscope_model::FileId;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A probe that is attached: its program, and its link.
type Attached = (&'static str, UProbeLinkId);

/// Probes that are attached, by file.
#[derive(Default)]
pub(super) struct FileProbes(BTreeMap<FileId, Vec<Attached>>);

impl FileProbes {
    /// Attaches programs, each at an offset of the file, unless the file has some already. `file` is not needed afterwards.
    ///
    /// # Errors
    /// The kernel refuses a probe; then the file has none.
    pub(super) fn attach(
        &mut self,
        ebpf: &mut Ebpf,
        id: FileId,
        file: BorrowedFd<'_>,
        probes: impl IntoIterator<Item = (&'static str, u64)>,
    ) -> Result<(), CaptureError> {
        if self.has(id) {
            return Ok(());
        }
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut links = Vec::new();
        for (name, offset) in probes {
            let program: &mut UProbe = loader::program(ebpf, name)?;
            let location = UProbeAttachLocation::AbsoluteOffset(offset);
            match program.attach(location, &path, UProbeScope::AllProcesses) {
                Ok(link) => links.push((name, link)),
                Err(error) => {
                    detach(ebpf, links)?;
                    return Err(CaptureError::attach(name, error));
                }
            }
        }
        self.0.insert(id, links);
        Ok(())
    }

    /// Takes a file's probes away; a file without is fine.
    ///
    /// # Errors
    /// A probe stays.
    pub(super) fn detach(&mut self, ebpf: &mut Ebpf, id: FileId) -> Result<(), CaptureError> {
        detach(ebpf, self.0.remove(&id).unwrap_or_default())
    }

    /// Whether a file has probes.
    pub(super) fn has(&self, id: FileId) -> bool {
        self.0.contains_key(&id)
    }

    /// How many files have probes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn detach(ebpf: &mut Ebpf, links: Vec<Attached>) -> Result<(), CaptureError> {
    links.into_iter().try_for_each(|(name, link)| {
        let program: &mut UProbe = loader::program(ebpf, name)?;
        program.detach(link).map_err(|e| CaptureError::attach(name, e))
    })
}
