//! Why a capture cannot start or go on. Each message names the cause and the mend.

use super::btf::BtfError;
use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use std::borrow::Cow;
use std::io;

/// Errors of this room.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The binary carries the empty stand-in in place of the BPF object.
    #[error("built without its BPF programs: build with `cargo xtask build`")]
    NotBuilt,
    /// A capability is missing.
    #[error("loading BPF programs needs {missing}: run as root or give the process these capabilities")]
    NoCapability {
        /// Names of the missing ones: `CAP_BPF and CAP_PERFMON`.
        missing: String,
    },
    /// The kernel is too old or lacks an option.
    #[error("this kernel has no {what}: Linux 5.10 or newer with {option} is needed")]
    NoKernelFeature {
        /// What is missing.
        what: &'static str,
        /// The configuration option that brings it.
        option: &'static str,
    },
    /// Where there is no `bpf_loop`, and the program that walks without it was refused.
    #[error("this kernel has no bpf_loop and refused to walk without it; Linux 5.17 brings it")]
    NoRuntimeWalk,
    /// A file's new probes would tell what its old ones tell, too.
    #[error("the file's old probes are still being taken away: try again in a second")]
    ProbesGoing,
    /// The walker has no map for a runtime of this number.
    #[error("the walker knows no runtime of number {0}")]
    NoSuchRuntime(u8),
    /// The rate is out of range: 0, or over the highest.
    #[error("a rate of {hz} Hz cannot be sampled: choose 1 to {max}")]
    BadRate {
        /// Samples a second, as asked.
        hz: u32,
        /// The highest rate, [`CaptureConfig::MAX_HZ`](super::CaptureConfig::MAX_HZ).
        max: u32,
    },
    /// The object could not be read or its maps could not be made.
    #[error("cannot set up the BPF maps{hint}: {source}")]
    Setup {
        /// A mend, where one is known.
        hint: &'static str,
        /// What aya says.
        source: Box<EbpfError>,
    },
    /// The verifier refused a program.
    #[error(
        "this kernel ({kernel}) refuses the BPF program `{program}`: {source}; please report it with these last lines of its log: {log_tail}"
    )]
    Refused {
        /// Kernel release, as `uname -r` says.
        kernel: String,
        /// Name of the program in the object.
        program: String,
        /// What bpf(2) returned.
        source: io::Error,
        /// End of the verifier's log.
        log_tail: String,
    },
    /// A kind cannot be sampled here.
    #[error("{kind} cannot be sampled here: {what}; leave it out of `events`")]
    NoSource {
        /// Slug of the kind, or the name of the event.
        kind: String,
        /// What is missing, and what mends that.
        what: Cow<'static, str>,
    },
    /// A perf event cannot be opened.
    #[error(
        "cannot open a perf event for {kind}, one sample each {every}, on CPU {cpu}: {source}; kernel.perf_event_paranoid is {paranoid}: \
         run as root, give CAP_PERFMON, or `sysctl kernel.perf_event_paranoid=-1`"
    )]
    PerfEvent {
        /// Number of the CPU, as in /proc/cpuinfo.
        cpu: u32,
        /// Slug of the kind that the event samples, or the event's own name.
        kind: String,
        /// One sample each so many units of weight.
        every: u64,
        /// Value of `kernel.perf_event_paranoid`.
        paranoid: String,
        /// What aya says.
        source: Box<ProgramError>,
    },
    /// Loading or attaching failed otherwise.
    #[error("cannot {operation} the BPF program `{program}`: {source}")]
    Program {
        /// `load` or `attach`.
        operation: &'static str,
        /// Name of the program in the object.
        program: String,
        /// What aya says.
        source: Box<ProgramError>,
    },
    /// A map or program that must be in the object is not.
    #[error("the BPF object has no `{name}`: it belongs to another version; build with `cargo xtask build`")]
    Missing {
        /// Name of the map or program in the object.
        name: &'static str,
    },
    /// More than there is room for.
    #[error("at most {limit} {what} can be had")]
    TooMany {
        /// What there are too many of, in the plural.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// A map cannot be used.
    #[error("cannot use the BPF map `{name}`: {source}")]
    Map {
        /// Name of the map in the object.
        name: &'static str,
        /// What aya says.
        source: Box<MapError>,
    },
    /// The kernel's type information is damaged.
    #[error("cannot use the kernel's type information (/sys/kernel/btf/vmlinux): {0}")]
    Btf(#[from] BtfError),
    /// A system call failed.
    #[error("{operation} failed: {source}")]
    Io {
        /// The system call, or what it was for, and on what.
        operation: &'static str,
        /// What the system call returned.
        source: io::Error,
    },
}

/// Bytes of verifier log that an error carries.
const LOG_TAIL: usize = 600;

impl CaptureError {
    /// From aya's error of loading a program.
    pub(super) fn load(kernel: &str, program: &str, source: ProgramError) -> Self {
        match source {
            ProgramError::LoadError { io_error, verifier_log } => Self::Refused {
                kernel: kernel.to_owned(),
                program: program.to_owned(),
                source: io_error,
                log_tail: tail(&verifier_log.to_string()),
            },
            source => Self::Program { operation: "load", program: program.to_owned(), source: source.into() },
        }
    }

    /// From aya's error of attaching a program.
    pub(super) fn attach(program: &str, source: ProgramError) -> Self {
        Self::Program { operation: "attach", program: program.to_owned(), source: source.into() }
    }
}

fn tail(log: &str) -> String {
    let log = log.trim_end();
    let mut from = log.len().saturating_sub(LOG_TAIL);
    while !log.is_char_boundary(from) {
        from += 1;
    }
    log.get(from..).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_carries_the_end_of_the_log_and_no_more() {
        let log = format!("{}é the end\n", "x".repeat(10_000));
        let got = tail(&log);
        assert!(got.ends_with("é the end") && got.len() <= LOG_TAIL);
        assert_eq!(tail(""), "");
    }

    #[test]
    fn messages_name_cause_and_mend() {
        assert_eq!(
            CaptureError::NotBuilt.to_string(),
            "built without its BPF programs: build with `cargo xtask build`"
        );
        let missing = CaptureError::NoCapability { missing: "CAP_BPF".into() }.to_string();
        assert!(missing.contains("CAP_BPF") && missing.contains("run as root"));
    }
}
