//! What this host allows: probed by feature, never by version.
//!
//! Each value comes with a sentence for people ([`HostFeatures::findings`]): what is missing, what is
//! lost by it, and the mend.

use super::probe::{self, KernelOffsets};

/// What the kernel and this process's rights allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFeatures {
    /// Kernel release, as `uname -r` says.
    pub kernel: String,
    /// Effective capabilities of this process.
    pub capabilities: Capabilities,
    /// The kernel's own type information was read; if not, why.
    pub btf: Result<(), String>,
    /// BPF ring buffers (5.8).
    pub ring_buffer: bool,
    /// BPF programs on perf events (4.9).
    pub perf_event_programs: bool,
    /// BPF programs on raw tracepoints (4.17): exec, fork, exit.
    pub raw_tracepoints: bool,
    /// `bpf_loop` (5.17): 512 user frames in any code; else 130 at least.
    pub bpf_loop: bool,
    /// `bpf_task_pt_regs` (5.15): user stacks of samples that hit the kernel.
    pub task_pt_regs: bool,
    /// BPF programs on functions of user programs: thread names; if not, why.
    pub uprobes: Result<(), String>,
    /// BPF programs that list all threads (5.8, with BTF); if not, why.
    pub task_iterator: Result<(), String>,
    /// The tracepoint of wake-ups, `sched:sched_waking`: tasks of Python workers, and the waits for them.
    pub wake_ups: bool,
    /// The tracepoint of what is sent over any socket (6.3): tasks of Python workers over Unix sockets.
    pub socket_sends: bool,
    /// The tracepoint of what is received over any socket (6.3): what Python workers clean up after a task.
    pub socket_receives: bool,
    /// tracefs, where the kernel tells its tracepoints' numbers; if it is not there, the mend.
    pub tracefs: Result<(), String>,
    /// A perf event that reports mapped code can be opened; if not, why.
    pub mmap_events: Result<(), String>,
    /// `kernel.perf_event_paranoid`; None when there are no perf events.
    pub perf_event_paranoid: Option<i32>,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Option<i32>,
    /// `kernel.perf_event_max_stack`: deepest kernel stack, in frames.
    pub perf_event_max_stack: Option<i32>,
    /// What is known of the limit on locked memory.
    pub memlock: String,
    pub(super) offsets: KernelOffsets,
}

/// The effective capabilities that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The whole set, as in /proc/self/status.
    pub effective: u64,
}

const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYSLOG: u32 = 34;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

impl Capabilities {
    fn has(self, number: u32) -> bool {
        self.effective >> number & 1 == 1
    }
    fn missing(self, wanted: &[(u32, &'static str)]) -> Vec<&'static str> {
        if self.has(CAP_SYS_ADMIN) {
            return Vec::new();
        }
        wanted.iter().filter(|(number, _)| !self.has(*number)).map(|(_, name)| *name).collect()
    }
    /// Names of those that are missing for loading and attaching the programs.
    pub fn missing_for_capture(self) -> Vec<&'static str> {
        self.missing(&[(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")])
    }
    /// Whether BPF run times may be turned on.
    pub fn may_measure(self) -> bool {
        self.has(CAP_SYS_ADMIN)
    }
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingState {
    /// All is as wanted.
    Good,
    /// Sampling works, with something left out.
    Degraded,
    /// Nothing can be sampled.
    Fatal,
}

/// One line of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Short stable name: `task_iterator`. `doctor` shows it with blanks.
    pub name: &'static str,
    /// How grave it is.
    pub state: FindingState,
    /// The value found, empty where the sentence says all.
    pub value: String,
    /// What it means and, where it is not good, the mend.
    pub sentence: String,
}

/// A finding of what is there or is not.
fn flag(name: &'static str, present: bool, state: FindingState, good: &str, bad: &str) -> Finding {
    Finding {
        name,
        state: if present { FindingState::Good } else { state },
        value: if present { "yes" } else { "no" }.to_owned(),
        sentence: if present { good } else { bad }.to_owned(),
    }
}

impl HostFeatures {
    /// Asks the kernel. Loads a few trivial programs, attaches none; without the rights for that, what
    /// needs them is reported as missing.
    pub fn probe() -> Self {
        probe::host()
    }

    /// All that was found out, in sentences.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = self.must();
        findings.extend(self.better());
        findings.extend(self.threads());
        findings.extend(self.settings());
        findings
    }

    /// Findings without which nothing can be sampled.
    fn must(&self) -> Vec<Finding> {
        use FindingState::Fatal;
        let missing = self.capabilities.missing_for_capture();
        vec![
            Finding {
                name: "capabilities",
                state: if missing.is_empty() { FindingState::Good } else { Fatal },
                value: format!("{:#x}", self.capabilities.effective),
                sentence: if missing.is_empty() {
                    "BPF programs may be loaded and attached.".to_owned()
                } else {
                    format!(
                        "Loading BPF programs needs {}: run as root or give the process these capabilities.",
                        missing.join(" and ")
                    )
                },
            },
            flag(
                "ring_buffer",
                self.ring_buffer,
                Fatal,
                "BPF ring buffers are there.",
                "No BPF ring buffers: Linux 5.10 or newer is needed, and the capabilities above.",
            ),
            flag(
                "perf_event_programs",
                self.perf_event_programs,
                Fatal,
                "BPF programs can run on perf events.",
                "No BPF programs on perf events: a kernel with CONFIG_BPF_EVENTS is needed, and the capabilities above.",
            ),
        ]
    }

    /// Findings without which something is worse.
    fn better(&self) -> Vec<Finding> {
        use FindingState::Degraded;
        vec![
            Finding {
                name: "btf",
                state: if self.btf.is_ok() { FindingState::Good } else { Degraded },
                value: if self.btf.is_ok() { "yes" } else { "no" }.to_owned(),
                sentence: match &self.btf {
                    Ok(()) => "The kernel's type information (BTF) is there.".to_owned(),
                    Err(why) => format!(
                        "No type information of the kernel ({why}): forks are found by scanning, and samples in \
                         the kernel have no user stack; a kernel with CONFIG_DEBUG_INFO_BTF fixes it."
                    ),
                },
            },
            flag(
                "bpf_loop",
                self.bpf_loop,
                Degraded,
                "User stacks are taken to 512 frames, with the functions of Python to 1,024.",
                "No bpf_loop: user stacks are walked in pieces, 130 to 512 frames deep; Linux 5.17 fixes it.",
            ),
            flag(
                "task_pt_regs",
                self.task_pt_regs,
                Degraded,
                "Samples in the kernel have their user stack too.",
                "No bpf_task_pt_regs: samples in the kernel have no user stack; Linux 5.15 with BTF fixes it.",
            ),
            flag(
                "raw_tracepoints",
                self.raw_tracepoints,
                Degraded,
                "Processes are seen when they start and end.",
                "No BPF on raw tracepoints: processes are found by scanning /proc; CONFIG_BPF_EVENTS fixes it.",
            ),
            Finding {
                name: "tracefs",
                state: if self.tracefs.is_ok() { FindingState::Good } else { Degraded },
                value: if self.tracefs.is_ok() { "yes" } else { "no" }.to_owned(),
                sentence: match &self.tracefs {
                    Ok(()) => {
                        "Tracepoints can be sampled by name, and how long disks have requests.".to_owned()
                    }
                    Err(mend) => format!(
                        "Tracepoints cannot be sampled by name (`events = \"GROUP:NAME\"`), nor how long disks have \
                         requests (`block-io`): {mend}."
                    ),
                },
            },
            Finding {
                name: "mmap_events",
                state: if self.mmap_events.is_ok() { FindingState::Good } else { Degraded },
                value: if self.mmap_events.is_ok() { "yes" } else { "no" }.to_owned(),
                sentence: match &self.mmap_events {
                    Ok(()) => "Newly mapped code is seen at once.".to_owned(),
                    Err(why) => format!(
                        "Newly mapped code is found by scanning ({why}): CAP_PERFMON, and \
                         kernel.perf_event_mlock_kb of at least 64, fix it."
                    ),
                },
            },
        ]
    }

    fn settings(&self) -> Vec<Finding> {
        use FindingState::{Degraded, Fatal, Good};
        let text = |value: Option<i32>| value.map_or_else(|| "absent".to_owned(), |v| v.to_string());
        let may_see_addresses =
            self.kptr_restrict == Some(0) || self.capabilities.missing(&[(CAP_SYSLOG, "")]).is_empty();
        let may_read_others = self.capabilities.missing(&[(CAP_SYS_PTRACE, "")]).is_empty();
        vec![
            Finding {
                name: "perf_event_paranoid",
                state: if self.perf_event_paranoid.is_some() { Good } else { Fatal },
                value: text(self.perf_event_paranoid),
                sentence: match self.perf_event_paranoid {
                    Some(_) => "Does not matter to a process with CAP_PERFMON.".to_owned(),
                    None => "No perf events: a kernel with CONFIG_PERF_EVENTS is needed.".to_owned(),
                },
            },
            Finding {
                name: "kptr_restrict",
                state: if may_see_addresses { Good } else { Degraded },
                value: text(self.kptr_restrict),
                sentence: if may_see_addresses {
                    "Kernel frames can be named.".to_owned()
                } else {
                    "Kernel frames stay without names: give CAP_SYSLOG or `sysctl kernel.kptr_restrict=0`."
                        .to_owned()
                },
            },
            Finding {
                name: "ptrace",
                state: if may_read_others { Good } else { Degraded },
                value: if may_read_others { "yes" } else { "no" }.to_owned(),
                sentence: if may_read_others {
                    "Other users' processes can be read.".to_owned()
                } else {
                    "Other users' processes stay without names: give CAP_SYS_PTRACE.".to_owned()
                },
            },
            Finding { name: "memlock", state: Good, value: String::new(), sentence: self.memlock.clone() },
        ]
    }
}

#[cfg(test)]
pub(super) mod tests;
