//! What is to be known of each kind: a table each.

use super::{Amount, KindFacts, Pace, SampleKind, Scale, ValueFacts};
use crate::{WaitReason, sampling_error};
use profiler_ebpf::SampleKindTag;

pub(super) static CPU: KindFacts = KindFacts {
    slug: "cpu",
    tag: Some(SampleKindTag::Cpu),
    made_of: None,
    holds: &[SampleKind::Cpu],
    reason: None,
    title: "CPU time",
    weight: ValueFacts { name: "cpu", unit: "nanoseconds" },
    period: ValueFacts { name: "cpu", unit: "nanoseconds" },
    pace: Pace::Hz,
    measured: false,
    profile: "process_cpu",
    unit: "ns",
    column: "CPU",
    amount: Amount { key: "cpu_seconds", of: 1_000_000_000 },
    picture: Scale { unit: "ms", of: 1e6 },
    whole: Scale { unit: "us", of: 1e3 },
    error: sampling_error,
    colour: [45.0, 0.15, 0.72],
    none: "No CPU time in this selection: its threads slept, waited, or were elsewhere.",
};

/// perf's software event (kernel/events/core.c, PERF_COUNT_SW_PAGE_FAULTS): minor and major faults of user memory, in
/// user mode and in system calls. With 4 KB pages 256 are a MB that was touched first.
pub(super) static PAGE_FAULTS: KindFacts = KindFacts {
    slug: "page-faults",
    tag: Some(SampleKindTag::PageFaults),
    made_of: None,
    holds: &[SampleKind::PageFaults],
    reason: None,
    title: "page faults",
    weight: ValueFacts { name: "page_faults", unit: "count" },
    period: ValueFacts { name: "page_faults", unit: "count" },
    pace: Pace::Every(256),
    measured: false,
    profile: "page_faults",
    unit: "faults",
    column: "FAULTS",
    amount: Amount { key: "page_faults", of: 1 },
    picture: Scale { unit: "faults", of: 1.0 },
    whole: Scale { unit: "faults", of: 1.0 },
    error: sampling_error,
    colour: [160.0, 0.12, 0.7],
    none: "No page faults in this selection, or they are not sampled: --events cpu,off-cpu,page-faults.",
};

/// perf's software event PERF_COUNT_SW_PAGE_FAULTS_MAJ, which counts in PERF_COUNT_SW_PAGE_FAULTS as well. A few thousand a
/// second are a disk's whole time, so each of them may be a sample.
pub(super) static MAJOR_FAULTS: KindFacts = KindFacts {
    slug: "major-faults",
    tag: Some(SampleKindTag::MajorFaults),
    made_of: None,
    holds: &[SampleKind::MajorFaults],
    reason: None,
    title: "major page faults",
    weight: ValueFacts { name: "major_faults", unit: "count" },
    period: ValueFacts { name: "major_faults", unit: "count" },
    pace: Pace::Every(1),
    measured: false,
    profile: "major_faults",
    unit: "faults",
    column: "MAJOR FAULTS",
    amount: Amount { key: "major_faults", of: 1 },
    picture: Scale { unit: "faults", of: 1.0 },
    whole: Scale { unit: "faults", of: 1.0 },
    error: sampling_error,
    colour: [190.0, 0.12, 0.7],
    none: "No major page faults in this selection, or they are not sampled: --events cpu,off-cpu,major-faults.",
};

/// perf's software event PERF_COUNT_SW_CONTEXT_SWITCHES, of the thread that leaves (kernel/events/core.c,
/// perf_event_task_sched_out): where threads hand their CPU over, whether to wait or because their turn was over.
/// A CPU counts its idle thread's as well, so that with one busy thread each second is that one's: an even period would take
/// all of its switches, or none. A prime one is in step with no such pattern.
pub(super) static SWITCHES: KindFacts = KindFacts {
    slug: "context-switches",
    tag: Some(SampleKindTag::Switches),
    made_of: None,
    holds: &[SampleKind::Switches],
    reason: None,
    title: "context switches",
    weight: ValueFacts { name: "context_switches", unit: "count" },
    period: ValueFacts { name: "context_switches", unit: "count" },
    pace: Pace::Every(101),
    measured: false,
    profile: "context_switches",
    unit: "switches",
    column: "SWITCHES",
    amount: Amount { key: "context_switches", of: 1 },
    picture: Scale { unit: "switches", of: 1.0 },
    whole: Scale { unit: "switches", of: 1.0 },
    error: sampling_error,
    colour: [330.0, 0.1, 0.7],
    none: "No context switches in this selection, or they are not sampled: --events cpu,off-cpu,context-switches.",
};

/// Events that a user named, each with its own period: a sample weighs what it stands for. Several are told apart by the label
/// `event`.
pub(super) static EVENT: KindFacts = KindFacts {
    slug: "event",
    tag: Some(SampleKindTag::Event),
    made_of: None,
    holds: &[SampleKind::Event],
    reason: None,
    title: "named events",
    weight: ValueFacts { name: "events", unit: "count" },
    period: ValueFacts { name: "events", unit: "count" },
    pace: Pace::Every(1),
    measured: false,
    profile: "event",
    unit: "events",
    column: "EVENTS",
    amount: Amount { key: "events", of: 1 },
    picture: Scale { unit: "events", of: 1.0 },
    whole: Scale { unit: "events", of: 1.0 },
    error: sampling_error,
    colour: [70.0, 0.12, 0.72],
    none: "No named events in this selection, or none are sampled: --events cpu,off-cpu,block:block_rq_issue.",
};

/// What `block_rq_issue` and `block_rq_complete` tell: how long a device had a request. Several at once count each, so that a
/// second of a disk may have many seconds.
pub(super) static BLOCK_IO: KindFacts = KindFacts {
    slug: "block-io",
    tag: Some(SampleKindTag::BlockIo),
    made_of: None,
    holds: &[SampleKind::BlockIo],
    reason: None,
    title: "time of disk requests",
    weight: ValueFacts { name: "block_io", unit: "nanoseconds" },
    period: ValueFacts { name: "requests", unit: "count" },
    pace: Pace::Every(1),
    measured: true,
    profile: "block_io",
    unit: "ns",
    column: "DISK",
    amount: Amount { key: "block_io_seconds", of: 1_000_000_000 },
    picture: Scale { unit: "ms", of: 1e6 },
    whole: Scale { unit: "us", of: 1e3 },
    error: sampling_error,
    colour: [220.0, 0.12, 0.68],
    none: "No disk requests in this selection, or they are not sampled: --events cpu,off-cpu,block-io.",
};

/// Waits of threads that run a task, each as long as it lasted (profiler-ebpf, `waiter.rs`): amounts are exact until they are stored, and
/// what is estimated is which of a place's stacks they belong to. In a place they hardly differ (same system call,
/// same depth), so that 20 stacks a second of a thread that waits all the time do, and its walks cost 1/5,000 of a
/// CPU.
pub(super) static OFF_CPU: KindFacts = KindFacts {
    slug: "off-cpu",
    tag: Some(SampleKindTag::OffCpu),
    made_of: None,
    holds: &[SampleKind::OffCpu],
    reason: None,
    title: "waiting",
    weight: ValueFacts { name: "off_cpu", unit: "nanoseconds" },
    period: ValueFacts { name: "off_cpu", unit: "nanoseconds" },
    pace: Pace::Every(50_000_000),
    measured: true,
    profile: "off_cpu",
    unit: "ns",
    column: "WAITED",
    amount: Amount { key: "off_cpu_seconds", of: 1_000_000_000 },
    picture: Scale { unit: "ms", of: 1e6 },
    whole: Scale { unit: "us", of: 1e3 },
    error: sampling_error,
    colour: [250.0, 0.12, 0.7],
    none: "No waits in this selection, or they are not sampled: --events cpu,off-cpu. Only waits of threads that run a task are.",
};

/// Of waits those for a monitor, a lock of java.util.concurrent or a native one: what async-profiler calls `lock`. Named as Go's
/// profiles of contention are, which Pyroscope knows.
pub(super) static LOCK: KindFacts = KindFacts {
    slug: "lock",
    tag: None,
    made_of: None,
    holds: &[SampleKind::OffCpu],
    reason: Some(WaitReason::Lock),
    title: "waiting for locks",
    weight: ValueFacts { name: "delay", unit: "nanoseconds" },
    period: ValueFacts { name: "contentions", unit: "count" },
    pace: Pace::Every(50_000_000),
    measured: false,
    profile: "mutex",
    unit: "ns",
    column: "WAITED",
    amount: Amount { key: "lock_seconds", of: 1_000_000_000 },
    picture: Scale { unit: "ms", of: 1e6 },
    whole: Scale { unit: "us", of: 1e3 },
    error: sampling_error,
    colour: [15.0, 0.13, 0.68],
    none: "No waits for locks in this selection, or waits are not sampled: --events cpu,off-cpu. Only waits of threads that run a task are.",
};

/// Of waits for locks how many: each time that a thread stood still for one, as the kernel saw it. A thread that is woken
/// and does not get the lock, or that looks again by itself (HotSpot's monitors up to JDK 23: after 1 ms, 8, 64, ..,
/// `ObjectMonitor::EnterI` in src/hotspot/share/runtime/objectMonitor.cpp), stands still again. One that gets it while it
/// spins did not. Named as Go's profiles of contention are, which Pyroscope knows.
pub(super) static CONTENTIONS: KindFacts = KindFacts {
    slug: "contentions",
    tag: None,
    made_of: Some(SampleKind::OffCpu),
    holds: &[SampleKind::Contentions],
    reason: None,
    title: "waits for locks",
    weight: ValueFacts { name: "contentions", unit: "count" },
    period: ValueFacts { name: "contentions", unit: "count" },
    pace: Pace::Every(50_000_000),
    measured: false,
    profile: "mutex",
    unit: "contentions",
    column: "CONTENTIONS",
    amount: Amount { key: "contentions", of: 1 },
    picture: Scale { unit: "contentions", of: 1.0 },
    whole: Scale { unit: "contentions", of: 1.0 },
    error: sampling_error,
    colour: [355.0, 0.12, 0.7],
    none: "No waits for locks in this selection, or waits are not sampled: --events cpu,off-cpu. Only waits of threads that run a task are.",
};

/// What HotSpot's AllocTracer reports: of a new thread-local buffer (TLAB) all its bytes, by the object that did not
/// fit into the one before; of an object outside of one its own. Samples weigh a period or, where an allocation is
/// larger, what it is (profiler-ebpf, `allocation.rs`), so that the error stated is the most that it can be. Named as
/// Go's profiles are, which pprof and Pyroscope know.
pub(super) static ALLOC: KindFacts = KindFacts {
    slug: "alloc",
    tag: Some(SampleKindTag::Alloc),
    made_of: None,
    holds: &[SampleKind::Alloc],
    reason: None,
    title: "allocated memory",
    weight: ValueFacts { name: "alloc_space", unit: "bytes" },
    period: ValueFacts { name: "space", unit: "bytes" },
    pace: Pace::Every(512 << 10),
    measured: true,
    profile: "memory",
    unit: "bytes",
    column: "ALLOCATED",
    amount: Amount { key: "allocated_bytes", of: 1 },
    picture: Scale { unit: "MiB", of: 1_048_576.0 },
    whole: Scale { unit: "KiB", of: 1024.0 },
    error: sampling_error,
    colour: [95.0, 0.12, 0.74],
    none: "No allocations by JVMs in this selection, or they are not sampled: --events cpu,off-cpu,alloc. The status says of which JVMs they cannot be.",
};

/// Of allocations how many objects: a sample's bytes over those of its object, so that a class's objects are as many as its bytes
/// make. The error stated is that of objects of one size: of a class with large and small ones (`byte[]`) few samples of
/// small ones are most of its objects. Named as Go's profiles are, which pprof and Pyroscope know.
pub(super) static ALLOC_OBJECTS: KindFacts = KindFacts {
    slug: "alloc-objects",
    tag: None,
    made_of: Some(SampleKind::Alloc),
    holds: &[SampleKind::AllocObjects],
    reason: None,
    title: "allocated objects",
    weight: ValueFacts { name: "alloc_objects", unit: "count" },
    period: ValueFacts { name: "space", unit: "bytes" },
    pace: Pace::Every(512 << 10),
    measured: true,
    profile: "memory",
    unit: "objects",
    column: "OBJECTS",
    amount: Amount { key: "allocated_objects", of: 1 },
    picture: Scale { unit: "objects", of: 1.0 },
    whole: Scale { unit: "objects", of: 1.0 },
    error: sampling_error,
    colour: [125.0, 0.12, 0.74],
    none: "No allocations by JVMs in this selection, or they are not sampled: --events cpu,off-cpu,alloc. The status says of which JVMs they cannot be.",
};

/// What async-profiler calls `wall`, for threads that run a task; of others it holds their time on a CPU. The time in
/// which a thread waited for a CPU has no stack: it is the ledger's, and a picture has it as a frame of its own.
pub(super) static WALL: KindFacts = KindFacts {
    slug: "wall",
    tag: None,
    made_of: None,
    holds: &[SampleKind::Cpu, SampleKind::OffCpu],
    reason: None,
    title: "wall time",
    weight: ValueFacts { name: "wall", unit: "nanoseconds" },
    period: ValueFacts { name: "wall", unit: "nanoseconds" },
    pace: Pace::Every(10_000_000),
    measured: false,
    profile: "wall",
    unit: "ns",
    column: "WALL",
    amount: Amount { key: "wall_seconds", of: 1_000_000_000 },
    picture: Scale { unit: "ms", of: 1e6 },
    whole: Scale { unit: "us", of: 1e3 },
    error: sampling_error,
    colour: [300.0, 0.1, 0.7],
    none: "No CPU time and no sampled waits in this selection: --events cpu,off-cpu.",
};
