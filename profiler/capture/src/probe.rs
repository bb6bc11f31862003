//! Asks the host what it can do: trivial programs that load or do not, sysctls, BTF.

use super::btf::Btf;
use super::features::{Capabilities, HostFeatures};
use super::perf_ring::PerfRing;
use super::tracepoints;
use super::uprobe_right;
use aya::maps::MapType;
use aya::programs::ProgramType;
use aya::sys::{BpfHelper, is_helper_supported, is_map_supported, is_program_supported};
use rustix::process::{Resource, getrlimit};
use std::path::Path;

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Offsets of kernel fields, in bytes. None: this kernel does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KernelOffsets {
    pub(super) task_state: Option<u32>,
    pub(super) task_flags: Option<u32>,
    pub(super) task_pid: Option<u32>,
    pub(super) task_tgid: Option<u32>,
    pub(super) task_on_cpu: Option<u32>,
    pub(super) task_mm: Option<u32>,
    pub(super) thread_pointer: Option<u32>,
    pub(super) mm_start_stack: Option<u32>,
    pub(super) task_signal: Option<u32>,
    pub(super) signal_live: Option<u32>,
    pub(super) sock_num: Option<u32>,
    pub(super) sock_dport: Option<u32>,
    pub(super) sock_net: Option<u32>,
    pub(super) sock_family: Option<u32>,
    pub(super) unix_peer: Option<u32>,
    pub(super) accounts: AccountOffsets,
    pub(super) throttle: Option<ThrottleOffsets>,
}

/// What tells for how long threads were throttled: all of it or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThrottleOffsets(pub(super) [u32; THROTTLE.len()]);

/// Its fields, with the names of the programs' globals (include/linux/sched.h, kernel/sched/sched.h; the two of the queue's
/// own throttling are of Linux 6.6, and all of CONFIG_CFS_BANDWIDTH).
pub(super) const THROTTLE: [(&str, &[(&str, &str)]); 8] = [
    ("TASK_CFS_RQ", &[("task_struct", "se"), ("sched_entity", "cfs_rq")]),
    ("CFS_RQ_RQ", &[("cfs_rq", "rq")]),
    ("CFS_RQ_SINCE", &[("cfs_rq", "throttled_clock_self")]),
    ("CFS_RQ_THROTTLED", &[("cfs_rq", "throttled_clock_self_time")]),
    ("RQ_CLOCK", &[("rq", "clock")]),
    ("TASK_GROUP", &[("task_struct", "sched_task_group")]),
    ("GROUP_PARENT", &[("task_group", "parent")]),
    ("GROUP_QUOTA", &[("task_group", "cfs_bandwidth"), ("cfs_bandwidth", "quota")]),
];

impl ThrottleOffsets {
    fn of(btf: &Btf) -> Option<Self> {
        let mut all = [0; THROTTLE.len()];
        for (offset, (_, path)) in all.iter_mut().zip(THROTTLE) {
            for (of, field) in path {
                *offset += btf.field(of, field)?;
            }
        }
        Some(Self(all))
    }
}

/// Where a thread's accounts are in its `task_struct`, with the names of the programs' globals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AccountOffsets(pub(super) [Option<u32>; ACCOUNTS.len()]);

/// A field of `task_struct`: the global that tells its offset, the struct within and its type (or none), its name.
pub(super) struct AccountField {
    pub(super) global: &'static str,
    within: Option<(&'static str, &'static str)>,
    pub(super) name: &'static str,
}

const fn account(
    global: &'static str,
    within: Option<(&'static str, &'static str)>,
    name: &'static str,
) -> AccountField {
    AccountField { global, within, name }
}

/// All of them (include/linux/sched.h, task_io_accounting.h), the first being what all rests on.
pub(super) const ACCOUNTS: [AccountField; 11] = [
    account("TASK_CPU", Some(("se", "sched_entity")), "sum_exec_runtime"),
    account("TASK_RUN_DELAY", Some(("sched_info", "sched_info")), "run_delay"),
    account("TASK_UTIME", None, "utime"),
    account("TASK_STIME", None, "stime"),
    account("TASK_NVCSW", None, "nvcsw"),
    account("TASK_NIVCSW", None, "nivcsw"),
    account("TASK_MIN_FLT", None, "min_flt"),
    account("TASK_MAJ_FLT", None, "maj_flt"),
    account("TASK_START", None, "start_time"),
    account("TASK_READ_BYTES", Some(("ioac", "task_io_accounting")), "read_bytes"),
    account("TASK_WRITE_BYTES", Some(("ioac", "task_io_accounting")), "write_bytes"),
];

impl AccountOffsets {
    fn of(btf: &Btf) -> Self {
        Self(ACCOUNTS.each_ref().map(|field| match field.within {
            None => btf.field("task_struct", field.name),
            Some((member, of)) => btf.field("task_struct", member)?.checked_add(btf.field(of, field.name)?),
        }))
    }

    /// Names of the fields that this kernel does not tell.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let fields = ACCOUNTS.iter().zip(self.0);
        fields.filter(|(_, offset)| offset.is_none()).map(|(field, _)| field.name).collect()
    }
}

impl KernelOffsets {
    fn of(btf: &Btf) -> Self {
        Self {
            // Renamed in Linux 5.14.
            task_state: btf.field("task_struct", "__state").or_else(|| btf.field("task_struct", "state")),
            task_flags: btf.field("task_struct", "flags"),
            task_pid: btf.field("task_struct", "pid"),
            task_tgid: btf.field("task_struct", "tgid"),
            task_on_cpu: btf.field("task_struct", "on_cpu"),
            task_mm: btf.field("task_struct", "mm"),
            thread_pointer: btf
                .field("task_struct", "thread")
                .zip(btf.field("thread_struct", emberscope_arch::OWN.thread_pointer))
                .map(|(thread, pointer)| thread + pointer),
            mm_start_stack: btf.field("mm_struct", "start_stack"),
            task_signal: btf.field("task_struct", "signal"),
            signal_live: btf.field("signal_struct", "live"),
            sock_num: btf.field("sock_common", "skc_num"),
            sock_dport: btf.field("sock_common", "skc_dport"),
            sock_net: btf.field("sock_common", "skc_net"),
            sock_family: btf.field("sock_common", "skc_family"),
            unix_peer: btf.field("unix_sock", "peer"),
            accounts: AccountOffsets::of(btf),
            throttle: ThrottleOffsets::of(btf),
        }
    }

    /// Whether the fields are there that tell a TCP connection.
    pub(super) fn can_tell_connection(&self) -> bool {
        self.sock_num.is_some() && self.sock_dport.is_some() && self.sock_net.is_some()
    }

    /// Whether the fields are there that tell a connection of either kind.
    pub(super) fn can_tell_sender(&self) -> bool {
        self.can_tell_connection() && self.sock_family.is_some() && self.unix_peer.is_some()
    }

    /// Whether the fields are there that tell a fork's child.
    pub(super) fn can_tell_child(&self) -> bool {
        self.task_pid.is_some() && self.task_tgid.is_some()
    }
}

/// See [`HostFeatures::probe`].
pub(super) fn host() -> HostFeatures {
    let (btf, offsets, task_iterator, tracepoints) = match Btf::read(Path::new(BTF)) {
        Ok(btf) => {
            let tracepoints = ["sched_waking", "sock_send_length", "sock_recv_length"];
            let tracepoints = tracepoints.map(|name| btf.has_tracepoint(name));
            (Ok(()), KernelOffsets::of(&btf), task_iterator(&btf), tracepoints)
        }
        Err(error) => {
            let none = Err("no type information".to_owned());
            (Err(format!("{BTF}: {error}")), KernelOffsets::default(), none, [false; 3])
        }
    };
    let [wake_ups, socket_sends, socket_receives] = tracepoints;
    let helper = |helper| matches!(is_helper_supported(ProgramType::PerfEvent, helper), Ok(true));
    let program = |kind| matches!(is_program_supported(kind), Ok(true));
    HostFeatures {
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        capabilities: capabilities(),
        ring_buffer: matches!(is_map_supported(MapType::RingBuf), Ok(true)),
        perf_event_programs: program(ProgramType::PerfEvent),
        raw_tracepoints: program(ProgramType::RawTracePoint),
        bpf_loop: helper(BpfHelper::BPF_FUNC_loop),
        task_pt_regs: btf.is_ok()
            && helper(BpfHelper::BPF_FUNC_get_current_task_btf)
            && helper(BpfHelper::BPF_FUNC_task_pt_regs),
        uprobes: uprobes(),
        task_iterator,
        wake_ups,
        socket_sends,
        socket_receives,
        tracefs: tracepoints::tracefs().map(|_| ()),
        mmap_events: mmap_events(),
        perf_event_paranoid: sysctl("perf_event_paranoid"),
        kptr_restrict: sysctl("kptr_restrict"),
        perf_event_max_stack: sysctl("perf_event_max_stack"),
        memlock: memlock(),
        btf,
        offsets,
    }
}

/// perf's kind of event that aya attaches by, the right to it, and programs of its type.
fn uprobes() -> Result<(), String> {
    uprobe_right::held()?;
    match is_program_supported(ProgramType::KProbe) {
        Ok(true) => Ok(()),
        Ok(false) => Err("the kernel takes no BPF programs of this type".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether the kernel has one; whether it lets us, loading tells.
fn task_iterator(btf: &Btf) -> Result<(), String> {
    let there = btf.has_function("bpf_iter_task");
    if there { Ok(()) } else { Err("the kernel has no BPF iterator of tasks".to_owned()) }
}

/// Whether a ring of mapped code can be had on the first CPU.
fn mmap_events() -> Result<(), String> {
    let online = aya::util::online_cpus().map_err(|(_, error)| error.to_string())?;
    let cpu = online.first().ok_or("no CPU is online")?;
    PerfRing::open(*cpu).map(drop).map_err(|error| error.to_string())
}

fn sysctl(name: &str) -> Option<i32> {
    std::fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).ok()?.trim().parse().ok()
}

fn capabilities() -> Capabilities {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Capabilities { effective: effective(&status).unwrap_or(0) }
}

fn effective(status: &str) -> Option<u64> {
    let text = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(text.trim(), 16).ok()
}

/// From 5.11 BPF memory is charged to the cgroup and the limit does not count; before, aya raises it
/// when a map is refused.
fn memlock() -> String {
    let now = match getrlimit(Resource::Memlock).current {
        Some(bytes) => format!("{} KiB", bytes / 1024),
        None => "unlimited".to_owned(),
    };
    format!("The limit on locked memory ({now}) counts for BPF only before Linux 5.11.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_status() {
        assert_eq!(effective("Name:\tx\nCapEff:\t000001fffeffffff\n"), Some(0x1ff_feff_ffff));
        assert_eq!(effective("CapEff:\tzz\n"), None);
        assert_eq!(effective(""), None);
    }

    #[test]
    fn this_kernels_offsets_are_plausible() {
        let Ok(btf) = Btf::read(Path::new(BTF)) else { return };
        let offsets = KernelOffsets::of(&btf);
        assert!(offsets.can_tell_child() && offsets.can_tell_connection() && offsets.can_tell_sender());
        assert!(offsets.unix_peer > offsets.sock_family, "the socket is the first field: {offsets:?}");
        assert!(offsets.task_on_cpu.is_some());
        assert!(offsets.task_mm.is_some() && offsets.mm_start_stack.is_some());
        assert!(offsets.accounts.missing().is_empty(), "{:?}", offsets.accounts);
        assert!(offsets.thread_pointer.is_some());
        let told = btf.field("cfs_rq", "throttled_clock_self_time").is_some();
        assert_eq!(
            offsets.throttle.map(|throttle| throttle.0.iter().all(|at| *at > 0)),
            told.then_some(true)
        );
        assert_eq!(offsets.task_tgid.zip(offsets.task_pid).map(|(t, p)| t - p), Some(4));
    }
}
