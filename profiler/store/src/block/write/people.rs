//! The tables of a block that are about windows, what was lost in them, processes, and the ledger.

use super::super::super::facts::{LedgerLine, WindowFacts};
use super::super::super::part::{Part, numbers};
use super::super::order::{NOWHERE, Order};
use super::super::table::{Column, How};
use super::super::*;
use super::Files;
use emberscope_model::{DropReason, LedgerSums};

pub(in super::super) fn windows(windows: &[WindowFacts], files: &mut Files<'_>) -> Result<(), BlockError> {
    files.table(
        WINDOWS,
        &[
            Column::int("window", How::Delta, 0..windows.len() as u32),
            Column::long("from_ns", How::Delta, windows.iter().map(|window| window.range.from.0)),
            Column::long("until_ns", How::Delta, windows.iter().map(|window| window.range.until.0)),
            Column::bool("partial", windows.iter().map(|window| window.partial)),
        ],
    )?;
    let lost: Vec<(u32, DropReason, u64)> = (windows.iter().enumerate())
        .flat_map(|(place, window)| {
            DropReason::ALL.iter().map(move |reason| (place as u32, *reason, window.lost.get(*reason)))
        })
        .filter(|(.., count)| *count > 0)
        .collect();
    files.table(
        LOST,
        &[
            Column::int("window", How::Delta, lost.iter().map(|(window, ..)| *window)),
            Column::text("reason", How::Dictionary, lost.iter().map(|(_, reason, _)| reason.slug())),
            Column::long("count", How::Delta, lost.iter().map(|(.., count)| *count)),
        ],
    )
}

pub(super) fn processes(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<(), BlockError> {
    let facts = &part.facts;
    let set = |set: u32| order.set_of.get(set as usize).copied().filter(|set| *set != NOWHERE);
    let kept: Vec<usize> = (0..facts.records.len())
        .filter(|p| facts.records.get(*p).is_some_and(|r| set(r.set).is_some()))
        .collect();
    let records = || kept.iter().filter_map(|place| facts.records.get(*place));
    let jvm = || records().map(|record| record.process.jvm.as_ref());
    files.table(
        PROCESSES,
        &[
            Column::int("record", How::Delta, 0..kept.len() as u32),
            Column::int("label_set", How::Plain, records().filter_map(|record| set(record.set))),
            Column::long("pid", How::Plain, records().map(|record| record.process.key.pid.into())),
            Column::long("start_ticks", How::Plain, records().map(|record| record.process.key.start_ticks)),
            Column::text("host", How::Dictionary, records().map(|record| &*record.process.host)),
            Column::long("cores", How::Dictionary, records().map(|record| record.process.cores.into())),
            Column::text("program", How::Dictionary, records().map(|record| &*record.process.program)),
            Column::maybe("jvm_version", How::Dictionary, jvm().map(|jvm| jvm.map(|jvm| &*jvm.version))),
            Column::maybe("jvm_names", How::Dictionary, jvm().map(|jvm| jvm.map(|jvm| jvm.names.slug()))),
            Column::maybe("jvm_names_say", How::Dictionary, jvm().map(|jvm| jvm.map(|jvm| jvm.names.says()))),
        ],
    )?;
    let mut new = vec![NOWHERE; facts.records.len()];
    for (place, old) in kept.iter().enumerate() {
        if let Some(slot) = new.get_mut(*old) {
            *slot = place as u32;
        }
    }
    let mut seen: Vec<(u32, u32)> = (facts.windows.iter().enumerate())
        .flat_map(|(window, facts)| facts.records.iter().map(move |record| (*record, window as u32)))
        .filter_map(|(record, window)| Some((*new.get(record as usize)?, window)))
        .filter(|(record, _)| *record != NOWHERE)
        .collect();
    seen.sort_unstable();
    process_windows(&seen, files)
}

/// Which processes were seen when: record and window, in that order.
pub(in super::super) fn process_windows(
    seen: &[(u32, u32)],
    files: &mut Files<'_>,
) -> Result<(), BlockError> {
    files.table(
        PROCESS_WINDOWS,
        &[
            Column::int("record", How::Delta, seen.iter().map(|(record, _)| *record)),
            Column::int("window", How::Delta, seen.iter().map(|(_, window)| *window)),
        ],
    )
}

pub(super) fn ledger(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<(), BlockError> {
    let set = |set: u32| order.set_of.get(set as usize).copied().filter(|set| *set != NOWHERE);
    let moved = |line: &LedgerLine| Some(LedgerLine { set: set(line.set)?, ..*line });
    let mut lines: Vec<LedgerLine> = part.ledger.iter().filter_map(moved).collect();
    lines.sort_by_key(|line| (line.set, line.window));
    ledger_lines(&lines, &part.facts.windows, files)
}

/// The ledger, by label set and window.
pub(in super::super) fn ledger_lines(
    lines: &[LedgerLine],
    windows: &[WindowFacts],
    files: &mut Files<'_>,
) -> Result<(), BlockError> {
    let mut columns = vec![
        Column::int("label_set", How::Delta, lines.iter().map(|line| line.set)),
        Column::int("window", How::Delta, lines.iter().map(|line| line.window)),
    ];
    for (place, name) in LEDGER_COLUMNS.iter().enumerate() {
        let number = |sums: LedgerSums| {
            let mut sums = sums;
            numbers(&mut sums).into_iter().nth(place).map_or(0, |number| *number)
        };
        columns.push(Column::long(name, How::Delta, lines.iter().map(|line| number(line.sums))));
    }
    let from = |window: u32| windows.get(window as usize).map_or(0, |window| window.range.from.0);
    columns.push(Column::long(
        "seen_after_ns",
        How::Delta,
        lines.iter().map(|line| line.seen.from.0.wrapping_sub(from(line.window))),
    ));
    columns.push(Column::long(
        "seen_for_ns",
        How::Delta,
        lines.iter().map(|line| line.seen.until.0.wrapping_sub(line.seen.from.0)),
    ));
    files.table(LEDGER, &columns)
}

/// Columns of the ledger's numbers, in the order of [`numbers`].
pub(in super::super) const LEDGER_COLUMNS: [&str; 15] = [
    "cpu_ns",
    "run_delay_ns",
    "user_ns",
    "system_ns",
    "voluntary_switches",
    "involuntary_switches",
    "minor_faults",
    "major_faults",
    "read_bytes",
    "written_bytes",
    "wall_ns",
    "begun",
    "python_wait_ns",
    "throttled_ns",
    "paused_ns",
];
