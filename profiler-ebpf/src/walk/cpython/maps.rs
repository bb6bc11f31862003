//! What the daemon tells of each interpreter, by pid.

use aya_ebpf::macros::map;
use aya_ebpf::maps::HashMap;
use profiler_ebpf::{MAX_PYTHONS, PythonLayout};

/// What the walker must know of it. A forked child has its parent's from the start.
#[map]
pub static PYTHONS: HashMap<u32, PythonLayout> = HashMap::with_max_entries(MAX_PYTHONS, 0);
