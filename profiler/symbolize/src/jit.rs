//! Names of one process's generated code: entries of perf maps in, frames by address out.
//!
//! Code moves in and out of an address as the JIT recompiles. What the newest map says wins, cut out of
//! what older ones said; where the newest says nothing an older name stays, for it was right when the
//! address was sampled. Bounded by [`MAX_RANGES`] and [`MAX_UNNAMED`], and by what all processes may take together
//! ([`JitNames::bytes`]).

use super::perf_map::Wanted;
use emberscope_model::Frame;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Named pieces of code kept for a process. A large executor compiles 30,000 methods and samples hit a
/// few thousand of them.
pub const MAX_RANGES: usize = 32_768;
/// Addresses without a name that are remembered for a process.
pub const MAX_UNNAMED: usize = 32_768;
/// Bytes of a named piece: 24, in nodes of a B-tree of which half may be free.
const RANGE_BYTES: usize = 48;
/// Bytes of a place for an unnamed address: 8 and a byte of the table, which is full at seven eighths.
const UNNAMED_BYTES: usize = 11;

/// Names of a process's generated code.
#[derive(Default)]
pub struct JitNames {
    /// First address -> end and name; disjoint.
    ranges: BTreeMap<u64, (u64, Arc<Frame>)>,
    unnamed: HashSet<u64>,
    /// Whether at least one map was read.
    pub have_map: bool,
    /// Addresses and ranges that were turned away because of the limits.
    pub dropped: u64,
}

impl JitNames {
    /// The frame at `address`.
    pub fn get(&self, address: u64) -> Option<&Arc<Frame>> {
        let (_, (end, frame)) = self.ranges.range(..=address).next_back()?;
        (address < *end).then_some(frame)
    }

    /// Notes a sampled address; the next map is searched for those without a name.
    pub fn saw(&mut self, address: u64) {
        if self.get(address).is_some() || self.unnamed.contains(&address) {
            return;
        }
        if self.unnamed.len() >= MAX_UNNAMED {
            self.dropped += 1;
            return;
        }
        self.unnamed.insert(address);
    }

    /// How many addresses were seen that nothing names.
    pub fn unnamed(&self) -> usize {
        self.unnamed.len()
    }

    /// Bytes that are held, estimated; the names are counted where they are kept.
    pub fn bytes(&self) -> usize {
        self.ranges.len() * RANGE_BYTES + self.unnamed.capacity() * UNNAMED_BYTES
    }

    /// Forgets all, which counts as turned away.
    pub fn give_up(&mut self) {
        let lost = self.ranges.len() + self.unnamed.len();
        *self = Self { dropped: self.dropped + lost as u64, ..Self::default() };
    }

    /// What a map's reader should look for.
    pub fn wanted(&self) -> Wanted {
        let mut addresses: Vec<u64> = self.unnamed.iter().copied().collect();
        addresses.sort_unstable();
        let known = self.ranges.iter().map(|(start, (end, _))| *start..*end).collect();
        Wanted { addresses, known }
    }

    /// Enters what a newer map says of `code`.
    pub fn insert(&mut self, code: Range<u64>, frame: Arc<Frame>) {
        if code.is_empty() {
            return;
        }
        // Whatever older code reaches into the new one is cut; what sticks out at the ends stays.
        let before = self.ranges.range(..code.start).next_back().map(|(s, (e, _))| (*s, *e));
        if let Some((start, end)) = before
            && end > code.start
            && let Some((_, old)) = self.ranges.remove(&start)
        {
            self.ranges.insert(start, (code.start, Arc::clone(&old)));
            if end > code.end {
                self.ranges.insert(code.end, (end, old));
            }
        }
        while let Some((start, end)) = self.ranges.range(code.clone()).next().map(|(s, (e, _))| (*s, *e)) {
            if let Some((_, old)) = self.ranges.remove(&start)
                && end > code.end
            {
                self.ranges.insert(code.end, (end, old));
            }
        }
        if self.ranges.len() >= MAX_RANGES {
            self.dropped += 1;
            return;
        }
        self.ranges.insert(code.start, (code.end, frame));
    }

    /// To be called once a map's entries are in. `looked_for` are the addresses that it was searched
    /// for: those that it does not name are given up, for their code is gone; if they are seen again,
    /// they count again.
    pub fn map_read(&mut self, looked_for: &[u64]) {
        self.have_map = true;
        for address in looked_for {
            self.unnamed.remove(address);
        }
        let unnamed = std::mem::take(&mut self.unnamed);
        self.unnamed = unnamed.into_iter().filter(|a| self.get(*a).is_none()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::FrameKind;
    use proptest::prelude::*;

    fn frame(name: &str) -> Arc<Frame> {
        Arc::new(Frame::new(FrameKind::JavaCompiled, name, ""))
    }
    fn name(names: &JitNames, address: u64) -> &str {
        names.get(address).map_or("-", |f| &*f.name)
    }

    #[test]
    fn the_newest_wins_and_older_ones_stay_beside_it() {
        let mut names = JitNames::default();
        names.insert(0x100..0x200, frame("old"));
        names.insert(0x140..0x180, frame("new"));
        assert_eq!(name(&names, 0x13f), "old");
        assert_eq!(name(&names, 0x140), "new");
        assert_eq!(name(&names, 0x17f), "new");
        assert_eq!(name(&names, 0x180), "old");
        assert_eq!(name(&names, 0x200), "-");
        names.insert(0x0..0x1000, frame("all"));
        assert_eq!(name(&names, 0x150), "all");
        assert_eq!(names.wanted().known, vec![0..0x1000]);
    }

    #[test]
    fn unnamed_addresses_are_counted_once_and_bounded() {
        let mut names = JitNames::default();
        names.saw(0x10);
        names.saw(0x10);
        names.saw(0x300);
        assert_eq!(names.unnamed(), 2);
        assert_eq!(names.wanted().addresses, vec![0x10, 0x300]);
        names.insert(0x300..0x301, frame("x"));
        names.map_read(&[]);
        assert_eq!(names.unnamed(), 1);
        names.saw(0x300);
        assert_eq!(names.unnamed(), 1, "it has a name");
        names.map_read(&[0x10]);
        assert_eq!(names.unnamed(), 0, "given up");
        names.saw(0x10);
        assert_eq!(names.unnamed(), 1, "and seen again");
        for a in 0..MAX_UNNAMED as u64 + 10 {
            names.saw(0x1000 + a);
        }
        assert_eq!((names.unnamed(), names.dropped), (MAX_UNNAMED, 11));
    }

    #[test]
    fn who_gives_up_holds_nothing_and_counts_it() {
        let mut names = JitNames::default();
        (0..1000u64).for_each(|address| names.saw(0x1000 + address));
        names.insert(0x300..0x301, frame("x"));
        assert!(names.bytes() > 1000 * 9 && names.bytes() < 32_768, "{}", names.bytes());
        names.give_up();
        assert_eq!((names.bytes(), names.unnamed(), names.dropped), (0, 0, 1001));
        assert!(names.get(0x300).is_none());
    }

    proptest! {
        /// Against a plain array of bytes.
        #[test]
        fn equals_painting(pieces in proptest::collection::vec((0u64..200, 1u64..60), 0..40)) {
            let mut names = JitNames::default();
            let mut painted = vec![None; 300];
            for (i, (start, len)) in pieces.iter().enumerate() {
                names.insert(*start..start + len, frame(&i.to_string()));
                for cell in &mut painted[*start as usize..(start + len) as usize] {
                    *cell = Some(i.to_string());
                }
            }
            for (address, expected) in painted.iter().enumerate() {
                prop_assert_eq!(names.get(address as u64).map(|f| f.name.to_string()), expected.clone());
            }
        }
    }
}
