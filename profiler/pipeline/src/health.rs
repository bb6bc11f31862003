//! What the pipeline counts and shows of itself: metrics, and the daemon's part of the status.
//!
//! In: the rooms' counters, once a second, and each window that closes. Out: [`Metrics`], and a JSON value
//! that `/api/v1/status` serves without asking any room.

mod native;
mod push;
mod pythons;
mod quotas;
mod reads;

use super::runtimes::{Allocations, Naming, Processes, Walking};
use super::tables::TableCounts;
use super::worker::Worker;
use emberscope_capture::{Capture, CpuChange, FindingState, HostFeatures, SourceState};
use emberscope_model::{DropReason, LabelKey, LedgerRow, NameSource, Role, SampleKind, ThreadClass, Window};
use emberscope_process::{Conflict, Process, Registry};
use emberscope_push::Protocol;
use emberscope_serve::{Metrics, raise_to};
use emberscope_symbolize::Symbolizer;
use emberscope_target::errand;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// JVMs that the status lists.
const MAX_LISTED: usize = 200;

/// How often the status is made while nobody looks at it, which is most of the time; else each second.
const UNSEEN_EVERY: Duration = Duration::from_secs(3);
/// For how long after a look the next one is waited for.
const SEEN: Duration = Duration::from_secs(30);

/// What other threads see of the pipeline.
#[derive(Debug, Default)]
pub struct Shared(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    status: Value,
    made: Option<Instant>,
    seen: Option<Instant>,
}

impl Shared {
    /// The newest state, at most [`UNSEEN_EVERY`] old; an object.
    pub fn status(&self) -> Value {
        let mut state = self.lock();
        state.seen = Some(Instant::now());
        state.status.clone()
    }

    fn is_due(&self, now: Instant) -> bool {
        let state = self.lock();
        let seen = state.seen.is_some_and(|seen| now.duration_since(seen) < SEEN);
        seen || state.made.is_none_or(|made| now.duration_since(made) >= UNSEEN_EVERY)
    }

    fn put(&self, status: Value, now: Instant) {
        let mut state = self.lock();
        (state.status, state.made) = (status, Some(now));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts and tells.
pub struct Health {
    metrics: Arc<Metrics>,
    shared: Arc<Shared>,
    host: Value,
    hz: u32,
}

impl Health {
    /// `features` and the rate do not change while we run.
    pub fn new(metrics: Arc<Metrics>, shared: Arc<Shared>, features: &HostFeatures, hz: u32) -> Self {
        let findings: Vec<Value> = features
            .findings()
            .iter()
            .map(|f| json!({ "name": f.name, "state": state(f.state), "value": f.value, "says": f.sentence }))
            .collect();
        let host = json!({ "kernel": features.kernel, "findings": findings });
        Self { metrics, shared, host, hz }
    }

    /// A sample was counted.
    pub fn sample(&mut self, kind: SampleKind) {
        self.metrics.samples.add(kind, 1);
    }

    /// A sample of an application that the user does not want.
    pub fn not_kept(&mut self) {
        self.metrics.not_kept.inc();
    }

    /// CPUs came or went.
    pub fn cpus_changed(&self, change: &CpuChange) {
        if !(change.added.is_empty() && change.removed.is_empty()) {
            tracing::info!(added = ?change.added, removed = ?change.removed, "CPUs");
        }
        if !change.revived.is_empty() {
            tracing::debug!(cpus = ?change.revived, "without a tick for a while: attached anew, or idle");
        }
    }

    /// A window was named and is about to be stored.
    pub fn window(&self, window: &Window) {
        self.metrics.windows.inc();
        self.metrics.partial_windows.inc_by(u64::from(window.partial));
        for row in &window.rows {
            self.metrics.stack_end.add(row.stack.end, row.count);
            for reason in row.stack.frames.iter().filter_map(|frame| frame.unknown) {
                self.metrics.unnamed_frames.add(reason, row.count);
            }
        }
        let of_jvm = |line: &&LedgerRow| line.labels.get(LabelKey::Role) != Role::Python.slug();
        for line in window.ledger.iter().filter(of_jvm) {
            if let Some(class) = ThreadClass::from_slug(line.labels.get(LabelKey::ThreadClass)) {
                self.metrics.jvm_cpu.add(class, &line.sums);
            }
        }
        if window.lost.samples() > 0 {
            tracing::warn!(lost = window.lost.samples(), from = %window.range.from, "samples were lost");
        }
    }

    /// Takes the rooms' counters.
    pub fn update(&self, rooms: &Worker) {
        let Worker { capture, registry, symbolizer, stacks, interner, threads, tables, windows, .. } = rooms;
        let (probes, pushed) = (&rooms.runtimes, push::states(&rooms.pushers));
        let (m, kernel, lost) = (&self.metrics, capture.stats(), capture.lost());
        for reason in DropReason::ALL {
            m.lost.raise_to(*reason, lost.get(*reason));
        }
        raise_to(&m.frames_walked, kernel.user_frames);
        m.bpf_map_bytes.set(i64::try_from(kernel.map_bytes).unwrap_or(i64::MAX));
        for program in &kernel.programs {
            raise_to(&m.bpf_runs.with_label_values(&[&program.name]), program.run_count);
            raise_to(&m.bpf_run_nanoseconds.with_label_values(&[&program.name]), program.run_time_ns);
        }
        let (processes, names, interned) = (registry.counters(), symbolizer.counters(), interner.stats());
        let (raw_stacks, raw_refused) = stacks.usage();
        let [named, frames] = symbolizer.refusals();
        for (table, held, refused) in [
            ("processes", processes.processes, processes.evicted),
            ("raw_stacks", raw_stacks, raw_refused),
            ("frames", names.frames as usize, frames.1.total()),
            ("stacks", interned.stacks, interned.refused_stacks),
            ("named_processes", names.processes as usize, names.processes_evicted),
            ("read_jvms", names.java_held, 0),
        ] {
            m.registry_entries.with_label_values(&[table]).set(i64::try_from(held).unwrap_or(i64::MAX));
            raise_to(&m.registry_refused.with_label_values(&[table]), refused);
        }
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
        let attribution = threads.counters();
        for (table, held, refused) in [
            ("threads", attribution.threads, attribution.threads_evicted),
            ("thread_labels", attribution.label_sets, attribution.folded),
            ("jvms", probes.len() as u64, probes.refused()),
            ("pyspark", rooms.pythons.len() as u64, rooms.pythons.refused()),
        ] {
            m.registry_entries.with_label_values(&[table]).set(i64::try_from(held).unwrap_or(i64::MAX));
            raise_to(&m.registry_refused.with_label_values(&[table]), refused);
        }
        let [evicted, unread] = registry.refusals();
        let [thread, label] = threads.refusals();
        let quotas = [
            evicted,
            unread,
            thread,
            label,
            stacks.refusals(),
            windows.refusals(),
            probes.refusals(),
            named,
            frames,
        ];
        let quotas: Vec<_> = quotas.into_iter().chain(rooms.shares.refusals()).collect();
        quotas::count(m, &quotas);
        let unwind = tables.counts();
        native::count(m, &unwind, &names.native);
        let late = errand::counts();
        reads::count(m, &late);
        let results = attribution.results();
        for (result, count) in results {
            raise_to(&m.thread_names.with_label_values(&[result]), count);
        }
        raise_to(&m.identity_conflicts, processes.conflicts);
        push::count(&m.push, &pushed);
        m.name_probes.set(i64::try_from(capture.name_probes()).unwrap_or(i64::MAX));
        m.alloc_probes.set(i64::try_from(capture.alloc_probes()).unwrap_or(i64::MAX));
        let now = Instant::now();
        if !self.shared.is_due(now) {
            return;
        }
        let counted = windows.counters();
        let mut status = json!({
            "host": self.host,
            "sampling": {
                "hz": self.hz,
                "events": events(capture),
                "cpus": capture.cpus(),
                "samples": kernel.samples,
                "ring_bytes": kernel.ring_bytes,
                "map_bytes": kernel.map_bytes,
                "stacks": kernel.stacks,
                "frames_walked": kernel.user_frames,
            },
            "quality": {
                "lost": DropReason::ALL.iter().map(|r| (r.slug().to_owned(), lost.get(*r).into())).collect::<Map<_, _>>(),
                "late_samples": counted.late,
                "folded_stacks": counted.folded_stacks,
                "folded_labels": counted.folded_labels,
                "clock_steps": counted.clock_steps,
                "jit_frames_named": names.jit_named,
                "jit_frames_unnamed": names.jit_unnamed,
                "kernel_symbols": symbolizer.kernel_problem().unwrap_or("ok"),
            },
            "attribution": {
                "name_probes": capture.name_probes(),
                "alloc_probes": capture.alloc_probes(),
                "names": results.into_iter().map(|(r, n)| (r.to_owned(), n.into())).collect::<Map<_, _>>(),
                "unknown_formats": threads.unknown_formats().collect::<Vec<_>>(),
            },
            "debuginfod": native::debuginfod(&names.native.debuginfod),
            "names_mangled": native::mangled(&names.native),
        });
        // Moved in: the macro would copy them.
        status["unwind_tables"] = native::tables(&unwind);
        status["quotas"] = quotas::status(&quotas, registry).into();
        status["reads"] = reads::status(&late);
        for protocol in Protocol::ALL {
            status[protocol.slug()] = push::status(&pushed, *protocol);
        }
        status["conflicts"] = conflicts(registry);
        status["jvms"] = jvms(registry, symbolizer, probes, &unwind).into();
        status["pythons"] = pythons::status(registry, symbolizer, probes);
        self.shared.put(status, now);
    }
}

fn state(state: FindingState) -> &'static str {
    match state {
        FindingState::Good => "good",
        FindingState::Degraded => "degraded",
        FindingState::Fatal => "fatal",
    }
}

/// Processes that are not believed to be of the application that they name.
fn conflicts(registry: &Registry) -> Value {
    let one = |c: &Conflict| {
        json!({
            "pid": c.pid, "uid": c.uid, "user": c.user, "claims": c.app, "as": c.role.slug(), "holder": c.holder,
            "says": "What this process says of itself is not believed, and it is labelled as a program of its user. \
                     If its user runs Workers or NodeManagers for others, name him in cluster-users.",
        })
    };
    json!({
        "refused": registry.counters().conflicts,
        "now": registry.conflicts().into_iter().map(one).collect::<Vec<_>>(),
    })
}

fn jvms(
    registry: &Registry,
    symbolizer: &Symbolizer,
    probes: &Processes,
    unwind: &TableCounts,
) -> Vec<Value> {
    let live = registry.iter().filter(|process| process.is_jvm() && !process.exited);
    let one = |process: &Process| {
        let share = unwind.shares.get(&process.record.key.pid).copied().unwrap_or_default();
        jvm(process, symbolizer, probes, share)
    };
    live.take(MAX_LISTED).map(one).collect()
}

fn jvm(
    process: &Process,
    symbolizer: &Symbolizer,
    probes: &Processes,
    (unwind_files, unwind_bytes): (usize, usize),
) -> Value {
    let record = &process.record;
    let words = probes.words(process.runtime);
    let facts = symbolizer.jvm_facts(record.key);
    let names = facts.as_ref().map(|facts| &facts.names);
    let labels: Map<String, Value> =
        record.labels.iter().map(|(key, value)| (key.name().to_owned(), (**value).into())).collect();
    let naming = probes.naming(record.key).unwrap_or(&Naming::Opening);
    let walking = probes.walking(record.key).unwrap_or(&Walking::Opening);
    let allocations = probes.allocations(record.key).unwrap_or(&Allocations::Opening);
    let mut status = json!({
        "pid": record.key.pid,
        "program": record.program,
        "labels": labels,
        "version": facts.as_ref().map(|f| f.version.as_str()).unwrap_or_default(),
        "names": names.map_or("none yet", NameSource::slug),
        "names_say": names.map_or("no sample of its code yet", NameSource::says),
        "stacks": walking.slug(),
        "stacks_say": words.map(|words| walking.says(words)),
        "threads": naming.slug(),
        "threads_say": naming.says(),
        "allocations": allocations.slug(),
        "allocations_say": allocations.says(),
        "unwind_files": unwind_files,
        "unwind_bytes": unwind_bytes,
    });
    // Not read yet: null.
    let told = symbolizer.runtime_facts(record.key);
    for name in words.map_or(&[][..], |words| words.facts) {
        status[*name] = told.and_then(|facts| facts.get(name)).into();
    }
    status
}
/// The sources of samples, for the status, and after them the kinds that cannot be sampled here.
fn events(capture: &Capture) -> Vec<Value> {
    let source = |of: SourceState| {
        let facts = of.kind.facts();
        json!({ "type": facts.slug, "title": facts.title, "unit": facts.unit, "every": of.every, "cpus": of.cpus })
    };
    let lacking = |(kind, what): &(SampleKind, &'static str)| {
        let facts = kind.facts();
        json!({ "type": facts.slug, "title": facts.title, "unit": facts.unit, "every": null, "cpus": 0, "lacks": what })
    };
    capture.sources().into_iter().map(source).chain(capture.lacking().iter().map(lacking)).collect()
}
