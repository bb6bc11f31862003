//! Reads a block's pauses of JVMs: a table that blocks of earlier versions, and of times without pauses, do not have.

use super::super::super::facts::PauseLine;
use super::super::table::Room;
use super::super::*;
use super::guarded;
use super::tables::Texts;
use super::view::OpenBlock;
use emberscope_model::WallTime;
use std::sync::Arc;

/// Memory for the rows of the table: half a million pauses.
const PAUSE_ROOM: u64 = 64 << 20;

impl OpenBlock<'_> {
    pub(in super::super) fn read_pauses(&self) -> Result<Vec<PauseLine>, BlockProblem> {
        if self.block.has(PAUSES) { guarded(|| self.pause_lines()) } else { Ok(Vec::new()) }
    }

    fn pause_lines(&self) -> Result<Vec<PauseLine>, BlockProblem> {
        let facts = &self.index.facts;
        let table = self.block.table(PAUSES, &Room::new(PAUSE_ROOM))?;
        let sets = table.all_places("label_set", facts.labels.sets.len())?;
        let windows = table.all_places("window", facts.windows.len())?;
        let (after, lengths) = (table.all_longs("began_after_ns")?, table.all_longs("length_ns")?);
        let (mut shared, mut causes) = (Texts::default(), Vec::<Arc<str>>::new());
        table.all_texts("cause", |text| causes.push(shared.shared(text.unwrap_or_default())))?;
        let (mut after, mut lengths, mut causes) =
            (after.into_iter(), lengths.into_iter(), causes.into_iter());
        let mut lines = Vec::with_capacity(sets.len());
        // Columns of one table have as many rows each.
        for (set, window) in sets.into_iter().zip(windows) {
            let from = facts.windows.get(window as usize).map_or(0, |window| window.range.from.0);
            let began = WallTime(from.wrapping_add(after.next().unwrap_or_default()));
            let (length_ns, cause) = (lengths.next().unwrap_or_default(), causes.next().unwrap_or_default());
            lines.push(PauseLine { window, set, began, length_ns, cause });
        }
        Ok(lines)
    }
}
