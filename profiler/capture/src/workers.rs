//! Who of the node's processes are PySpark's: executors, Python daemons and workers, told to the programs that bind workers to
//! tasks.
//!
//! The programs add a Python daemon's children themselves, and drop who ends or runs another program. Wake-ups and packets
//! are watched only while [`Capture::watch_workers`] says so: each of the whole node costs something. At most [`MAX_PARTIES`].
// For `aya::Pod`.
#![allow(unsafe_code)]

use super::error::CaptureError;
use super::features::HostFeatures;
use super::loader;
use super::session::Capture;
use aya::maps::{HashMap, MapData, MapError};
use aya::programs::RawTracePoint;
use aya::programs::raw_trace_point::RawTracePointLinkId;
use emberscope_model::Pid;
use profiler_ebpf::{MAX_PARTIES, Party, PartyKind};

/// What ends bindings that outlive their task.
const RECEIVES: &str = "worker_receives";

/// A program, and its tracepoint.
pub(super) type Binder = (&'static str, &'static str);

/// What this host lacks for binding workers to tasks, and so for measuring how long tasks wait for them.
pub(super) fn lacks(features: &HostFeatures) -> Result<(), String> {
    let needed = [
        (features.raw_tracepoints, "BPF programs on raw tracepoints"),
        (features.wake_ups, "the tracepoint sched:sched_waking in the kernel's type information"),
        (features.offsets.can_tell_child(), "the fields task_struct.pid and task_struct.tgid"),
    ];
    let missing: Vec<&str> = needed.iter().filter(|(there, _)| !there).map(|(_, what)| *what).collect();
    if missing.is_empty() { Ok(()) } else { Err(missing.join(", ")) }
}

/// The same for what is sent to a worker that does not wait for it.
pub(super) fn lacks_sends(features: &HostFeatures) -> Result<(), String> {
    if features.socket_sends && features.offsets.can_tell_sender() {
        return Ok(());
    }
    let tcp = features.task_pt_regs && features.offsets.can_tell_connection();
    Err(if tcp { "over TCP it is, by tcp:tcp_probe" } else { "nor is tcp:tcp_probe of use" }.to_owned())
}

/// Whether this kernel tells what sockets receive: then what a worker does after its task's end is the task's until it
/// receives something.
pub(super) fn sees_received(features: &HostFeatures) -> bool {
    lacks(features).is_ok() && features.socket_receives
}

/// The programs that this kernel can run, in the order in which they are attached.
pub(super) fn programs(features: &HostFeatures) -> Vec<Binder> {
    let wakes = lacks(features).is_ok();
    let sends = wakes && lacks_sends(features).is_ok();
    // Without registers it would take timers' packets for the interrupted thread's.
    let packets = wakes && !sends && features.task_pt_regs && features.offsets.can_tell_connection();
    let programs = [
        (sees_received(features), (RECEIVES, "sock_recv_length")),
        (wakes, ("worker_waking", "sched_waking")),
        (sends, ("worker_sends", "sock_send_length")),
        (packets, ("worker_packet", "tcp_probe")),
    ];
    programs.into_iter().filter_map(|(can, program)| can.then_some(program)).collect()
}

/// As the map has it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Entry(Party);

// SAFETY: integers without padding between them (its size is asserted where it is made).
unsafe impl aya::Pod for Entry {}

/// The map of PySpark's processes, and the programs that bind workers to tasks.
pub(super) struct Workers {
    pub(super) parties: HashMap<MapData, u32, Entry>,
    pub(super) binders: Vec<Binder>,
    /// The programs that are attached, and their links.
    pub(super) links: Vec<(&'static str, RawTracePointLinkId)>,
}

impl Capture {
    /// A process of PySpark's. A worker that the programs know already keeps what they know of it.
    ///
    /// # Errors
    /// There is no room.
    pub fn set_party(&mut self, pid: Pid, kind: PartyKind, executor: Pid) -> Result<(), CaptureError> {
        let parties = &mut self.workers.parties;
        let new = Party::new(kind, executor);
        if parties.get(&pid, 0).is_ok_and(|Entry(old)| (old.kind, old.executor) == (new.kind, new.executor)) {
            return Ok(());
        }
        parties.insert(pid, Entry(new), 0).map_err(|error| match error {
            MapError::SyscallError(e) if e.io_error.raw_os_error() == Some(libc::E2BIG) => {
                CaptureError::TooMany { what: "processes of PySpark", limit: MAX_PARTIES as usize }
            }
            error => CaptureError::Map { name: "PARTIES", source: error.into() },
        })
    }

    /// The process is none of PySpark's any more; one that never was is fine.
    pub fn forget_party(&mut self, pid: Pid) {
        let _ = self.workers.parties.remove(&pid);
    }

    /// Whether workers' wake-ups and packets are watched from now on.
    ///
    /// # Errors
    /// A tracepoint cannot be attached to; the others are, but for the first: without it a worker would keep a task that is over.
    pub fn watch_workers(&mut self, watch: bool) -> Result<(), CaptureError> {
        let workers = &mut self.workers;
        if !watch {
            for (name, link) in workers.links.drain(..) {
                let program: &mut RawTracePoint = loader::program(&mut self.ebpf, name)?;
                program.detach(link).map_err(|e| CaptureError::attach(name, e))?;
            }
            return Ok(());
        }
        if !workers.links.is_empty() {
            return Ok(());
        }
        let mut failed = Ok(());
        for (name, tracepoint) in &workers.binders {
            let program: &mut RawTracePoint = loader::program(&mut self.ebpf, name)?;
            match program.attach(tracepoint) {
                Ok(link) => workers.links.push((*name, link)),
                Err(error) if *name == RECEIVES => return Err(CaptureError::attach(name, error)),
                Err(error) => failed = Err(CaptureError::attach(name, error)),
            }
        }
        failed
    }
}
