//! The table of a block that lists pauses of JVMs.

use super::super::super::facts::{PauseLine, WindowFacts};
use super::super::super::part::Part;
use super::super::order::{NOWHERE, Order};
use super::super::table::{Column, How};
use super::super::*;
use super::Files;

/// Writes the table, where there were pauses.
pub(super) fn pauses(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<(), BlockError> {
    let set = |set: u32| order.set_of.get(set as usize).copied().filter(|set| *set != NOWHERE);
    let moved = |line: &PauseLine| Some(PauseLine { set: set(line.set)?, ..line.clone() });
    let lines: Vec<PauseLine> = part.pauses.iter().filter_map(moved).collect();
    pause_lines(lines, &part.facts.windows, files)
}

/// Pauses, by label set and begin; no table without any.
pub(in super::super) fn pause_lines(
    mut lines: Vec<PauseLine>,
    windows: &[WindowFacts],
    files: &mut Files<'_>,
) -> Result<(), BlockError> {
    if lines.is_empty() {
        return Ok(());
    }
    lines.sort_by_key(|line| (line.set, line.began));
    let from = |window: u32| windows.get(window as usize).map_or(0, |window| window.range.from.0);
    files.table(
        PAUSES,
        &[
            Column::int("label_set", How::Delta, lines.iter().map(|line| line.set)),
            Column::int("window", How::Delta, lines.iter().map(|line| line.window)),
            Column::long(
                "began_after_ns",
                How::Delta,
                lines.iter().map(|line| line.began.0.wrapping_sub(from(line.window))),
            ),
            Column::long("length_ns", How::Delta, lines.iter().map(|line| line.length_ns)),
            Column::text("cause", How::Dictionary, lines.iter().map(|line| &*line.cause)),
        ],
    )
}
