//! The maps, and their sizes. A runtime's own are in its room.
#![allow(unsafe_code)]

use crate::block;
use crate::named;
use crate::walk::hotspot::{Blob, CODE_BYTES, HEAD_WORDS};
use crate::walk::state::{Rule, Walk};
use crate::walk::{cache, recent};
use crate::worker_sockets::End;
use crate::workers::Serving;
use aya_ebpf::bindings::BPF_F_MMAPABLE;
use aya_ebpf::btf_maps;
use aya_ebpf::macros::{btf_map, map};
use aya_ebpf::maps::{Array, HashMap, LruHashMap, PerCpuArray, ProgramArray, RingBuf};
use profiler_ebpf::{
    COUNTER_SLOTS, FILTER_SLOTS, GRANULE_WORDS, MAX_ALLOCATING, MAX_BLOCK_REQUESTS, MAX_FRAMES_WITH_PYTHON,
    MAX_KERNEL_FRAMES, MAX_NAMED_EVENTS, MAX_PARTIES, MAX_RULES, MAX_SLABS, MAX_SPARK_PYTHONS,
    MAX_SPARK_USERS, MAX_TABLED, MAX_TASK_THREADS, MAX_THREADS, MAX_WAITERS, MAX_WATCHED, Party,
    ProcessTables, SHARE_SLOTS, SLAB_GRANULES, SampleRecord, Share, StackRecord, Standing, Told, Waiter,
};

/// Bytes of user stack fetched by one read, at most: a page.
pub const FETCH_BYTES: usize = 4096;

/// Words of a stack record after its head: kernel addresses, then two a user frame.
pub const BODY_WORDS: usize = MAX_KERNEL_FRAMES + 2 * MAX_FRAMES_WITH_PYTHON;

/// Words of a sample's record.
pub const SAMPLE_WORDS: usize = size_of::<SampleRecord>() / 8;

/// Where a sample is put together. Too large for a program's 512 bytes of stack. What the walk keeps
/// from step to step is in here too: the verifier takes what it reads from a map for any number, and so
/// looks at one step instead of hundreds.
#[repr(C)]
pub struct Scratch {
    /// The walk's state. Here, so that a shallow stack touches two pages and not four: cold memory is
    /// most of what a sample costs.
    pub walk: Walk,
    /// How to step from its pc.
    pub rule: Rule,
    /// The piece of user stack last fetched.
    pub fetched: [u64; FETCH_BYTES / 8],
    /// The stack record, as it goes up.
    pub record: StackRecord,
    /// Its kernel addresses and user frames. Behind the last of them, the sample itself.
    pub body: [u64; BODY_WORDS + SAMPLE_WORDS],
    /// A blob, when the cache does not know a pc.
    pub blob: Blob,
    /// Its head as it was read.
    pub head: [u64; HEAD_WORDS],
    /// Code that was read.
    pub code: [u64; CODE_BYTES / 8 + 1],
    /// Uprobes that use it now (see `alloc`): they may be preempted, and what samples by events may not.
    pub users: u64,
}

/// Whose [`SCRATCH`] it is: what samples by events, and the scheduler's tracepoints.
pub const OF_EVENTS: u32 = 0;
/// The same of uprobes.
pub const OF_UPROBES: u32 = 1;
/// The same of named events and of disks' requests.
pub const OF_NAMED: u32 = 2;

/// Everything that goes up. The daemon sets the size: by CPUs, unless told.
#[map]
pub static EVENTS: RingBuf = RingBuf::with_byte_size(512 * 1024, 0);

/// Words of a set in `SEEN`: a cache line.
pub const WAYS: usize = 8;

/// Stacks already sent, each with its epoch (see `seen`). The daemon sets the size: a CPU can send at most
/// `hz` x 10 s stacks an epoch (990 at 99 Hz), and there is room for four times as many.
#[map]
pub static SEEN: Array<[u64; WAYS]> = Array::with_max_entries(512, 0);

/// What is kept of each thread that was named, by tid: a [`profiler_ebpf::ThreadState`], and whose it is
/// (`shares::take_place`). Allocated beforehand: the sampler looks in it at any moment.
#[map]
pub static THREADS: HashMap<u32, [u64; 2]> = HashMap::with_max_entries(MAX_THREADS, 0);

/// What each user, and each cgroup of his, has in the ring and in [`THREADS`] (see `shares`).
#[map]
pub static SHARES: Array<Share> = Array::with_max_entries(SHARE_SLOTS, 0);

/// Users with processes of Spark's, by uid.
#[map]
pub static SPARK_USERS: HashMap<u32, u8> = HashMap::with_max_entries(MAX_SPARK_USERS, 0);

/// Processes whose threads the daemon wants to hear of, by pid.
#[map]
pub static WATCHED: HashMap<u32, u8> = HashMap::with_max_entries(MAX_WATCHED + MAX_SPARK_PYTHONS, 0);

/// Pauses of the JVMs that are watched, by pid (see `pauses`).
#[map]
pub static PAUSES: HashMap<u32, Standing> = HashMap::with_max_entries(MAX_WATCHED, 0);

/// PySpark's processes, by pid (see `workers`).
#[map]
pub static PARTIES: HashMap<u32, Party> = HashMap::with_max_entries(MAX_PARTIES, 0);

/// Threads of executors that run a task or feed a worker for one, by tid.
#[map]
pub static TASK_THREADS: HashMap<u32, Serving> = HashMap::with_max_entries(MAX_TASK_THREADS, 0);

/// Threads whose waits are watched, by tid (see `off_cpu`). The daemon makes it of one entry where none are.
#[map]
pub static WAITERS: HashMap<u32, Waiter> = HashMap::with_max_entries(MAX_WAITERS, 0);

/// How many entries of [`WAITERS`] there are by slots of their tids (`profiler_ebpf::filter_slot`).
#[map]
pub static FILTER: Array<[u64; FILTER_SLOTS]> = Array::with_max_entries(1, 0);

/// A thread that was not seen waiting yet: too large for a program's stack.
#[map]
pub static NO_WAITER: Array<Waiter> = Array::with_max_entries(1, 0);

/// Sets of [`CODE`]; a power of two. 32,768 entries, 1 MiB: an executor's stacks hold some thousand return
/// addresses.
pub const CODE_SETS: u32 = 16_384;

/// How to step from each pc that was met (see `walk::cache`). Mappable, so that its first set lies at
/// the start of a page, and each in a cache line of its own (kernel/bpf/arraymap.c); nobody maps it.
#[map]
pub static CODE: Array<cache::Set> = Array::with_max_entries(CODE_SETS, BPF_F_MMAPABLE);

/// Slots of [`RECENT`]; a power of two. 2 MiB.
pub const RECENT_SLOTS: u32 = 512;

/// What the last walk of each thread found (see `walk::recent`). Mappable as `CODE` is.
#[map]
pub static RECENT: Array<recent::Slot> = Array::with_max_entries(RECENT_SLOTS, BPF_F_MMAPABLE);

/// Which tables the code of a process is walked by, by pid (see `walk::table`).
#[map]
pub static PROCESSES: HashMap<u32, ProcessTables> = HashMap::with_max_entries(MAX_TABLED, 0);

/// Workers by their connections. A connection that nobody used for long makes room.
#[map]
pub static CONNECTIONS: LruHashMap<u64, End> = LruHashMap::with_max_entries(MAX_SPARK_PYTHONS, 0);

/// A slab. Mappable for the same reason as [`CODE`].
pub type Slab =
    btf_maps::Array<[u32; GRANULE_WORDS as usize], { SLAB_GRANULES as usize }, { BPF_F_MMAPABLE as usize }>;

/// The space of tables.
#[btf_map]
pub static SLABS: btf_maps::ArrayOfMaps<Slab, { MAX_SLABS as usize }> = btf_maps::ArrayOfMaps::new();

/// What the rows' numbers mean: words of [`profiler_ebpf::UnwindRule`].
#[map]
pub static RULES: Array<u64> = Array::with_max_entries(MAX_RULES, 0);

/// What a walk goes on with on a kernel without `bpf_loop`: `sample_more`.
#[map]
pub static NEXT: ProgramArray = ProgramArray::with_max_entries(1, 0);

/// Losses and counts.
#[map]
pub static COUNTERS: PerCpuArray<[u64; COUNTER_SLOTS]> = PerCpuArray::with_max_entries(1, 0);

/// What is counted of each named event's slot, and in one behind them of disks' requests.
#[map]
pub static NAMED: PerCpuArray<named::Counted> = PerCpuArray::with_max_entries(MAX_NAMED_EVENTS + 1, 0);

/// Requests of disks that are out, by sector and disk. The daemon makes it of one entry where they are not sampled. One that
/// is never answered makes room.
#[map]
pub static REQUESTS: LruHashMap<[u64; 2], block::Request> =
    LruHashMap::with_max_entries(MAX_BLOCK_REQUESTS, 0);

/// What threads of JVMs had allocated when they were last told, by tid. The daemon makes it of one entry where allocations are not
/// sampled. Who allocates seldom makes room.
#[map]
pub static ALLOCATING: LruHashMap<u32, Told> = LruHashMap::with_max_entries(MAX_ALLOCATING, 0);

/// One for each CPU: a program that samples is not interrupted by another (perf's recursion guard). A second one is for
/// uprobes ([`OF_UPROBES`]) and a third for tracepoints and named events ([`OF_NAMED`]); the daemon makes them where these are sampled.
#[map]
pub static SCRATCH: PerCpuArray<Scratch> = PerCpuArray::with_max_entries(1, 0);
