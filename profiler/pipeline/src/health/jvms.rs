//! What is shown of JVMs: where their names come from, how their stacks are walked, what of their threads is known.

use crate::runtimes::{Allocations, Naming, Pauses, Processes, Walking};
use crate::tables::TableCounts;
use emberscope_model::NameSource;
use emberscope_process::{Process, Registry};
use emberscope_symbolize::Symbolizer;
use serde_json::{Map, Value, json};

/// JVMs that the status lists.
const MAX_LISTED: usize = 200;

/// `jvms` of the status.
pub fn status(
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
    let pauses = probes.pauses(record.key).unwrap_or(&Pauses::Opening);
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
        "pauses": pauses.slug(),
        "pauses_say": pauses.says(),
        "unwind_files": unwind_files,
        "unwind_bytes": unwind_bytes,
    });
    // Not read yet: null.
    let told = symbolizer.runtime_facts(record.key);
    for name in words.map_or(&[][..], |words| words.facts) {
        status[*name] = told.and_then(|facts| facts.get(name)).into();
    }
    for name in words.map_or(&[][..], |words| words.counts) {
        status[*name] = probes.count(record.key, name).into();
    }
    status
}
