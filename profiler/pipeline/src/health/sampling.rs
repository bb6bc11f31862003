//! What is shown of sampling: its sources, what it took, what was lost on the way to a window.

use super::counted::Counted;
use crate::worker::Worker;
use emberscope_capture::{Capture, KernelStats, Lacking, SourceState};
use emberscope_model::{DropReason, SampleKind};
use serde_json::{Map, Value, json};

/// `sampling` of the status.
pub fn status(capture: &Capture, hz: u32, kernel: &KernelStats) -> Value {
    json!({
        "hz": hz,
        "events": events(capture),
        "cpus": capture.cpus(),
        "samples": kernel.samples,
        "ring_bytes": kernel.ring_bytes,
        "map_bytes": kernel.map_bytes,
        "stacks": kernel.stacks,
        "frames_walked": kernel.user_frames,
    })
}

/// `quality` of the status.
pub fn quality(rooms: &Worker, counted: &Counted<'_>) -> Value {
    let (windows, names) = (rooms.windows.counters(), &counted.names);
    let lost = DropReason::ALL.iter().map(|r| (r.slug().to_owned(), counted.lost.get(*r).into()));
    json!({
        "lost": lost.collect::<Map<_, _>>(),
        "late_samples": windows.late,
        "folded_stacks": windows.folded_stacks,
        "folded_labels": windows.folded_labels,
        "clock_steps": windows.clock_steps,
        "jit_frames_named": names.jit_named,
        "jit_frames_unnamed": names.jit_unnamed,
        "kernel_symbols": rooms.symbolizer.kernel_problem().unwrap_or("ok"),
    })
}

/// The sources of samples, for the status, and after them the kinds that cannot be sampled here.
fn events(capture: &Capture) -> Vec<Value> {
    let one = |kind: SampleKind, event: Option<&str>, rest: Value| {
        let facts = kind.facts();
        let mut one =
            json!({ "type": facts.slug, "title": event.unwrap_or(facts.title), "unit": facts.unit });
        if let (Value::Object(one), Value::Object(rest)) = (&mut one, rest) {
            one.extend(event.map(|name| ("event".to_owned(), name.into())));
            one.extend(rest);
        }
        one
    };
    let source =
        |of: SourceState| one(of.kind, of.event.as_deref(), json!({ "every": of.every, "cpus": of.cpus }));
    let lacking = |of: &Lacking| {
        one(of.kind, of.event.as_deref(), json!({ "every": null, "cpus": 0, "lacks": of.what }))
    };
    capture.sources().into_iter().map(source).chain(capture.lacking().iter().map(lacking)).collect()
}
