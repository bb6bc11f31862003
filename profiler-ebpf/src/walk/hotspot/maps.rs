//! What the daemon tells of each JVM, by pid.

use aya_ebpf::macros::map;
use aya_ebpf::maps::{HashMap, PerCpuArray};
use profiler_ebpf::{JvmLayout, MAX_JVMS, MAX_WATCHED, StringLayout};

/// What the walker must know of it.
#[map]
pub static JVMS: HashMap<u32, JvmLayout> = HashMap::with_max_entries(MAX_JVMS, 0);

/// How it lays out Strings.
#[map]
pub static STRING_LAYOUTS: HashMap<u32, StringLayout> = HashMap::with_max_entries(MAX_WATCHED, 0);

/// Which thread named itself last on a CPU, and its `JavaThread` (`locks`).
#[map]
pub static NAMING: PerCpuArray<[u64; 2]> = PerCpuArray::with_max_entries(1, 0);
