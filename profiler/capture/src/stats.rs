//! What the kernel side counted.

use super::error::CaptureError;
use aya::maps::{MapData, PerCpuArray};
use emberscope_model::LostCounts;
use profiler_ebpf::{COUNTER_SLOTS, Counter, DropReason};

/// Counts since start, and sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelStats {
    /// Runs of the sampling program for CPU time, idle CPUs included.
    pub ticks: u64,
    /// Runs of the sampling programs for other kinds.
    pub other_runs: u64,
    /// Runs that found the CPU idle.
    pub idle: u64,
    /// Samples that went up.
    pub samples: u64,
    /// User frames walked, those of stacks already sent too.
    pub user_frames: u64,
    /// Kernel frames taken, those of stacks already sent too.
    pub kernel_frames: u64,
    /// Stacks that went up.
    pub stacks: u64,
    /// Reads of user stacks.
    pub stack_reads: u64,
    /// Names that threads were given.
    pub names: u64,
    /// Records that came up and were not understood.
    pub undecodable: u64,
    /// The programs loaded, by name in order.
    pub programs: Vec<ProgramStats>,
    /// Memory of all maps, in bytes, as the kernel accounts for it.
    pub map_bytes: u64,
    /// Bytes of the ring buffer among them.
    pub ring_bytes: u64,
}

/// A program's runs, where the kernel counts them (`CaptureConfig::measure` or
/// `kernel.bpf_stats_enabled`); else 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramStats {
    /// The program's name in the object.
    pub name: String,
    /// How often the program ran.
    pub run_count: u64,
    /// Time that those runs took, in nanoseconds.
    pub run_time_ns: u64,
}

/// The per-CPU counters.
pub(super) struct Counters(pub(super) PerCpuArray<MapData, [u64; COUNTER_SLOTS]>);

impl Counters {
    fn per_cpu(&self) -> Result<impl IntoIterator<Item = [u64; COUNTER_SLOTS]>, CaptureError> {
        let values = self.0.get(&0, 0);
        let values = values.map_err(|e| CaptureError::Map { name: "COUNTERS", source: e.into() })?;
        Ok(values.iter().copied().collect::<Vec<_>>())
    }

    /// The counters, summed over the CPUs.
    pub(super) fn sum(&self) -> Result<[u64; COUNTER_SLOTS], CaptureError> {
        let mut sum = [0u64; COUNTER_SLOTS];
        for slots in self.per_cpu()? {
            for (sum, slot) in sum.iter_mut().zip(slots) {
                *sum = sum.wrapping_add(slot);
            }
        }
        Ok(sum)
    }

    /// Ticks of each possible CPU.
    pub(super) fn ticks(&self) -> Result<Vec<u64>, CaptureError> {
        Ok(self.per_cpu()?.into_iter().map(|slots| slots[Counter::Ticks as usize]).collect())
    }
}

/// The losses in a sum of counters.
pub(super) fn lost(sum: &[u64; COUNTER_SLOTS]) -> LostCounts {
    let mut lost = LostCounts::default();
    for (reason, count) in DropReason::ALL.iter().zip(&mut lost.0) {
        *count = sum[*reason as usize];
    }
    lost
}

/// The counts in a sum of counters that are no losses.
pub(super) fn counts(sum: &[u64; COUNTER_SLOTS]) -> KernelStats {
    let of = |counter: Counter| sum[counter as usize];
    KernelStats {
        ticks: of(Counter::Ticks),
        other_runs: of(Counter::OtherRuns),
        idle: of(Counter::Idle),
        samples: of(Counter::Samples),
        user_frames: of(Counter::UserFrames),
        kernel_frames: of(Counter::KernelFrames),
        stacks: of(Counter::Stacks),
        stack_reads: of(Counter::StackReads),
        names: of(Counter::Names),
        ..Default::default()
    }
}

/// Bytes of all maps that this process holds, from the fdinfo of its own descriptors: to list or open maps
/// by their ids would need CAP_SYS_ADMIN. 0 when the kernel does not tell.
pub(super) fn map_bytes() -> u64 {
    let Ok(files) = std::fs::read_dir("/proc/self/fdinfo") else { return 0 };
    let infos = files.flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let field =
        |text: &str, name| text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<u64>().ok());
    let maps = infos.filter_map(|text| Some((field(&text, "map_id:")?, field(&text, "memlock:")?)));
    maps.collect::<std::collections::BTreeMap<_, _>>().into_values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_land_where_they_belong() {
        let mut sum = [0; COUNTER_SLOTS];
        sum[DropReason::RingFullSample as usize] = 3;
        sum[DropReason::NoScratch as usize] = 2;
        sum[Counter::Samples as usize] = 7;
        sum[Counter::StackReads as usize] = 8;
        assert_eq!(lost(&sum).samples(), 5);
        assert_eq!((counts(&sum).samples, counts(&sum).stack_reads, counts(&sum).ticks), (7, 8, 0));
    }
}
