//! Loads the object: sets its globals and map sizes, lets the verifier see the programs that this host
//! can run, attaches what is not the sampler.

mod globals;
mod lines;
mod verified;

use super::alloc::AllocSource;
use super::config::CaptureConfig;
use super::error::CaptureError;
use super::features::HostFeatures;
use super::off_cpu::{self, OffCpuSource};
use super::source::{PerfSource, Programs, Source, perf_event};
use super::workers::{self, Binder};
use super::{alloc, asked, block, named, names, pauses};
use aya::maps::{MapData, MapError, ProgramArray};
use aya::programs::{PerfEvent, Program, RawTracePoint};
use aya::{Ebpf, EbpfError, EbpfLoader, VerifierLogLevel, include_bytes_aligned};
use emberscope_model::SampleKind;
use profiler_ebpf::{MAX_ALLOCATING, MAX_BLOCK_REQUESTS, MAX_WAITERS};

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/emberscope.bpf.o"));

/// Goes on with a walk by tail calls.
pub(super) const MORE: &str = "sample_more";

/// How this kernel can walk a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// In a loop, by `bpf_loop`.
    Loop,
    /// In pieces, by tail calls.
    Jumps,
    /// By frame pointers only, with no tables.
    Pointers,
}

/// A loaded object and what was attached.
pub(super) struct Loaded {
    pub(super) ebpf: Ebpf,
    /// How stacks are walked.
    pub(super) walk: Walk,
    /// What takes samples; on no CPU yet.
    pub(super) sources: Vec<Box<dyn Source>>,
    /// What makes a walk go on where there is no `bpf_loop`: its program in a map.
    pub(super) next: Option<ProgramArray<MapData>>,
    /// Names of all programs loaded.
    pub(super) programs: Vec<&'static str>,
    /// The kernel lists threads for us.
    pub(super) iterator: bool,
    /// What binds Python workers to tasks, on no tracepoint yet.
    pub(super) binders: Vec<Binder>,
}

/// Refuses what cannot work, before anything is tried.
pub(super) fn check(config: &CaptureConfig, features: &HostFeatures) -> Result<(), CaptureError> {
    if config.hz == 0 || config.hz > CaptureConfig::MAX_HZ {
        return Err(CaptureError::BadRate { hz: config.hz, max: CaptureConfig::MAX_HZ });
    }
    let missing = features.capabilities.missing_for_capture();
    if !missing.is_empty() {
        return Err(CaptureError::NoCapability { missing: missing.join(" and ") });
    }
    if OBJECT.is_empty() {
        return Err(CaptureError::NotBuilt);
    }
    let needed = [
        (features.ring_buffer, "BPF ring buffer", "CONFIG_BPF_SYSCALL"),
        (features.perf_event_programs, "BPF programs on perf events", "CONFIG_BPF_EVENTS"),
    ];
    match needed.iter().find(|(present, ..)| !present) {
        Some((_, what, option)) => Err(CaptureError::NoKernelFeature { what, option }),
        None => Ok(()),
    }
}

/// Loads all programs that this host can run and attaches those of the events.
pub(super) fn load(config: &CaptureConfig, features: &HostFeatures) -> Result<Loaded, CaptureError> {
    check(config, features)?;
    lines::spared(OBJECT, |object| loaded(config, features, object))
}

fn loaded(config: &CaptureConfig, features: &HostFeatures, object: &[u8]) -> Result<Loaded, CaptureError> {
    let mut ebpf = open(config, features, object)?;
    let mut programs = early(config, features);
    verified::load(&mut ebpf, &features.kernel, &programs)?;
    let (walk, next) = samplers(&mut ebpf, (config, features), &mut programs)?;
    let mut sources = perf_sources(config, walk);
    if let Some(every) = config.every(SampleKind::OffCpu) {
        sources.push(Box::new(OffCpuSource::new(every)));
    }
    if let Some(every) = config.every(SampleKind::Alloc) {
        sources.push(Box::new(AllocSource::new(every)));
    }
    if let Some(every) = config.every(SampleKind::BlockIo) {
        sources.push(Box::new(block::source(&mut ebpf, (features, &mut programs), every)?));
    }
    if !config.named.is_empty() {
        sources.extend(named::sources(&mut ebpf, (config, features), &mut programs)?);
    }
    for (name, tracepoint) in lives(features) {
        let program: &mut RawTracePoint = self::program(&mut ebpf, name)?;
        program.attach(tracepoint).map_err(|e| CaptureError::attach(name, e))?;
    }
    let iterator = match &features.task_iterator {
        Ok(()) => asked::load(&mut ebpf, &features.kernel)
            .inspect_err(|error| tracing::warn!(%error, "threads' accounts are read from /proc"))
            .is_ok(),
        Err(_) => false,
    };
    if iterator {
        programs.push(asked::PROGRAM);
    }
    // Attached while there is a Python worker.
    let binders = workers::programs(features);
    Ok(Loaded { ebpf, walk, sources, next, programs, iterator, binders })
}

/// The programs that this host runs and that no other way stands in for, first those that take the verifier longest.
fn early(config: &CaptureConfig, features: &HostFeatures) -> Vec<&'static str> {
    let mut programs = Vec::new();
    if config.every(SampleKind::OffCpu).is_some() && off_cpu::lacks(features).is_none() {
        programs.extend(off_cpu::PROGRAMS.map(|(name, _)| name));
    }
    if features.bpf_loop {
        programs.extend(perf_programs(config, Walk::Loop));
    }
    if config.every(SampleKind::Alloc).is_some() && alloc::lacks(features).is_none() {
        programs.push(alloc::PROGRAM);
    }
    if features.uprobes.is_ok() {
        programs.extend(names::PROGRAMS);
        programs.extend(pauses::PROGRAMS.into_iter().filter(|_| config.pauses).map(|(name, _)| name));
    }
    programs.extend(workers::programs(features).into_iter().map(|(name, _)| name));
    programs.extend(lives(features).into_iter().map(|(name, _)| name));
    programs
}

/// What tells of processes that begin and end: programs and their tracepoints.
fn lives(features: &HostFeatures) -> Vec<(&'static str, &'static str)> {
    if !features.raw_tracepoints {
        return Vec::new();
    }
    let mut events = vec![("task_exec", "sched_process_exec"), ("task_exit", "sched_process_exit")];
    if features.offsets.can_tell_child() {
        events.push(("task_fork", "sched_process_fork"));
    }
    events
}

/// The sampling programs that walk so, one for each kind that perf has an event of.
fn perf_programs(config: &CaptureConfig, walk: Walk) -> impl Iterator<Item = &'static str> {
    config.events().filter_map(|(kind, _)| perf_event(kind)).map(move |(_, programs)| walk.program(&programs))
}

impl Walk {
    /// Of a kind's programs the one that walks so.
    fn program(self, programs: &Programs) -> &'static str {
        match self {
            Self::Loop => programs.by_loop,
            Self::Jumps => programs.by_jumps,
            Self::Pointers => programs.by_pointers,
        }
    }
}

/// A source for each kind that perf has an event of.
fn perf_sources(config: &CaptureConfig, walk: Walk) -> Vec<Box<dyn Source>> {
    let source = |(kind, every)| {
        let (event, programs) = perf_event(kind)?;
        Some(Box::new(PerfSource::new(kind, event, every, walk.program(&programs))) as Box<dyn Source>)
    };
    config.events().filter_map(source).collect()
}

/// How stacks are walked. Where there is no `bpf_loop`, loads the sampling programs that this kernel can run.
fn samplers(
    ebpf: &mut Ebpf,
    (config, features): (&CaptureConfig, &HostFeatures),
    programs: &mut Vec<&'static str>,
) -> Result<(Walk, Option<ProgramArray<MapData>>), CaptureError> {
    if features.bpf_loop {
        return Ok((Walk::Loop, None));
    }
    let mut load = |ebpf: &mut Ebpf, name| {
        let program: &mut PerfEvent = program(ebpf, name)?;
        program.load().map_err(|e| CaptureError::load(&features.kernel, name, e))?;
        programs.push(name);
        Ok(())
    };
    let jumps = perf_programs(config, Walk::Jumps).chain([MORE]).try_for_each(|name| load(ebpf, name));
    match jumps.and_then(|()| next(ebpf)) {
        Ok(next) => Ok((Walk::Jumps, Some(next))),
        Err(error) => {
            tracing::warn!(%error, "stacks are walked by frame pointers only");
            perf_programs(config, Walk::Pointers).try_for_each(|name| load(ebpf, name))?;
            Ok((Walk::Pointers, None))
        }
    }
}

/// Tells the first part of a walk what comes after it. The kernel forgets it with the map's last descriptor.
fn next(ebpf: &mut Ebpf) -> Result<ProgramArray<MapData>, CaptureError> {
    let error = |source: MapError| CaptureError::Map { name: "NEXT", source: source.into() };
    let map = ebpf.take_map("NEXT").ok_or(CaptureError::Missing { name: "NEXT" })?;
    let mut next = ProgramArray::try_from(map).map_err(error)?;
    let program: &mut PerfEvent = program(ebpf, MORE)?;
    let program = program.fd().map_err(|e| CaptureError::attach(MORE, e))?;
    next.set(0, program, 0).map_err(error)?;
    Ok(next)
}

fn open(config: &CaptureConfig, features: &HostFeatures, object: &[u8]) -> Result<Ebpf, CaptureError> {
    let cpus = aya::util::nr_cpus()
        .map_err(|(_, source)| CaptureError::Io { operation: "counting the possible CPUs", source })?;
    let ring_bytes = config.ring_bytes(cpus);
    let period = config.period_ns();
    let every = globals::EVERY.map(|(global, kind)| (global, config.every(kind).unwrap_or(1)));
    // Where there are none, the programs that name threads do nothing for them.
    let wait_every =
        config.every(SampleKind::OffCpu).filter(|_| off_cpu::lacks(features).is_none()).unwrap_or(0);
    let waiters = if wait_every > 0 { MAX_WAITERS } else { 1 };
    let block_every = config.every(SampleKind::BlockIo);
    // A second one is for uprobes, a third for tracepoints and named events.
    let scratches = match config.every(SampleKind::Alloc) {
        _ if !config.named.is_empty() || block_every.is_some() => 3,
        Some(_) => 2,
        None => 1,
    };
    let allocating = config.every(SampleKind::Alloc).map_or(1, |_| MAX_ALLOCATING);
    let named_every = globals::named_every(&config.named);
    let requests = if block_every.is_some() { MAX_BLOCK_REQUESTS } else { 1 };
    let block_rwbs = block_every.and_then(|_| block::rwbs_at()).unwrap_or(0);
    let block_every = block_every.unwrap_or(1);
    let seen_sets = config.seen_sets(cpus);
    let (seen_mask, wake) = (seen_sets - 1, u64::from(ring_bytes / 4));
    let of_kernel = globals::kernel(features);
    let (possible_cpus, ring) = (cpus as u32, u64::from(ring_bytes));
    let thread_room = u64::from(config.max_threads.max(1));
    // Random, as keys of the standard library's hash tables are.
    let share_seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0u8);

    let mut loader = EbpfLoader::new();
    // Nothing in the object is relocated against the kernel's types: spare aya parsing them.
    loader.btf(None);
    loader.verifier_log_level(VerifierLogLevel::DEBUG);
    loader.map_max_entries("EVENTS", ring_bytes);
    loader.map_max_entries("SEEN", seen_sets);
    loader.map_max_entries("THREADS", config.max_threads.max(1));
    loader.map_max_entries("WAITERS", waiters);
    loader.map_max_entries("SCRATCH", scratches);
    loader.map_max_entries("REQUESTS", requests);
    loader.map_max_entries("ALLOCATING", allocating);
    loader.override_global("RING_BYTES", &ring, true);
    loader.override_global("THREAD_ROOM", &thread_room, true);
    loader.override_global("SHARE_SEED", &share_seed, true);
    loader.override_global("CPUS", &possible_cpus, true);
    loader.override_global("PERIOD_NS", &period, true);
    loader.override_global("WAIT_EVERY_NS", &wait_every, true);
    loader.override_global("WAKE_BYTES", &wake, true);
    loader.override_global("SEEN_MASK", &seen_mask, true);
    loader.override_global("NAMED_EVERY", &named_every, true);
    loader.override_global("BLOCK_EVERY", &block_every, true);
    loader.override_global("BLOCK_RWBS", &block_rwbs, true);
    for (name, units) in &every {
        loader.override_global(name, units, true);
    }
    for (name, value) in &of_kernel {
        loader.override_global(name, value, true);
    }
    loader.load(object).map_err(|source| CaptureError::Setup { hint: hint(&source), source: source.into() })
}

fn hint(error: &EbpfError) -> &'static str {
    match error {
        EbpfError::MapError(aya::maps::MapError::CreateError { io_error, .. }) => {
            match io_error.raw_os_error() {
                Some(libc::EPERM) => {
                    " (not permitted: before Linux 5.11 `ulimit -l unlimited` is needed; in a container, CAP_BPF and a \
                     seccomp profile that lets bpf(2) through)"
                }
                Some(libc::ENOMEM) => " (out of memory: choose a smaller ring buffer)",
                _ => "",
            }
        }
        _ => "",
    }
}

/// The program `name`, which must be in the object and of the type wanted.
pub(super) fn program<'a, P>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut P, CaptureError>
where
    &'a mut P: TryFrom<&'a mut Program>,
{
    ebpf.program_mut(name).and_then(|program| program.try_into().ok()).ok_or(CaptureError::Missing { name })
}

#[cfg(test)]
mod tests;
