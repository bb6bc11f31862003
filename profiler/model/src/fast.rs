//! Maps for what is looked up with every sample and frame.
//!
//! The standard library's hash withstands keys that were chosen to collide, at 20 ns a word. These maps' keys are
//! addresses and numbers from profiled processes: each map's hash has a random seed of its own (`foldhash`), which
//! keeps collisions from being worked out ahead; the maps are bounded by their owners.

use foldhash::fast::RandomState;
use std::hash::Hash;

/// A [`std::collections::HashMap`] with a faster hash; made by `default`.
pub type FastMap<K, V> = std::collections::HashMap<K, V, RandomState>;
/// A [`std::collections::HashSet`] with a faster hash; made by `default`.
pub type FastSet<K> = std::collections::HashSet<K, RandomState>;

/// Entries for which a map may have room at any time.
const ROOM: usize = 1024;

/// Gives back the room of a map that was much larger once: a flood of neighbours would cost memory long after it ended.
/// Does nothing while a fourth of the room is in use, so that a map that breathes is not copied again and again.
pub fn shrink<K: Eq + Hash, V>(map: &mut FastMap<K, V>) {
    if map.capacity() > ROOM.max(map.len().saturating_mul(4)) {
        map.shrink_to(map.len() * 2);
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
