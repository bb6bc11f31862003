//! What a host that lacks something is told of it.

use super::*;

/// A host without anything.
pub(in super::super) fn bare() -> HostFeatures {
    HostFeatures {
        kernel: "5.9.0".into(),
        capabilities: Capabilities::default(),
        btf: Err("no such file".into()),
        ring_buffer: false,
        perf_event_programs: false,
        raw_tracepoints: false,
        bpf_loop: false,
        task_pt_regs: false,
        uprobes: Err("no such file".into()),
        task_iterator: Err("no type information".into()),
        wake_ups: false,
        socket_sends: false,
        socket_receives: false,
        tracefs: Err("there is no tracefs: mount it at /sys/kernel/tracing".into()),
        mmap_events: Err("opening a perf event failed: Operation not permitted".into()),
        perf_event_paranoid: None,
        kptr_restrict: Some(1),
        perf_event_max_stack: None,
        memlock: String::new(),
        offsets: KernelOffsets::default(),
    }
}

#[test]
fn what_is_missing_is_named_with_its_mend() {
    let findings = bare().findings();
    let of = |name| findings.iter().find(|f| f.name == name).expect("listed");
    assert_eq!(of("capabilities").state, FindingState::Fatal);
    assert!(of("capabilities").sentence.contains("CAP_BPF and CAP_PERFMON"));
    assert_eq!(of("btf").state, FindingState::Degraded);
    assert!(of("btf").sentence.contains("no such file"));
    assert_eq!(of("tracefs").state, FindingState::Degraded);
    assert!(of("tracefs").sentence.contains("mount it at /sys/kernel/tracing"));
    assert_eq!(of("kptr_restrict").state, FindingState::Degraded);
    assert!(findings.iter().all(|f| f.sentence.is_empty() || f.sentence.ends_with('.')));
}

#[test]
fn sys_admin_stands_for_the_finer_capabilities() {
    let caps = |bits: &[u32]| Capabilities { effective: bits.iter().map(|b| 1u64 << b).sum() };
    assert!(caps(&[CAP_SYS_ADMIN]).missing_for_capture().is_empty());
    assert!(caps(&[CAP_BPF, CAP_PERFMON]).missing_for_capture().is_empty());
    assert_eq!(caps(&[CAP_BPF]).missing_for_capture(), ["CAP_PERFMON"]);
    assert!(!caps(&[CAP_BPF, CAP_PERFMON]).may_measure());
}
