//! Divides up the space of words that the walker reads: first fit, by granules.
//!
//! In: how many words. Out: an address, never below the first granule (which no table has, so that small addresses can
//! mean other things). What is given back waits for a moment before it is used again: a walk that began before may
//! still read it. Slabs are counted as long as any of their granules is in use.

use profiler_ebpf::{GRANULE_WORDS, MAX_SLABS, SLAB_GRANULES};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A walk takes microseconds; it may be interrupted.
pub const QUIET: Duration = Duration::from_millis(50);

/// The words of the walker's space, and which are free.
#[derive(Debug)]
pub struct Space {
    /// Free pieces: first granule, how many.
    free: BTreeMap<u32, u32>,
    /// Given back, not to be used yet.
    waiting: Vec<(Instant, u32, u32)>,
    /// Granules in use, the waiting ones too.
    used: u32,
    limit: u32,
    /// Granules in use of each slab.
    slabs: Vec<u32>,
}

impl Space {
    /// A space of at most so many bytes.
    pub fn new(bytes: usize) -> Self {
        let most = MAX_SLABS * SLAB_GRANULES - 1;
        let limit = u32::try_from(bytes / (GRANULE_WORDS as usize * 4)).unwrap_or(most).min(most);
        Self {
            free: BTreeMap::from([(1, most)]),
            waiting: Vec::new(),
            used: 0,
            limit,
            slabs: vec![0; MAX_SLABS as usize],
        }
    }

    /// Bytes in use, those that wait to be free too.
    pub fn bytes(&self) -> usize {
        self.used as usize * GRANULE_WORDS as usize * 4
    }

    /// Takes room for so many words. None: there is no such piece.
    pub fn take(&mut self, words: usize, now: Instant) -> Option<u32> {
        self.settle(now);
        let granules = u32::try_from(words.div_ceil(GRANULE_WORDS as usize)).ok()?.max(1);
        if self.used.checked_add(granules)? > self.limit {
            return None;
        }
        let (start, len) = self.free.iter().find(|(_, len)| **len >= granules).map(|(s, l)| (*s, *l))?;
        self.free.remove(&start);
        if len > granules {
            self.free.insert(start + granules, len - granules);
        }
        self.used += granules;
        self.count(start, granules, |users| users + 1);
        Some(start * GRANULE_WORDS)
    }

    /// Gives words back that were taken at this address.
    pub fn give(&mut self, address: u32, words: usize, now: Instant) {
        let granules = words.div_ceil(GRANULE_WORDS as usize).max(1) as u32;
        self.waiting.push((now, address / GRANULE_WORDS, granules));
    }

    /// Slabs of which nothing is in use.
    pub fn is_empty(&self, slab: u32) -> bool {
        self.slabs.get(slab as usize).is_none_or(|users| *users == 0)
    }

    /// What has waited long enough is free.
    pub fn settle(&mut self, now: Instant) {
        let ready = |(since, ..): &(Instant, u32, u32)| now.saturating_duration_since(*since) >= QUIET;
        let (ready, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(ready);
        self.waiting = waiting;
        let ready: Vec<(Instant, u32, u32)> = ready;
        for (_, mut start, mut len) in ready {
            self.used -= len;
            self.count(start, len, |users| users.saturating_sub(1));
            if let Some((before, size)) = self.free.range(..start).next_back().map(|(s, l)| (*s, *l))
                && before + size == start
            {
                self.free.remove(&before);
                (start, len) = (before, size + len);
            }
            if let Some(size) = self.free.remove(&(start + len)) {
                len += size;
            }
            self.free.insert(start, len);
        }
    }

    fn count(&mut self, start: u32, len: u32, change: impl Fn(u32) -> u32) {
        for slab in start / SLAB_GRANULES..=(start + len - 1) / SLAB_GRANULES {
            if let Some(users) = self.slabs.get_mut(slab as usize) {
                *users = change(*users);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_come_back_after_a_moment_and_join() {
        let now = Instant::now();
        let later = now + QUIET;
        let mut space = Space::new(64 * 100);
        let first = space.take(16, now).unwrap();
        let second = space.take(17, now).unwrap();
        assert_eq!((first, second, space.bytes()), (16, 32, 3 * 64));
        assert_eq!(space.take(16 * 98, now), None, "over the limit");
        space.give(first, 16, now);
        space.give(second, 17, now);
        assert_eq!(space.take(16, now), Some(64), "not reused at once");
        assert!(!space.is_empty(0));
        space.give(64, 16, now);
        assert_eq!(space.take(16 * 100, later), Some(16), "one piece again");
        space.give(16, 1600, later);
        space.settle(later + QUIET);
        assert!(space.is_empty(0) && space.bytes() == 0);
    }

    proptest! {
        #[test]
        fn no_two_pieces_overlap(sizes in proptest::collection::vec((1usize..5000, any::<bool>()), 1..60)) {
            let mut now = Instant::now();
            let mut space = Space::new(1 << 20);
            let mut held: Vec<(u32, usize)> = Vec::new();
            for (words, back) in sizes {
                now += QUIET;
                if back && let Some((address, words)) = held.pop() {
                    space.give(address, words, now);
                } else if let Some(address) = space.take(words, now) {
                    for (other, len) in &held {
                        let apart = address as usize >= *other as usize + len || address as usize + words <= *other as usize;
                        prop_assert!(apart);
                    }
                    prop_assert!(address >= GRANULE_WORDS && address % GRANULE_WORDS == 0);
                    held.push((address, words));
                }
            }
            for (address, words) in held { space.give(address, words, now); }
            space.settle(now + QUIET);
            prop_assert_eq!((space.bytes(), space.free.len()), (0, 1));
        }
    }
}
