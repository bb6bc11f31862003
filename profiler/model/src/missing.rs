//! What an answer lacks: windows that were there and can no longer be read.
//!
//! In: blocks, journals and objects of an archive that were set aside as bad. Out: [`Missing`], in an answer's quality.
//! Limits: [`MAX_PARTS`] of them are named, each in [`MAX_TEXT`] bytes; all are counted.

use super::TimeRange;

/// Parts that an answer names.
const MAX_PARTS: usize = 10;
/// Bytes of a name, and of what is wrong.
const MAX_TEXT: usize = 200;

/// Something that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPart {
    /// Name of the block or journal, or its place in an archive.
    pub name: String,
    /// When the windows are that it held, as far as that is known: an hour where only the name tells.
    pub range: TimeRange,
    /// What is wrong with it, in words.
    pub says: String,
}

impl MissingPart {
    /// A part whose texts are cut at 200 bytes.
    pub fn new(name: &str, range: TimeRange, says: &str) -> Self {
        let short = |text: &str| text[..text.floor_char_boundary(MAX_TEXT)].to_owned();
        Self { name: short(name), range, says: short(says) }
    }
}

/// What was set aside of an answer's range, whosever samples it held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// How many parts were set aside.
    pub count: u64,
    /// The first ten of the parts.
    pub parts: Vec<MissingPart>,
}

impl Missing {
    /// Adds a part.
    pub fn add(&mut self, part: MissingPart) {
        self.count = self.count.saturating_add(1);
        if self.parts.len() < MAX_PARTS {
            self.parts.push(part);
        }
    }

    /// Adds parts whose names are not known any more.
    pub fn add_unnamed(&mut self, count: u64) {
        self.count = self.count.saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WallTime;

    #[test]
    fn all_are_counted_and_some_are_named_in_short_texts() {
        let range = TimeRange { from: WallTime(0), until: WallTime(1) };
        let mut missing = Missing::default();
        for number in 0..25 {
            missing.add(MissingPart::new(&format!("block {number}"), range, &"ä".repeat(150)));
        }
        missing.add_unnamed(5);
        assert_eq!((missing.count, missing.parts.len()), (30, 10));
        assert_eq!(missing.parts[9].name, "block 9");
        assert_eq!(missing.parts[0].says, "ä".repeat(100));
    }
}
