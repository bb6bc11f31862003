//! Pauses of JVMs: probes on functions that HotSpot runs once a pause, three for each libjvm file.
//!
//! In: an open file and where in it the functions are. Out: the kernel tells each pause of every watched process that maps
//! the file, as profiler-ebpf's `pauses.rs` says. Files are those that have a probe on their naming function too, so that
//! their number is bounded with those.

use super::error::CaptureError;
use super::file_probes::{Detached, FileProbes};
use super::session::Capture;
use emberscope_model::{FileId, PauseProbe};
use std::os::fd::BorrowedFd;

/// Where a program's function is; None: another program is for it.
type At = fn(&PauseProbe) -> Option<u64>;

/// The programs, with the function that each is for; the end first, so that no pause begins that is not seen ending.
pub(super) const PROGRAMS: [(&str, At); 4] = [
    ("pause_ends", |probe| Some(probe.end)),
    ("pause_operation", |probe| Some(probe.operation)),
    ("pause_begins", |probe| (!probe.since).then_some(probe.begin)),
    ("pause_begins_since", |probe| probe.since.then_some(probe.begin)),
];

/// The probes, and whether there are to be any.
pub(super) struct PauseProbes {
    wanted: bool,
    pub(super) probes: FileProbes,
}

impl PauseProbes {
    /// None yet.
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, probes: FileProbes::default() }
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
        let probes = PROGRAMS.into_iter().filter_map(|(name, at)| Some((name, at(&probe)?)));
        self.pauses.probes.attach(&mut self.ebpf, id, file, probes)
    }

    /// Takes the file's probes away, which are gone when what comes out is dropped; a file without is fine.
    ///
    /// # Errors
    /// A probe stays.
    pub fn unwatch_pauses(&mut self, id: FileId) -> Result<Detached, CaptureError> {
        self.pauses.probes.detach(&mut self.ebpf, id)
    }
}
