//! Uprobes on functions of files: on each file all that are asked for, or none.
//!
//! In: an open file, where in it the functions are, and the program of each. Out: the programs run in every process that
//! maps the file, whatever mount namespace or container it is in: a probe is on the inode (kernel/events/uprobes.c).
//! Files are attached to by descriptor, so no path of a target is walked. How many files there may be is the caller's.

use super::error::CaptureError;
use super::loader;
use aya::Ebpf;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeLink, UProbeLinkId, UProbeScope};
use emberscope_model::FileId;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Arc, Weak};

/// A probe that is to be attached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// The program.
    pub(super) program: &'static str,
    /// Where in the file the function is.
    pub(super) offset: u64,
    /// What the program is told of the function, where there are several (`bpf_get_attach_cookie`, Linux 5.15).
    pub(super) cookie: Option<u64>,
}

impl From<(&'static str, u64)> for Probe {
    fn from((program, offset): (&'static str, u64)) -> Self {
        Self { program, offset, cookie: None }
    }
}

/// A probe that is attached: its program, and its link.
type Attached = (&'static str, UProbeLinkId);

/// Probes that are attached, by file.
#[derive(Default)]
pub(super) struct FileProbes {
    attached: BTreeMap<FileId, Vec<Attached>>,
    /// Files whose probes are being taken away.
    going: Vec<(FileId, Weak<()>)>,
}

/// Probes of a file that are on their way out: they are gone once this is dropped, on any thread. That lasts: the kernel waits
/// until no CPU is in them (uprobe_unregister_sync, kernel/events/uprobes.c), half a second on a busy machine.
pub struct Detached {
    /// Dropped before the sign that they are gone.
    links: Vec<UProbeLink>,
    _going: Arc<()>,
}

impl Detached {
    /// Whether there were no probes.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }
}

impl FileProbes {
    /// Attaches programs, each at an offset of the file, unless the file has some already. `file` is not needed afterwards.
    ///
    /// # Errors
    /// [`CaptureError::ProbesGoing`]: old ones are still being taken away. The kernel refuses a probe. Then the file has no
    /// new ones.
    pub(super) fn attach(
        &mut self,
        ebpf: &mut Ebpf,
        id: FileId,
        file: BorrowedFd<'_>,
        probes: impl IntoIterator<Item: Into<Probe>>,
    ) -> Result<(), CaptureError> {
        if self.has(id) {
            return Ok(());
        }
        if self.has_going(id) {
            return Err(CaptureError::ProbesGoing);
        }
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut links = Vec::new();
        for probe in probes {
            let Probe { program: name, offset, cookie } = probe.into();
            let program: &mut UProbe = loader::program(ebpf, name)?;
            let point = UProbeAttachPoint { location: UProbeAttachLocation::AbsoluteOffset(offset), cookie };
            match program.attach(point, &path, UProbeScope::AllProcesses) {
                Ok(link) => links.push((name, link)),
                Err(error) => {
                    drop(take(ebpf, links)?);
                    return Err(CaptureError::attach(name, error));
                }
            }
        }
        self.attached.insert(id, links);
        Ok(())
    }

    /// Takes a file's probes away; a file without is fine.
    ///
    /// # Errors
    /// A probe stays.
    pub(super) fn detach(&mut self, ebpf: &mut Ebpf, id: FileId) -> Result<Detached, CaptureError> {
        let links = take(ebpf, self.attached.remove(&id).unwrap_or_default())?;
        let going = Arc::new(());
        self.going.retain(|(_, going)| going.strong_count() > 0);
        if !links.is_empty() {
            self.going.push((id, Arc::downgrade(&going)));
        }
        Ok(Detached { links, _going: going })
    }

    /// Whether a file's old probes are still being taken away: what they and new ones tell would be told twice.
    pub(super) fn has_going(&self, id: FileId) -> bool {
        self.going.iter().any(|(of, going)| *of == id && going.strong_count() > 0)
    }

    /// Whether a file has probes.
    pub(super) fn has(&self, id: FileId) -> bool {
        self.attached.contains_key(&id)
    }

    /// How many files have probes.
    pub(super) fn len(&self) -> usize {
        self.attached.len()
    }
}

fn take(ebpf: &mut Ebpf, links: Vec<Attached>) -> Result<Vec<UProbeLink>, CaptureError> {
    let take = |(name, link)| {
        let program: &mut UProbe = loader::program(ebpf, name)?;
        program.take_link(link).map_err(|e| CaptureError::attach(name, e))
    };
    links.into_iter().map(take).collect()
}
