//! Pauses of JVMs: probes on functions that HotSpot runs once a pause, three for each libjvm file.
//!
//! In: an open file and where in it the functions are. Out: the kernel tells each pause of every watched process that maps
//! the file, as profiler-ebpf's `pauses.rs` says. Files are those that have a probe on their naming function too, so that
//! their number is bounded with those.

use super::error::CaptureError;
use super::loader;
use super::session::Capture;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeLinkId, UProbeScope};
use emberscope_model::{FileId, PauseProbe};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Where a program's function is; None: another program is for it.
type At = fn(&PauseProbe) -> Option<u64>;

/// The programs, with the function that each is for; the end first, so that no pause begins that is not seen ending.
pub(super) const PROGRAMS: [(&str, At); 4] = [
    ("pause_ends", |probe| Some(probe.end)),
    ("pause_operation", |probe| Some(probe.operation)),
    ("pause_begins", |probe| (!probe.since).then_some(probe.begin)),
    ("pause_begins_since", |probe| probe.since.then_some(probe.begin)),
];

/// Links of the probes that are attached, by file: each with its program.
pub(super) struct PauseProbes {
    wanted: bool,
    links: BTreeMap<FileId, Vec<(&'static str, UProbeLinkId)>>,
}

impl PauseProbes {
    /// None yet.
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, links: BTreeMap::new() }
    }
}

impl Capture {
    /// Whether pauses are seen, in files that are given.
    pub fn has_pauses(&self) -> bool {
        self.pauses.wanted
    }

    /// From now on, pauses of watched processes that map this file are told. A file is probed once. `file` is not needed
    /// afterwards. To be called where [`Self::has_pauses`].
    ///
    /// # Errors
    /// The kernel refuses a probe; then there is none.
    pub fn watch_pauses(
        &mut self,
        id: FileId,
        file: BorrowedFd<'_>,
        probe: PauseProbe,
    ) -> Result<(), CaptureError> {
        if self.pauses.links.contains_key(&id) {
            return Ok(());
        }
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut links = Vec::new();
        for (name, offset) in PROGRAMS.into_iter().filter_map(|(name, at)| Some((name, at(&probe)?))) {
            let program: &mut UProbe = loader::program(&mut self.ebpf, name)?;
            let location = UProbeAttachLocation::AbsoluteOffset(offset);
            match program.attach(location, &path, UProbeScope::AllProcesses) {
                Ok(link) => links.push((name, link)),
                Err(error) => {
                    self.detach_pauses(links)?;
                    return Err(CaptureError::attach(name, error));
                }
            }
        }
        self.pauses.links.insert(id, links);
        Ok(())
    }

    /// Takes the file's probes away; a file without is fine.
    ///
    /// # Errors
    /// A probe stays.
    pub fn unwatch_pauses(&mut self, id: FileId) -> Result<(), CaptureError> {
        let Some(links) = self.pauses.links.remove(&id) else { return Ok(()) };
        self.detach_pauses(links)
    }

    fn detach_pauses(&mut self, links: Vec<(&'static str, UProbeLinkId)>) -> Result<(), CaptureError> {
        links.into_iter().try_for_each(|(name, link)| {
            let program: &mut UProbe = loader::program(&mut self.ebpf, name)?;
            program.detach(link).map_err(|e| CaptureError::attach(name, e))
        })
    }
}
