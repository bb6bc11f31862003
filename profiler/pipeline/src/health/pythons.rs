//! What is shown of interpreters: which release each runs, and whether its Python frames are walked, or why not.

use super::super::runtimes::{Processes, Walking};
use emberscope_model::RuntimeId;
use emberscope_process::{Process, Registry};
use emberscope_runtime::Fact;
use emberscope_symbolize::Symbolizer;
use serde_json::{Value, json};

/// Interpreters that the status lists: a busy executor has one a core.
const MAX_LISTED: usize = 200;

/// `pythons` of the status.
pub fn status(registry: &Registry, symbolizer: &Symbolizer, probes: &Processes) -> Value {
    let live = registry.iter().filter(|process| process.runtime == RuntimeId::CPYTHON && !process.exited);
    let words = probes.words(RuntimeId::CPYTHON);
    let one = |process: &Process| {
        let record = &process.record;
        let walking = probes.walking(record.key).unwrap_or(&Walking::Opening);
        let release = symbolizer.runtime_facts(record.key).and_then(|facts| facts.get("python"));
        json!({
            "pid": record.key.pid,
            "program": record.program,
            // Not read yet: null.
            "python": release.map_or(Value::Null, Fact::into),
            "stacks": walking.slug(),
            "stacks_say": words.map(|words| walking.says(words)),
        })
    };
    live.take(MAX_LISTED).map(one).collect()
}
