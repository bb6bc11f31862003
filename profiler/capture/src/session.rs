//! A running capture: programs attached, rings read, counters at hand. Dropping it detaches everything.

mod smoke;

pub use smoke::SmokeReport;

use super::config::CaptureConfig;
use super::cpus::{CpuChange, CpuSet};
use super::error::CaptureError;
use super::features::HostFeatures;
use super::file_probes::FileProbes;
use super::kernel_log::KernelLog;
use super::loader::{self, Loaded, Walk};
use super::mapped::MappedCode;
use super::names::NameProbes;
use super::off_cpu::Waiters;
use super::pauses::PauseProbes;
use super::perf_ring::PerfRing;
use super::proc_threads::ProcThreads;
use super::ring::EventRing;
use super::runtimes::RuntimeMaps;
use super::shares::{Seen, Shares};
use super::source::{Lacking, Source, SourceState};
use super::stats::{self, Counters, KernelStats, ProgramStats};
use super::tables::TableMaps;
use super::threads::Threads;
use super::workers::Workers;
use aya::Ebpf;
use aya::maps::{Map, MapData, ProgramArray};
use emberscope_model::{LostCounts, RawEvent, SampleKind};
use profiler_ebpf::DropReason;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// What watches a CPU.
struct Watch {
    /// Where newly mapped code comes up; None where the kernel gives no such ring.
    code: Option<PerfRing>,
}

/// A running capture.
pub struct Capture {
    pub(super) ebpf: Ebpf,
    pub(super) sources: Vec<Box<dyn Source>>,
    pub(super) ring: EventRing,
    log: KernelLog,
    counters: Counters,
    cpus: CpuSet<Watch>,
    mapped: MappedCode,
    pub(super) names: NameProbes,
    pub(super) allocations: FileProbes,
    pub(super) pauses: PauseProbes,
    pub(super) threads: Threads,
    pub(super) runtimes: RuntimeMaps,
    pub(super) tables: Option<TableMaps>,
    pub(super) shares: Shares,
    pub(super) workers: Workers,
    pub(super) waiters: Waiters,
    /// Kinds that were asked for and cannot be sampled here, and why.
    pub(super) lacking: Vec<Lacking>,
    /// Events that came out of the ring while room was made in it.
    pub(super) early: Vec<RawEvent>,
    mmap_events: bool,
    map_bytes: u64,
    ring_bytes: u64,
    /// While this is open, a walk goes on where the kernel has no `bpf_loop`.
    _next: Option<ProgramArray<MapData>>,
    /// While this is open, the kernel times BPF programs.
    _timing: Option<OwnedFd>,
}

impl Capture {
    /// Loads the programs, attaches them to all CPUs that are online, and samples. A kind of `others` that this host
    /// cannot sample is no error: [`Self::lacking`] and [`Self::must_have`] tell.
    ///
    /// # Errors
    /// Before anything is loaded: [`CaptureError::BadRate`], [`CaptureError::NoCapability`],
    /// [`CaptureError::NotBuilt`], [`CaptureError::NoKernelFeature`]. Then [`CaptureError::Setup`] (maps),
    /// [`CaptureError::Refused`] (the verifier), [`CaptureError::Program`], [`CaptureError::PerfEvent`],
    /// [`CaptureError::Missing`], [`CaptureError::Map`] or [`CaptureError::Io`]. What was attached is detached again.
    pub fn start(config: &CaptureConfig, features: &HostFeatures) -> Result<Self, CaptureError> {
        let Loaded { mut ebpf, walk, sources, next, iterator, binders, .. } = loader::load(config, features)?;
        // Those of this host go on without: they say so.
        let lacks = |source: &dyn Source| {
            let (what, SourceState { kind, event, .. }) = (source.lacks(features)?, source.state());
            Some(Lacking { kind, event, what })
        };
        let lacking: Vec<_> = sources.iter().filter_map(|source| lacks(&**source)).collect();
        let sources = sources.into_iter().filter(|source| source.lacks(features).is_none()).collect();
        let timing = match config.measure {
            true if features.capabilities.may_measure() => {
                aya::sys::enable_stats(aya::sys::Stats::RunTime).ok()
            }
            _ => None,
        };
        let map_bytes = stats::map_bytes();
        let ring = take(&mut ebpf, "EVENTS")?;
        let counters = take(&mut ebpf, "COUNTERS")?;
        let threads = Threads {
            watched: take(&mut ebpf, "WATCHED")?,
            layouts: take(&mut ebpf, "STRING_LAYOUTS")?,
            names: take(&mut ebpf, "THREADS")?,
            proc: (!iterator).then(ProcThreads::default),
        };
        let runtimes = RuntimeMaps::of(&mut ebpf, walk != Walk::Pointers)?;
        let tables = TableMaps {
            slabs: take(&mut ebpf, "SLABS")?,
            rules: take(&mut ebpf, "RULES")?,
            processes: take(&mut ebpf, "PROCESSES")?,
            made: HashMap::new(),
            nothing: None,
        };
        let shares = Shares {
            slots: take(&mut ebpf, "SHARES")?,
            spark: take(&mut ebpf, "SPARK_USERS")?,
            seen: Seen::default(),
        };
        let workers = Workers { parties: take(&mut ebpf, "PARTIES")?, binders, links: Vec::new() };
        let waiters = take(&mut ebpf, "WAITERS")?;
        let cpus = aya::util::nr_cpus().unwrap_or(1);
        let mut capture = Self {
            log: KernelLog::new(&mut ebpf)?,
            ebpf,
            sources,
            ring: EventRing::new(ring)?,
            counters: Counters(counters),
            cpus: CpuSet::new(Duration::from_nanos(config.period_ns())),
            mapped: MappedCode::default(),
            names: NameProbes::default(),
            allocations: FileProbes::default(),
            pauses: PauseProbes::new(config.pauses && features.uprobes.is_ok()),
            threads,
            runtimes,
            tables: Some(tables),
            shares,
            workers,
            waiters,
            lacking,
            early: Vec::new(),
            mmap_events: features.mmap_events.is_ok(),
            map_bytes,
            ring_bytes: u64::from(config.ring_bytes(cpus)),
            _next: next,
            _timing: timing,
        };
        capture.refresh_cpus()?;
        Ok(capture)
    }

    /// Waits at most `timeout`, less when a ring fills up, then appends what has come to `out`: newly mapped
    /// code, then everything else in the order in which it was sent. So a mapping is known before the
    /// samples that are in it. Returns how many records came: events, and records that are none for us (another
    /// process's fork, an anonymous mapping), which wake the reader too.
    ///
    /// # Errors
    /// [`CaptureError::Io`]: epoll(7) failed, which is a defect. Records that make no sense are counted, and no
    /// error.
    pub fn read(&mut self, timeout: Duration, out: &mut Vec<RawEvent>) -> Result<usize, CaptureError> {
        let (before, passed_over) = (out.len(), self.mapped.passed_over);
        let timeout = if self.early.is_empty() { timeout } else { Duration::ZERO };
        // Of sixteen thousand threads they are 6 MB, which nobody needs twice, nor again.
        match std::mem::take(&mut self.early) {
            early if out.is_empty() && !early.is_empty() => *out = early,
            mut early => out.append(&mut early),
        }
        self.ring.read(timeout, out)?;
        // Read later than the samples, so that no mapping of theirs is missing; told earlier.
        let sampled = out.len() - before;
        self.mapped.read(self.cpus.links_mut().filter_map(|watch| watch.code.as_mut()), out);
        if let Some(new) = out.get_mut(before..) {
            new.rotate_left(sampled);
        }
        self.log.flush();
        Ok(out.len() - before + (self.mapped.passed_over - passed_over) as usize)
    }

    /// Losses since the start, by reason; where the counters cannot be read, those of mapped code alone.
    pub fn lost(&self) -> LostCounts {
        let mut lost = self.counters.sum().map(|sum| stats::lost(&sum)).unwrap_or_default();
        if let Some(events) = lost.0.get_mut(DropReason::RingFullEvent as usize) {
            *events += self.mapped.lost;
        }
        lost
    }

    /// Counts since the start; 0 where the counters cannot be read.
    pub fn stats(&self) -> KernelStats {
        let counts = self.counters.sum().map(|sum| stats::counts(&sum)).unwrap_or_default();
        let mut programs: Vec<ProgramStats> = self
            .ebpf
            .programs()
            .filter_map(|(name, program)| {
                let info = program.info().ok()?;
                Some(ProgramStats {
                    name: name.to_owned(),
                    run_count: info.run_count(),
                    run_time_ns: info.run_time().as_nanos() as u64,
                })
            })
            .collect();
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        KernelStats {
            undecodable: self.ring.undecodable + self.mapped.undecodable,
            programs,
            map_bytes: self.map_bytes,
            ring_bytes: self.ring_bytes,
            ..counts
        }
    }

    /// What each source of samples is doing.
    pub fn sources(&self) -> Vec<SourceState> {
        self.sources.iter().map(|source| source.state()).collect()
    }

    /// What was asked for and cannot be sampled here, and what mends that.
    pub fn lacking(&self) -> &[Lacking] {
        &self.lacking
    }

    /// Whether all samples of a kind, or of what it holds, can be taken here.
    ///
    /// # Errors
    /// [`CaptureError::NoSource`] for the first that cannot.
    pub fn must_have(&self, kind: SampleKind) -> Result<(), CaptureError> {
        match self.lacking.iter().find(|lacking| kind.needs(lacking.kind)) {
            Some(lacking) => {
                Err(CaptureError::NoSource { kind: lacking.name().to_owned(), what: lacking.what.clone() })
            }
            None => Ok(()),
        }
    }

    /// How many CPUs are sampled now.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Looks which CPUs came or went, and samples those that are online. To be called every second or so.
    ///
    /// # Errors
    /// The list of CPUs or the counters cannot be read, or a source cannot be put on a CPU or taken off. CPUs after
    /// that one are as they were, and the next call goes on with them.
    pub fn refresh_cpus(&mut self) -> Result<CpuChange, CaptureError> {
        let ticks = self.counters.ticks()?;
        let ticks = |cpu: u32| ticks.get(cpu as usize).copied().unwrap_or(0);
        let now = Instant::now();
        let plan = self.cpus.plan(&online()?, ticks, now);
        let mut change = CpuChange::default();
        for cpu in plan.detach {
            self.detach(cpu)?;
            change.removed.push(cpu);
        }
        for (cpus, done) in [(plan.attach, &mut change.added), (plan.revive, &mut change.revived)] {
            for cpu in cpus {
                self.detach(cpu)?;
                let mut attached = true;
                for source in &mut self.sources {
                    attached &= source.attach(&mut self.ebpf, cpu)?;
                }
                if attached {
                    let code = self.mmap_events.then(|| self.watch_code(cpu)).flatten();
                    self.cpus.insert(cpu, Watch { code }, ticks(cpu), now);
                    done.push(cpu);
                }
            }
        }
        Ok(change)
    }

    /// An extra: a CPU whose ring cannot be had is sampled without.
    fn watch_code(&self, cpu: u32) -> Option<PerfRing> {
        let ring = PerfRing::open(cpu).and_then(|ring| self.ring.wake_by(&ring).map(|()| ring));
        ring.inspect_err(
            |error| tracing::warn!(cpu, %error, "newly mapped code on this CPU is found by scanning"),
        )
        .ok()
    }

    fn detach(&mut self, cpu: u32) -> Result<(), CaptureError> {
        self.cpus.remove(cpu);
        self.sources.iter_mut().try_for_each(|source| source.detach(&mut self.ebpf, cpu))
    }
}

fn online() -> Result<Vec<u32>, CaptureError> {
    aya::util::online_cpus().map_err(|(_, source)| CaptureError::Io {
        operation: "reading /sys/devices/system/cpu/online",
        source,
    })
}

pub(super) fn take<T: TryFrom<Map, Error = aya::maps::MapError>>(
    ebpf: &mut Ebpf,
    name: &'static str,
) -> Result<T, CaptureError> {
    let map = ebpf.take_map(name).ok_or(CaptureError::Missing { name })?;
    T::try_from(map).map_err(|e| CaptureError::Map { name, source: e.into() })
}
