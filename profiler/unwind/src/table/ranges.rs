//! A process's list of code ranges: mappings and what is known of their files in, [`CodeRange`]s out.
//!
//! Ordered, at most [`MAX_RANGES`]; code without a file that lies side by side is one range.

use profiler_ebpf::{CodeRange, MAX_RANGES, NoTable, PAGE_SHIFT, STAMP_WORDS};

/// What a mapping has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// No table, and why there is none.
    Without(NoTable),
    /// The table of a file.
    With {
        /// Key of the file.
        file: u64,
        /// Address of the table in the walker's space.
        table: u32,
        /// The page of the table that the mapping begins with.
        first: u32,
        /// How many pages the table has from there on.
        pages: u32,
    },
}

/// A process's list in the making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// The ranges, and of which file each is (0: of none).
    pub all: Vec<(CodeRange, u64)>,
    /// Ranges that there was no room for.
    pub cut: usize,
}

impl Ranges {
    /// Adds the mapping from `start` to `end`; they come in order.
    pub fn add(&mut self, start: u64, end: u64, code: Code) {
        let page = start >> PAGE_SHIFT;
        let pages = (end >> PAGE_SHIFT).saturating_sub(page).min(CodeRange::MAX_PAGES) as u32;
        let (range, file) = match code {
            Code::Without(why) => (CodeRange { page, pages, table: why as u32, first: 0 }, 0),
            Code::With { file, table, first, pages: there } => {
                (CodeRange { page, pages: pages.min(there), table, first }, file)
            }
        };
        if file == 0
            && let Some((last, 0)) = self.all.last_mut()
            && last.table == range.table
            && last.page + u64::from(last.pages) == page
            && u64::from(last.pages) + u64::from(pages) <= CodeRange::MAX_PAGES
        {
            last.pages += pages;
            return;
        }
        if self.all.len() >= MAX_RANGES as usize {
            self.cut += 1;
            return;
        }
        self.all.push((range, file));
    }

    /// The words of the list, after its stamp.
    pub fn words(&self, stamp: u32) -> Vec<u32> {
        let mut words = vec![0; STAMP_WORDS as usize];
        words.extend(self.all.iter().flat_map(|(range, _)| range.words()));
        if let Some(first) = words.first_mut() {
            *first = stamp;
        }
        words
    }

    /// Whether code that had a rule here may have another one now: then what the walker remembers must not be
    /// believed.
    pub fn contradicts(&self, before: &Self) -> bool {
        let same = |a: &CodeRange, b: &CodeRange| (a.page, a.pages, a.first) == (b.page, b.pages, b.first);
        let stays = |(range, file): &(CodeRange, u64)| {
            self.all.iter().any(|(other, of)| of == file && same(other, range))
        };
        !before.all.iter().filter(|(_, file)| *file != 0).all(stays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Code = Code::Without(NoTable::None);

    fn with(file: u64, table: u32) -> Code {
        Code::With { file, table, first: 3, pages: 2 }
    }

    #[test]
    fn ranges_join_are_clipped_and_bounded() {
        let mut ranges = Ranges::default();
        ranges.add(0x1000, 0x3000, NONE);
        ranges.add(0x3000, 0x4000, NONE);
        ranges.add(0x4000, 0x9000, with(7, 160));
        ranges.add(0x9000, 0xa000, NONE);
        let all: Vec<_> = ranges.all.iter().map(|(r, file)| (r.page, r.pages, r.table, *file)).collect();
        assert_eq!(all, [(1, 3, NoTable::None as u32, 0), (4, 2, 160, 7), (9, 1, NoTable::None as u32, 0)]);
        assert_eq!(ranges.words(9).get(..4), Some(&[9u32, 0, 0, 0][..]));
        assert_eq!(ranges.words(9).get(8..12), Some(&[4u32 << 28 | 2, 0, 160, 3][..]));
        for i in 0..2 * u64::from(MAX_RANGES) {
            ranges.add(0x10_0000 + i * 0x2000, 0x10_1000 + i * 0x2000, NONE);
        }
        assert_eq!((ranges.all.len(), ranges.cut), (MAX_RANGES as usize, MAX_RANGES as usize + 3));
    }

    #[test]
    fn only_code_that_went_or_changed_contradicts() {
        let mut before = Ranges::default();
        before.add(0x1000, 0x2000, NONE);
        before.add(0x4000, 0x5000, with(7, 160));
        let mut more = before.clone();
        more.add(0x8000, 0x9000, with(8, 320));
        assert!(!more.contradicts(&before));
        assert!(before.contradicts(&more));
        let mut moved = Ranges::default();
        moved.add(0x4000, 0x5000, with(7, 4096));
        assert!(!moved.contradicts(&before), "the same rules elsewhere");
        let mut other = Ranges::default();
        other.add(0x4000, 0x5000, with(9, 160));
        assert!(other.contradicts(&before));
    }
}
