//! What the programs are told before they are loaded, by the names of their globals.

use super::super::features::HostFeatures;
use super::super::probe::{ACCOUNTS, THROTTLE};
use super::super::workers;
use emberscope_model::{MAX_NAMED, NamedEvent, SampleKind};

/// What a sample weighs, of kinds that are sampled each so many units.
pub const EVERY: [(&str, SampleKind); 4] = [
    ("FAULTS_EVERY", SampleKind::PageFaults),
    ("MAJOR_FAULTS_EVERY", SampleKind::MajorFaults),
    ("SWITCHES_EVERY", SampleKind::Switches),
    ("ALLOC_EVERY", SampleKind::Alloc),
];

/// Each how many of a named event there is a sample, by slot.
pub fn named_every(named: &[NamedEvent]) -> [u64; MAX_NAMED] {
    let mut every = [1; MAX_NAMED];
    every.iter_mut().zip(named).for_each(|(every, event)| *every = event.every.max(1));
    every
}

/// What this kernel can do, as 1 or 0, and where fields of its structures are; 0: not known.
pub fn kernel(features: &HostFeatures) -> Vec<(&'static str, u32)> {
    let can = [
        ("HAS_TASK_PT_REGS", u32::from(features.task_pt_regs)),
        ("SEES_RECEIVED", u32::from(workers::sees_received(features))),
    ];
    let offsets = &features.offsets;
    let offsets = [
        ("TASK_STATE", offsets.task_state),
        ("TASK_FLAGS", offsets.task_flags),
        ("TASK_PID", offsets.task_pid),
        ("TASK_TGID", offsets.task_tgid),
        ("TASK_ON_CPU", offsets.task_on_cpu),
        ("TASK_MM", offsets.task_mm),
        ("TASK_THREAD_POINTER", offsets.thread_pointer),
        ("MM_START_STACK", offsets.mm_start_stack),
        ("TASK_SIGNAL", offsets.task_signal),
        ("SIGNAL_LIVE", offsets.signal_live),
        ("SOCK_NUM", offsets.sock_num),
        ("SOCK_DPORT", offsets.sock_dport),
        ("SOCK_NET", offsets.sock_net),
        ("SOCK_FAMILY", offsets.sock_family),
        ("UNIX_PEER", offsets.unix_peer),
    ];
    let accounts = ACCOUNTS.iter().map(|field| field.global).zip(features.offsets.accounts.0);
    let throttle = features.offsets.throttle.map(|offsets| offsets.0.map(Some)).unwrap_or_default();
    let throttle = THROTTLE.iter().map(|(global, _)| *global).zip(throttle);
    let offsets = offsets.into_iter().chain(accounts).chain(throttle);
    can.into_iter().chain(offsets.map(|(name, at)| (name, at.unwrap_or(0)))).collect()
}
