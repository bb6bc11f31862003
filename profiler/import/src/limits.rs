//! What a file may cost: numbers for a machine with some GB to spare, far above what profilers write.

/// Memory of what was read, as estimated: names, stacks and rows.
pub const MEMORY: usize = 1 << 30;
/// Bytes of a line of folded stacks: 2,000 frames of 500 bytes.
pub const LINE: usize = 1 << 20;
/// Bytes of a pprof profile, unpacked: it is held in memory, several times as large.
pub const PPROF: u64 = 256 << 20;
/// Entries of a pprof profile's lists, all together.
pub const PPROF_ENTRIES: usize = 8 << 20;
/// Bytes of a chunk of a recording: JDKs begin a new one at 12 MB, async-profiler at 100 MB.
pub const CHUNK: u64 = 512 << 20;
/// Frames of a stack. JDKs stop at 2,048, async-profiler at 2,048 too.
pub const FRAMES: usize = 1 << 16;
/// Windows of a file: 115 days of 10 s.
pub const WINDOWS: usize = 1_000_000;
