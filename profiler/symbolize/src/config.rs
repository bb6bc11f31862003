//! What the room is told: its limits, and what it needs to know of a process.

use super::frames::FrameLimits;
use emberscope_model::{ProcessKey, Tenant};
use emberscope_runtime::Readers;
use std::path::PathBuf;
use std::time::Duration;

/// Limits of what is kept and read, and whom to ask.
#[derive(Clone, Debug)]
pub struct SymbolizerConfig {
    /// `/proc`, or a copy of it in tests.
    pub proc_root: PathBuf,
    /// The runtimes whose frames are named, and who reads their processes.
    pub readers: Readers,
    /// JVMs may be asked for their perf map. Maps that are already there are read in any case.
    pub ask_jvms: bool,
    /// A JVM is asked at most once in this time; the second and later failures in a row double it, up to ten minutes.
    pub ask_interval: Duration,
    /// How long a JVM may take to open its attach socket, and again to answer.
    pub ask_timeout: Duration,
    /// Bytes of one perf map that are read. Memory does not depend on it, time does (1 s for 512 MB).
    pub perf_map_max_bytes: u64,
    /// Processes whose mappings and names are kept; the one unused for longest goes first.
    pub max_processes: usize,
    /// Bytes of mappings, of their paths and of addresses of JIT code, over all processes: 120,000 mappings, a hundred each of
    /// all processes that are kept. The largest process of who holds more than his share goes first.
    pub max_code_bytes: usize,
    /// Bytes of ELF symbol tables kept over all files; those of a single one may have twice as many in its file, where a libjvm has 4 MB
    /// (kept packed, 0.8) and the daemon with its symbols 12 (3.3).
    pub max_symbol_bytes: u64,
    /// Native addresses whose frames are cached.
    pub max_cached_addresses: usize,
    /// Distinct frames that are held, and their bytes.
    pub frames: FrameLimits,
    /// debuginfod servers that are asked for symbols that the node does not have (URLs without a slash at the end), and
    /// the directory for what they send. No servers: nobody is asked.
    pub debuginfod: (Vec<String>, PathBuf),
    /// How long the names of a process are kept after it ended: longer than a window takes to close.
    pub keep_exited: Duration,
}

impl Default for SymbolizerConfig {
    fn default() -> Self {
        Self {
            proc_root: PathBuf::from("/proc"),
            readers: Readers::default(),
            ask_jvms: true,
            ask_interval: Duration::from_secs(10),
            ask_timeout: Duration::from_secs(10),
            perf_map_max_bytes: 1 << 30,
            max_processes: 1024,
            max_code_bytes: 16 << 20,
            max_symbol_bytes: 10 << 20,
            max_cached_addresses: 32_768,
            frames: FrameLimits::default(),
            debuginfod: (Vec::new(), PathBuf::new()),
            keep_exited: Duration::from_secs(60),
        }
    }
}

/// What naming needs to know of a process; plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Pid and start, which tell the process from others.
    pub key: ProcessKey,
    /// Effective user id (the second of `Uid:` in `/proc/PID/status`).
    pub uid: u32,
    /// Effective group id (the second of `Gid:`).
    pub gid: u32,
    /// Process id in its own PID namespace (the last of `NSpid:`).
    pub nspid: u32,
    /// Whose share of the table of processes it takes.
    pub tenant: Tenant,
}
