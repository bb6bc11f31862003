//! Pauses of JVMs in a part and in its journal: behind the ledger of a window's record.

use super::super::facts::PauseLine;
use super::Part;
use super::codec::{Malformed, Reader, put, put_signed};
use super::names::ByAddress;
use emberscope_model::{Pause, WallTime};

impl Part {
    pub(super) fn pause(&mut self, pause: &Pause, known: &mut ByAddress) -> PauseLine {
        let window = self.facts.windows.len() as u32;
        let cause = self.text(&pause.cause);
        let cause = self.facts.labels.shared(cause).cloned().unwrap_or_default();
        let set = self.set(&pause.labels, known);
        PauseLine { window, set, began: pause.began, length_ns: pause.length_ns, cause }
    }

    /// Pauses of a window that begins at `from`.
    pub(super) fn put_pauses(&self, out: &mut Vec<u8>, lines: &[PauseLine], from: WallTime) {
        put(out, lines.len() as u64);
        for line in lines {
            put(out, line.set.into());
            put_signed(out, line.began.0.wrapping_sub(from.0).cast_signed());
            put(out, line.length_ns);
            put(out, self.known(&line.cause).into());
        }
    }

    /// Reads what [`Self::put_pauses`] wrote.
    ///
    /// # Errors
    /// The list ends early, or a pause has a label set or a cause that is not there.
    pub(super) fn read_pauses(
        &self,
        reader: &mut Reader<'_>,
        from: WallTime,
    ) -> Result<Vec<PauseLine>, Malformed> {
        let mut lines = Vec::new();
        let window = self.facts.windows.len() as u32;
        for _ in 0..reader.count()? {
            let set = reader.place(self.facts.labels.sets.len())?;
            let began = WallTime(from.0.wrapping_add_signed(reader.signed()?));
            let length_ns = reader.number()?;
            let cause = reader.place(self.facts.labels.texts.len() + 1)?;
            let cause = self.facts.labels.shared(cause).cloned().unwrap_or_default();
            lines.push(PauseLine { window, set, began, length_ns, cause });
        }
        Ok(lines)
    }
}
