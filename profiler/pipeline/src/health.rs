//! What the pipeline counts and shows of itself: metrics, and the daemon's part of the status.
//!
//! In: the rooms' counters, once a second, and each window that closes. Out: [`Metrics`], and a JSON value
//! that `/api/v1/status` serves without asking any room.

mod counted;
mod jvms;
mod native;
mod push;
mod pythons;
mod quotas;
mod reads;
mod sampling;

use super::worker::Worker;
use counted::Counted;
use emberscope_capture::{CpuChange, FindingState, HostFeatures};
use emberscope_model::{LabelKey, LedgerRow, Role, SampleKind, ThreadClass, Window};
use emberscope_process::{Conflict, Registry};
use emberscope_push::Protocol;
use emberscope_serve::Metrics;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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

/// Counts what the pipeline does, and makes the status of it.
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

    /// Counts a sample.
    pub fn sample(&mut self, kind: SampleKind) {
        self.metrics.sampling.samples.add(kind, 1);
    }

    /// Counts a sample of an application that the user does not want.
    pub fn not_kept(&mut self) {
        self.metrics.sampling.not_kept.inc();
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
        self.metrics.sampling.windows.inc();
        self.metrics.sampling.partial_windows.inc_by(u64::from(window.partial));
        // What is made of samples is counted with these.
        for row in window.rows.iter().filter(|row| row.kind.facts().made_of.is_none()) {
            self.metrics.sampling.stack_end.add(row.stack.end, row.count);
            for reason in row.stack.frames.iter().filter_map(|frame| frame.unknown) {
                self.metrics.sampling.unnamed_frames.add(reason, row.count);
            }
        }
        let of_jvm = |line: &&LedgerRow| line.labels.get(LabelKey::Role) != Role::Python.slug();
        for line in window.ledger.iter().filter(of_jvm) {
            if let Some(class) = ThreadClass::from_slug(line.labels.get(LabelKey::ThreadClass)) {
                self.metrics.sampling.jvm_cpu.add(class, &line.sums);
            }
        }
        if window.lost.samples() > 0 {
            tracing::warn!(lost = window.lost.samples(), from = %window.range.from, "samples were lost");
        }
    }

    /// Takes the rooms' counters.
    pub fn update(&self, rooms: &Worker) {
        let counted = Counted::of(rooms);
        counted.count(&self.metrics, rooms);
        let now = Instant::now();
        if self.shared.is_due(now) {
            self.shared.put(self.status(rooms, &counted), now);
        }
    }

    fn status(&self, rooms: &Worker, counted: &Counted<'_>) -> Value {
        let Worker { capture, registry, symbolizer, threads, runtimes, .. } = rooms;
        let results = counted.threads.results();
        let mut status = json!({
            "host": self.host,
            "attribution": {
                "name_probes": capture.name_probes(),
                "alloc_probes": capture.alloc_probes(),
                "names": results.into_iter().map(|(r, n)| (r.to_owned(), n.into())).collect::<Map<_, _>>(),
                "unknown_formats": threads.unknown_formats().collect::<Vec<_>>(),
            },
            "debuginfod": native::debuginfod(&counted.names.native.debuginfod),
            "functions_named": native::named(&counted.names.native),
            "names_mangled": native::mangled(&counted.names.native),
        });
        // Moved in: the macro would copy them.
        status["sampling"] = sampling::status(capture, self.hz, &counted.kernel);
        status["quality"] = sampling::quality(rooms, counted);
        status["unwind_tables"] = native::tables(&counted.unwind);
        status["quotas"] = quotas::status(&counted.quotas, registry).into();
        status["reads"] = reads::status(&counted.reads);
        for protocol in Protocol::ALL {
            status[protocol.slug()] = push::status(&counted.pushed, *protocol);
        }
        status["conflicts"] = conflicts(registry);
        status["jvms"] = jvms::status(registry, symbolizer, runtimes, &counted.unwind).into();
        status["pythons"] = pythons::status(registry, symbolizer, runtimes);
        status
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
