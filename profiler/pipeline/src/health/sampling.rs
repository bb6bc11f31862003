//! What is shown of sampling: its sources, what it took, what was lost on the way to a window.

use super::counted::Counted;
use crate::worker::Worker;
use emberscope_capture::{Capture, KernelStats, SourceState};
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
