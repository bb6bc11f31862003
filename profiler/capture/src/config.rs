//! What a capture may be told, and the sizes that follow from it.

use emberscope_model::{NamedEvent, SampleKind};
use profiler_ebpf::MAX_THREADS;

/// What a capture samples, and how much room it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureConfig {
    /// Samples a second on each CPU, 1 to [`CaptureConfig::MAX_HZ`].
    pub hz: u32,
    /// Kinds that are sampled beside CPU time, each with how many units of its weight a sample stands for.
    pub others: Vec<(SampleKind, u64)>,
    /// Events that are named, [`MAX_NAMED`](emberscope_model::MAX_NAMED) of them at most: those beyond are not sampled.
    pub named: Vec<NamedEvent>,
    /// Size of the ring buffer; rounded up to a power of two of at least a page. None: by the number of
    /// CPUs.
    pub ring_bytes: Option<u32>,
    /// Threads whose names are kept, at most: [`MAX_THREADS`], 88 bytes each.
    pub max_threads: u32,
    /// Whether pauses of JVMs may be seen, where their files are given ([`super::Capture::watch_pauses`]).
    pub pauses: bool,
    /// Let the kernel time the programs (some 20 ns a run). Needs CAP_SYS_ADMIN; without it the times
    /// stay 0 unless `kernel.bpf_stats_enabled` is set.
    pub measure: bool,
}

impl Default for CaptureConfig {
    fn default() -> Self {
        Self {
            hz: 99,
            others: Vec::new(),
            named: Vec::new(),
            ring_bytes: None,
            max_threads: MAX_THREADS,
            pauses: true,
            measure: false,
        }
    }
}

const KIB: u64 = 1024;

impl CaptureConfig {
    /// Highest rate: at 3 us a sample, 10 kHz would already take 3 % of each CPU.
    pub const MAX_HZ: u32 = 10_000;

    /// Time between two samples of a CPU, in nanoseconds: the weight of a sample.
    pub fn period_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.hz.clamp(1, Self::MAX_HZ))
    }

    /// Each kind that is sampled, with how many units of its weight a sample stands for.
    pub fn events(&self) -> impl Iterator<Item = (SampleKind, u64)> {
        std::iter::once((SampleKind::Cpu, self.period_ns())).chain(self.others.iter().copied())
    }

    /// How many units of its weight a sample of a kind stands for. None: it is not sampled.
    pub fn every(&self, kind: SampleKind) -> Option<u64> {
        self.events().find_map(|(known, every)| (known == kind).then_some(every))
    }

    /// Bytes of the ring buffer: 256 KiB a CPU at 99 Hz, which holds a second of samples with a new
    /// stack of 130 frames each; 512 KiB to 16 MiB.
    pub fn ring_bytes(&self, cpus: usize) -> u32 {
        let bytes = match self.ring_bytes {
            Some(bytes) => u64::from(bytes).clamp(4 * KIB, 1024 * 1024 * KIB),
            None => (self.scaled(256 * KIB, cpus)).clamp(512 * KIB, 16 * 1024 * KIB),
        };
        bytes.next_power_of_two() as u32
    }

    /// Sets of eight in the table of stacks already sent: room for four times as many as can be sampled in
    /// an epoch of ten seconds, so that one set in 5,000 overflows at worst; 512 to 131,072 (64 bytes
    /// each).
    pub fn seen_sets(&self, cpus: usize) -> u32 {
        self.scaled(512, cpus).next_power_of_two().clamp(512, 131_072) as u32
    }

    fn scaled(&self, per_cpu_at_99_hz: u64, cpus: usize) -> u64 {
        per_cpu_at_99_hz * cpus as u64 * u64::from(self.hz.clamp(1, Self::MAX_HZ)).div_ceil(99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_cpus_and_rate_within_bounds() {
        let config = CaptureConfig::default();
        assert_eq!(config.period_ns(), 10_101_010);
        assert_eq!(config.ring_bytes(1), 512 * 1024);
        assert_eq!(config.ring_bytes(6), 2 * 1024 * 1024);
        assert_eq!(config.ring_bytes(1000), 16 * 1024 * 1024);
        assert_eq!(config.seen_sets(1), 512);
        assert_eq!(config.seen_sets(64), 32_768);
        assert_eq!(config.seen_sets(1000), 131_072);
        assert_eq!(CaptureConfig { hz: 990, ..config }.seen_sets(3), 16_384);
    }

    #[test]
    fn a_wish_for_ring_bytes_is_rounded_to_what_the_kernel_takes() {
        let ring = |bytes| CaptureConfig { ring_bytes: Some(bytes), ..Default::default() }.ring_bytes(2);
        assert_eq!(ring(0), 4096);
        assert_eq!(ring(5000), 8192);
        assert_eq!(ring(u32::MAX), 1 << 30);
    }
}
