//! What is counted and shown of native code: its unwind tables, and debug files that servers were asked for.

use crate::tables::TableCounts;
use emberscope_serve::{Metrics, raise_to};
use emberscope_symbolize::{By, DebuginfodCounters, Mangled, NativeCounters};
use emberscope_unwind::table::Held;
use serde_json::{Value, json};

/// Brings the numbers of native code to the metrics.
pub fn count(m: &Metrics, unwind: &TableCounts, names: &NativeCounters) {
    m.unwinding.bytes.set(i64::try_from(unwind.slab_bytes).unwrap_or(i64::MAX));
    for (what, held) in [
        ("files", unwind.tables.files),
        ("rows", unwind.tables.rows),
        ("rules", unwind.tables.rules),
        ("processes", unwind.tables.processes),
    ] {
        m.unwinding.entries.with_label_values(&[what]).set(i64::try_from(held).unwrap_or(i64::MAX));
    }
    for (result, count) in [
        ("built", unwind.tables.built),
        ("loaded", unwind.tables.loaded),
        ("evicted", unwind.tables.evicted),
        ("refused", unwind.tables.refused),
        ("late", unwind.turned_away),
    ] {
        raise_to(&m.unwinding.tables.with_label_values(&[result]), count);
    }
    raise_to(&m.unwinding.build, unwind.tables.build_ns);
    for (reason, count) in names_mangled(names) {
        raise_to(&m.naming.names_mangled.with_label_values(&[reason]), count);
    }
    for (by, count) in functions_named(names) {
        raise_to(&m.naming.functions_named.with_label_values(&[by]), count);
    }
    for (result, count) in results(&names.debuginfod) {
        raise_to(&m.naming.debug_files.with_label_values(&[result]), count);
    }
}

fn results(files: &DebuginfodCounters) -> [(&'static str, u64); 4] {
    [
        ("fetched", files.fetched),
        ("absent", files.absent),
        ("failed", files.failed),
        ("dropped", files.dropped),
    ]
}

fn names_mangled(names: &NativeCounters) -> impl Iterator<Item = (&'static str, u64)> {
    Mangled::ALL.into_iter().map(Mangled::as_str).zip(names.mangled)
}

fn functions_named(names: &NativeCounters) -> impl Iterator<Item = (&'static str, u64)> {
    By::ALL.into_iter().map(By::as_str).zip(names.named)
}

/// `functions_named` of the status.
pub fn named(names: &NativeCounters) -> Value {
    functions_named(names).collect()
}

/// `names_mangled` of the status.
pub fn mangled(names: &NativeCounters) -> Value {
    names_mangled(names).collect()
}

/// `unwind_tables` of the status.
pub fn tables(unwind: &TableCounts) -> Value {
    let mut told = json!({
        "bytes": unwind.slab_bytes,
        "table_bytes": unwind.tables.bytes,
        "files": unwind.tables.files,
        "rows": unwind.tables.rows,
        "processes": unwind.tables.processes,
        "waiting": unwind.waiting,
        "built": unwind.tables.built,
        "loaded": unwind.tables.loaded,
        "build_ms": unwind.tables.build_ns / 1_000_000,
        "evicted": unwind.tables.evicted,
        "refused": unwind.tables.refused,
    });
    told["largest"] = unwind.largest.iter().map(held).collect();
    told
}

/// `debuginfod` of the status.
pub fn debuginfod(files: &DebuginfodCounters) -> Value {
    results(files).into_iter().collect()
}

fn held(table: &Held) -> Value {
    json!({
        "file": table.file.to_string_lossy(),
        "bytes": table.bytes,
        "rows": table.rows,
        "mappings": table.mappings,
        "ms": table.ns / 1_000_000,
    })
}
