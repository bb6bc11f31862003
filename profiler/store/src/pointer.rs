//! Maps keyed by addresses, or by small numbers that stand for them.
//!
//! Keys here are made by the allocator or counted by us, never by an observed program, so the hash
//! needs to be quick and not secret: a multiplication a word.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map keyed by address.
pub(super) type PointerMap<V> = HashMap<usize, V, BuildHasherDefault<WordHasher>>;
/// A map keyed by two words.
pub(super) type PairMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// Mixes words by multiplication with 2^64 divided by the golden ratio.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WordHasher(u64);

impl WordHasher {
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        // The table takes its bits from both ends; a product's good ones are the high ones.
        self.0 ^ (self.0 >> 32)
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.word(u64::from(byte));
        }
    }
    fn write_u32(&mut self, word: u32) {
        self.word(u64::from(word));
    }
    fn write_u64(&mut self, word: u64) {
        self.word(word);
    }
    fn write_usize(&mut self, word: usize) {
        self.word(word as u64);
    }
}
