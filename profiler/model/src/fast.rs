//! Maps for what is looked up with every sample and frame.
//!
//! The standard library's hash withstands keys that were chosen to collide, at 20 ns a word. These maps' keys are
//! addresses and numbers from profiled processes: each map's hash has a random seed of its own (`foldhash`), which
//! keeps collisions from being worked out ahead; the maps are bounded by their owners.

use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

/// A [`std::collections::HashMap`] with a faster hash; made by `default`.
pub type FastMap<K, V> = std::collections::HashMap<K, V, RandomState>;
/// A [`std::collections::HashSet`] with a faster hash; made by `default`.
pub type FastSet<K> = std::collections::HashSet<K, RandomState>;

/// Entries for which a map may have room at any time.
const ROOM: usize = 1024;

/// A map or a set, as far as its room goes.
pub trait Room {
    /// Entries that it has, and entries for which it has room.
    fn room(&self) -> (usize, usize);
    /// Keeps room for at least so many entries.
    fn shrink_to(&mut self, entries: usize);
}

impl<K: Eq + Hash, V, S: BuildHasher> Room for HashMap<K, V, S> {
    fn room(&self) -> (usize, usize) {
        (self.len(), self.capacity())
    }
    fn shrink_to(&mut self, entries: usize) {
        self.shrink_to(entries);
    }
}

impl<K: Eq + Hash, S: BuildHasher> Room for HashSet<K, S> {
    fn room(&self) -> (usize, usize) {
        (self.len(), self.capacity())
    }
    fn shrink_to(&mut self, entries: usize) {
        self.shrink_to(entries);
    }
}

/// Gives back the room of what was much larger once: a flood of neighbours would cost memory long after it ended. Does
/// nothing while a fourth of the room is in use, so that a map that breathes is not copied again and again.
pub fn shrink(map: &mut impl Room) {
    let (len, capacity) = map.room();
    if capacity > ROOM.max(len.saturating_mul(4)) {
        map.shrink_to(len * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_leaves_no_room_behind() {
        let mut map: FastMap<u32, [u64; 8]> = (0..20_000).map(|key| (key, [0; 8])).collect();
        let full = map.capacity();
        shrink(&mut map);
        assert_eq!(map.capacity(), full, "all of it is in use");
        map.retain(|key, _| *key < 300);
        shrink(&mut map);
        assert!(map.capacity() < 1024 && map.len() == 300);
        let small = map.capacity();
        map.clear();
        shrink(&mut map);
        assert_eq!(map.capacity(), small, "little room stays");
    }
}
