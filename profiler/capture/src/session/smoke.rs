//! A smoke test of the programs: whether this kernel's verifier takes them.

use super::{Capture, online};
use crate::config::CaptureConfig;
use crate::error::CaptureError;
use crate::features::HostFeatures;
use crate::loader::{self, Loaded};
use crate::perf_ring::PerfRing;
use emberscope_model::SampleKind;

/// What a smoke test did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmokeReport {
    /// Programs that the verifier took.
    pub programs: Vec<&'static str>,
    /// CPUs that the sampler could be attached to.
    pub cpus: usize,
    /// Those of these CPUs whose newly mapped code is seen.
    pub mmap_cpus: usize,
}

impl Capture {
    /// Loads and attaches everything but takes no sample (the sampler is put on an event that never
    /// fires), then detaches.
    ///
    /// # Errors
    /// As for [`Capture::start`], but a kind that cannot be sampled here is left out. Nothing stays attached.
    pub fn smoke(features: &HostFeatures) -> Result<SmokeReport, CaptureError> {
        let others = SampleKind::TAKEN.iter().filter_map(|kind| Some((*kind, kind.facts().pace.usual()?)));
        let config = CaptureConfig { others: others.collect(), ..CaptureConfig::default() };
        let Loaded { mut ebpf, sources, programs, .. } = loader::load(&config, features)?;
        let mut sources: Vec<_> = sources.into_iter().filter(|s| s.lacks(features).is_none()).collect();
        sources.iter_mut().for_each(|source| source.idle());
        let online = online()?;
        let mut mmap_cpus = 0;
        for cpu in &online {
            for source in &mut sources {
                source.attach(&mut ebpf, *cpu)?;
            }
            mmap_cpus += usize::from(features.mmap_events.is_ok() && PerfRing::open(*cpu).is_ok());
        }
        Ok(SmokeReport { programs, cpus: online.len(), mmap_cpus })
    }
}
