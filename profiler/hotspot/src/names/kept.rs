//! A bounded cache: what was used lately stays, and the rest goes in one piece.
//!
//! Two generations: whatever is used moves to the young one, and when that has half of the bytes allowed,
//! it becomes the old one and the old one is dropped. Costs a look-up more than a map, and no list.

use emberscope_model::FastMap;
use std::hash::Hash;

/// Values by key, of so many bytes in all.
#[derive(Debug)]
pub struct Kept<K, V> {
    young: FastMap<K, (V, usize)>,
    old: FastMap<K, (V, usize)>,
    young_bytes: usize,
    old_bytes: usize,
    limit: usize,
    dropped: u64,
}

impl<K: Hash + Eq + Copy, V> Kept<K, V> {
    /// Nothing yet; at most about `limit` bytes as [`Self::insert`] is told them.
    pub fn new(limit: usize) -> Self {
        let (young, old) = (FastMap::default(), FastMap::default());
        Self { young, old, young_bytes: 0, old_bytes: 0, limit, dropped: 0 }
    }
    /// Sets another limit, bytes; what is over it goes.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        for _ in 0..2 {
            if self.young_bytes > limit / 2 || self.old_bytes > limit / 2 {
                self.turn();
            }
        }
    }
    /// The value, which stays for a while longer.
    pub fn get(&mut self, key: K) -> Option<&mut V> {
        if let Some((value, bytes)) = self.old.remove(&key) {
            self.old_bytes = self.old_bytes.saturating_sub(bytes);
            self.insert(key, value, bytes);
        }
        self.young.get_mut(&key).map(|(value, _)| value)
    }
    /// Keeps a value of about so many bytes, its key counted in; one larger than a generation is not kept.
    pub fn insert(&mut self, key: K, value: V, bytes: usize) {
        if let Some((_, before)) = self.old.remove(&key) {
            self.old_bytes = self.old_bytes.saturating_sub(before);
        }
        if let Some((_, before)) = self.young.remove(&key) {
            self.young_bytes = self.young_bytes.saturating_sub(before);
        }
        if bytes > self.limit / 2 {
            self.dropped += 1;
            return;
        }
        if self.young_bytes + bytes > self.limit / 2 {
            self.turn();
        }
        self.young.insert(key, (value, bytes));
        self.young_bytes += bytes;
    }
    /// Forgets the value of a key.
    pub fn remove(&mut self, key: K) {
        if let Some((_, bytes)) = self.young.remove(&key) {
            self.young_bytes = self.young_bytes.saturating_sub(bytes);
        }
        if let Some((_, bytes)) = self.old.remove(&key) {
            self.old_bytes = self.old_bytes.saturating_sub(bytes);
        }
    }
    /// What was used lately gets old, and what is old goes.
    fn turn(&mut self) {
        self.dropped += self.old.len() as u64;
        self.old = std::mem::take(&mut self.young);
        self.old_bytes = std::mem::take(&mut self.young_bytes);
    }
    /// All keys with their values; nothing is kept then.
    pub fn take(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        (self.young_bytes, self.old_bytes) = (0, 0);
        let all = std::mem::take(&mut self.old).into_iter().chain(std::mem::take(&mut self.young));
        all.map(|(key, (value, _))| (key, value))
    }
    /// Bytes of what is kept.
    pub fn bytes(&self) -> usize {
        self.young_bytes + self.old_bytes
    }
    /// Values that had to go, or were too large to be kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut kept = Kept::new(100);
        for key in 0..1000 {
            kept.insert(key, key, 10);
            assert!(kept.bytes() <= 100);
            assert_eq!(kept.get(0), Some(&mut 0), "used each time");
        }
        assert_eq!(kept.get(900), None);
        assert_eq!(kept.get(999), Some(&mut 999));
        assert!(kept.dropped() > 900);
        kept.insert(5, 5, 51);
        assert_eq!(kept.get(5), None, "larger than a generation");
        kept.insert(6, 1, 10);
        kept.insert(6, 2, 20);
        assert_eq!(kept.get(6), Some(&mut 2));
        assert!(kept.bytes() <= 100);
        kept.set_limit(40);
        assert_eq!((kept.bytes(), kept.get(6)), (20, Some(&mut 2)), "the young stay where they fit");
        kept.set_limit(10);
        assert_eq!((kept.bytes(), kept.get(6)), (0, None));
        kept.insert(7, 3, 5);
        kept.remove(7);
        kept.remove(8);
        assert_eq!((kept.bytes(), kept.get(7)), (0, None));
    }
}
