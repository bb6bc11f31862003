//! A running capture: programs attached, ring read, counters at hand. Dropping it detaches everything.

use super::config::CaptureConfig;
use super::cpus::{CpuChange, CpuSet};
use super::error::CaptureError;
use super::features::HostFeatures;
use super::kernel_log::KernelLog;
use super::loader::{self, Loaded};
use super::ring::EventRing;
use super::stats::{self, Counters, KernelStats, ProgramStats};
use crate::model::{LostCounts, RawEvent};
use aya::Ebpf;
use aya::maps::Map;
use aya::programs::perf_event::{
    PerfEventConfig, PerfEventLinkId, PerfEventScope, SamplePolicy, SoftwareEvent,
};
use aya::programs::{PerfEvent, ProgramError};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// What a smoke test did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmokeReport {
    /// Programs that the verifier took.
    pub programs: Vec<&'static str>,
    /// CPUs that the sampler could be attached to.
    pub cpus: usize,
}

/// A running capture.
pub struct Capture {
    ebpf: Ebpf,
    sampler: &'static str,
    ring: EventRing,
    log: KernelLog,
    counters: Counters,
    cpus: CpuSet<PerfEventLinkId>,
    config: CaptureConfig,
    map_bytes: u64,
    ring_bytes: u64,
    /// While it is open, the kernel times BPF programs.
    _timing: Option<OwnedFd>,
}

impl Capture {
    /// Loads and attaches everything but takes no sample (the sampler is put on an event that never
    /// fires), then detaches.
    pub fn smoke(features: &HostFeatures) -> Result<SmokeReport, CaptureError> {
        let config = CaptureConfig::default();
        let Loaded { mut ebpf, sampler, programs } = loader::load(&config, features)?;
        let online = online()?;
        for cpu in &online {
            attach(&mut ebpf, sampler, *cpu, SoftwareEvent::Dummy, &config)?;
        }
        Ok(SmokeReport { programs, cpus: online.len() })
    }

    /// Loads, attaches, samples.
    pub fn start(config: &CaptureConfig, features: &HostFeatures) -> Result<Self, CaptureError> {
        let Loaded { mut ebpf, sampler, .. } = loader::load(config, features)?;
        let timing = match config.measure {
            true if features.capabilities.may_measure() => {
                aya::sys::enable_stats(aya::sys::Stats::RunTime).ok()
            }
            _ => None,
        };
        let map_bytes = stats::map_bytes();
        let ring = take(&mut ebpf, "EVENTS")?;
        let counters = take(&mut ebpf, "COUNTERS")?;
        let cpus = aya::util::nr_cpus().unwrap_or(1);
        let mut capture = Self {
            log: KernelLog::new(&mut ebpf)?,
            ebpf,
            sampler,
            ring: EventRing::new(ring)?,
            counters: Counters(counters),
            cpus: CpuSet::new(Duration::from_nanos(config.period_ns())),
            config: config.clone(),
            map_bytes,
            ring_bytes: u64::from(config.ring_bytes(cpus)),
            _timing: timing,
        };
        capture.refresh_cpus()?;
        Ok(capture)
    }

    /// Waits at most `timeout`, less when the ring fills up, then appends what has come to `out`, in the
    /// order in which it was sent. Returns how many records came.
    pub fn read(&mut self, timeout: Duration, out: &mut Vec<RawEvent>) -> Result<usize, CaptureError> {
        let taken = self.ring.read(timeout, out)?;
        self.log.flush();
        Ok(taken)
    }

    /// Losses since start.
    pub fn lost(&self) -> LostCounts {
        self.counters.sum().map(|sum| stats::lost(&sum)).unwrap_or_default()
    }

    /// Counts since start.
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
            undecodable: self.ring.undecodable,
            programs,
            map_bytes: self.map_bytes,
            ring_bytes: self.ring_bytes,
            ..counts
        }
    }

    /// CPUs sampled now.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Looks which CPUs came or went, and samples those that are online. To be called every second or
    /// so.
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
                if let Some(old) = self.cpus.remove(cpu) {
                    drop_link(&mut self.ebpf, self.sampler, old)?;
                }
                let link = attach(&mut self.ebpf, self.sampler, cpu, SoftwareEvent::CpuClock, &self.config)?;
                if let Some(link) = link {
                    self.cpus.insert(cpu, link, ticks(cpu), now);
                    done.push(cpu);
                }
            }
        }
        Ok(change)
    }

    fn detach(&mut self, cpu: u32) -> Result<(), CaptureError> {
        match self.cpus.remove(cpu) {
            Some(link) => drop_link(&mut self.ebpf, self.sampler, link),
            None => Ok(()),
        }
    }
}

fn online() -> Result<Vec<u32>, CaptureError> {
    aya::util::online_cpus().map_err(|(_, source)| CaptureError::Io {
        operation: "reading /sys/devices/system/cpu/online",
        source,
    })
}

fn take<T: TryFrom<Map, Error = aya::maps::MapError>>(
    ebpf: &mut Ebpf,
    name: &'static str,
) -> Result<T, CaptureError> {
    let map = ebpf.take_map(name).ok_or(CaptureError::Missing { name })?;
    T::try_from(map).map_err(|e| CaptureError::Map { name, source: e.into() })
}

fn drop_link(ebpf: &mut Ebpf, sampler: &'static str, link: PerfEventLinkId) -> Result<(), CaptureError> {
    let program: &mut PerfEvent = loader::program(ebpf, sampler)?;
    program.detach(link).map_err(|e| CaptureError::attach(sampler, e))
}

/// Puts the sampler on a CPU; None when the CPU went offline meanwhile.
fn attach(
    ebpf: &mut Ebpf,
    sampler: &'static str,
    cpu: u32,
    event: SoftwareEvent,
    config: &CaptureConfig,
) -> Result<Option<PerfEventLinkId>, CaptureError> {
    let program: &mut PerfEvent = loader::program(ebpf, sampler)?;
    let event = PerfEventConfig::Software(event);
    let scope = PerfEventScope::AllProcessesOneCpu { cpu };
    match program.attach(event, scope, SamplePolicy::Period(config.period_ns()), false) {
        Ok(link) => Ok(Some(link)),
        Err(ProgramError::SyscallError(e)) if e.io_error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        Err(source) => {
            let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
            Err(CaptureError::PerfEvent {
                cpu,
                hz: config.hz,
                paranoid: paranoid.map_or_else(|_| "absent".to_owned(), |s| s.trim().to_owned()),
                source: source.into(),
            })
        }
    }
}
