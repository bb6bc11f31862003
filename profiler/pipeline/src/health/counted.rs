//! What all rooms count, read once: for the metrics each time, for the status when it is made.

use super::{native, push, quotas, reads};
use crate::tables::TableCounts;
use crate::worker::Worker;
use emberscope_capture::{Capture, KernelStats};
use emberscope_model::{DropReason, LostCounts, Refusals};
use emberscope_process::{Counters, ThreadCounters};
use emberscope_push::{Protocol, PushState};
use emberscope_serve::{Metrics, raise_to};
use emberscope_symbolize::SymbolizerCounters;
use emberscope_target::errand::{self, ErrandCounts};

/// Numbers of one moment.
pub struct Counted<'a> {
    pub kernel: KernelStats,
    pub lost: LostCounts,
    pub processes: Counters,
    pub threads: ThreadCounters,
    pub names: SymbolizerCounters,
    pub unwind: TableCounts,
    pub reads: ErrandCounts,
    pub pushed: Vec<(Protocol, PushState)>,
    /// What each table turned away, by tenant.
    pub quotas: Vec<(&'static str, &'a Refusals)>,
}

impl<'a> Counted<'a> {
    pub fn of(rooms: &'a Worker) -> Self {
        let [evicted, unread] = rooms.registry.refusals();
        let [thread, label] = rooms.threads.refusals();
        let [named, frames] = rooms.symbolizer.refusals();
        let (stacks, windows) = (rooms.stacks.refusals(), rooms.windows.refusals());
        let quotas =
            [evicted, unread, thread, label, stacks, windows, rooms.runtimes.refusals(), named, frames];
        Self {
            kernel: rooms.capture.stats(),
            lost: rooms.capture.lost(),
            processes: rooms.registry.counters(),
            threads: rooms.threads.counters(),
            names: rooms.symbolizer.counters(),
            unwind: rooms.tables.counts(),
            reads: errand::counts(),
            pushed: push::states(&rooms.pushers),
            quotas: quotas.into_iter().chain(rooms.shares.refusals()).collect(),
        }
    }

    /// Brings the numbers to the metrics.
    pub fn count(&self, m: &Metrics, rooms: &Worker) {
        self.count_sampling(m, &rooms.capture);
        self.count_bounded(m, rooms);
        self.count_names(m);
        for (event, count) in rooms.runtimes.counted() {
            raise_to(&m.sampling.jit_events.with_label_values(&[event]), count);
        }
        quotas::count(m, &self.quotas);
        native::count(m, &self.unwind, &self.names.native);
        reads::count(m, &self.reads);
        push::count(&m.push, &self.pushed);
    }

    fn count_sampling(&self, m: &Metrics, capture: &Capture) {
        for reason in DropReason::ALL {
            m.sampling.lost.raise_to(*reason, self.lost.get(*reason));
        }
        let kernel = &self.kernel;
        raise_to(&m.sampling.frames_walked, kernel.user_frames);
        m.sampling.bpf_map_bytes.set(i64::try_from(kernel.map_bytes).unwrap_or(i64::MAX));
        for program in &kernel.programs {
            let name = [&*program.name];
            raise_to(&m.sampling.bpf_runs.with_label_values(&name), program.run_count);
            raise_to(&m.sampling.bpf_run_nanoseconds.with_label_values(&name), program.run_time_ns);
        }
        m.naming.name_probes.set(i64::try_from(capture.name_probes()).unwrap_or(i64::MAX));
        m.naming.alloc_probes.set(i64::try_from(capture.alloc_probes()).unwrap_or(i64::MAX));
    }

    fn count_bounded(&self, m: &Metrics, rooms: &Worker) {
        let Self { processes, threads, names, .. } = self;
        let interned = rooms.interner.stats();
        let (raw_stacks, raw_refused) = rooms.stacks.usage();
        let [_, (_, frames)] = rooms.symbolizer.refusals();
        for (table, held, refused) in [
            ("processes", processes.processes as u64, processes.evicted),
            ("raw_stacks", raw_stacks as u64, raw_refused),
            ("frames", names.frames, frames.total()),
            ("stacks", interned.stacks as u64, interned.refused_stacks),
            ("named_processes", names.processes, names.processes_evicted),
            ("read_jvms", names.java_held as u64, 0),
            ("threads", threads.threads, threads.threads_evicted),
            ("thread_labels", threads.label_sets, threads.folded),
            ("jvms", rooms.runtimes.len() as u64, rooms.runtimes.refused()),
            ("pyspark", rooms.pythons.len() as u64, rooms.pythons.refused()),
        ] {
            m.bounded.entries.with_label_values(&[table]).set(i64::try_from(held).unwrap_or(i64::MAX));
            raise_to(&m.bounded.refused.with_label_values(&[table]), refused);
        }
        for (queue, refused) in [
            ("execs", processes.execs_dropped),
            ("driver_questions", processes.asks_refused),
            ("perf_map_jobs", names.asks_dropped),
            ("perf_map_entries", names.perf_map_entries_dropped),
            ("perf_map_ends", names.perf_maps_cut),
            ("symbol_tables", names.native.tables_evicted),
            ("ledger_lines", rooms.windows.counters().folded_ledger),
            ("pauses", rooms.windows.counters().unlisted_pauses),
        ] {
            raise_to(&m.bounded.refused.with_label_values(&[queue]), refused);
        }
    }

    fn count_names(&self, m: &Metrics) {
        let (m, names) = (&m.naming, &self.names);
        raise_to(&m.perf_map_asks.with_label_values(&["answered"]), names.asks_answered);
        raise_to(&m.java_frames.with_label_values(&["named"]), names.java_named);
        for (result, count) in &names.java_unnamed {
            raise_to(&m.java_frames.with_label_values(&[result]), *count);
        }
        raise_to(&m.java_read, names.java_read_ns);
        for (result, count) in &names.asks_failed {
            raise_to(&m.perf_map_asks.with_label_values(&[result]), *count);
        }
        for (reason, count) in &names.perf_maps_refused {
            raise_to(&m.perf_maps_refused.with_label_values(&[reason]), *count);
        }
        for (result, count) in self.threads.results() {
            raise_to(&m.thread_names.with_label_values(&[result]), count);
        }
        raise_to(&m.identity_conflicts, self.processes.conflicts);
    }
}
