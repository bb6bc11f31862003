//! Which stacks were sent in this epoch.
//!
//! In: a stack's hash and the epoch. Out: whether to send it. Sets of eight words in an array, so that a
//! look costs one cache line: a sample meets cold memory at every step, and an LRU hash made it several.
//! When all eight of a set are of this epoch one goes, and its stack is sent again: counted, and rare at
//! the size that the daemon chooses. Two CPUs may both send one: harmless.
#![allow(unsafe_code)]

use crate::globals::SEEN_MASK;
use crate::maps::{SEEN, WAYS};

/// Low bits of a word: the epoch, which comes round after 121 days. The others are the hash's; its low
/// bits chose the set, so that at least 53 of 64 count.
const EPOCH_BITS: u64 = (1 << 20) - 1;

/// Room for a stack that has to be sent.
pub struct Room {
    word: *mut u64,
    value: u64,
    /// Another stack of this epoch has to go for it.
    pub displaces: bool,
}

impl Room {
    /// None when the stack was sent in this epoch.
    #[inline(always)]
    pub fn unless_sent(hash: u64, epoch: u64) -> Option<Self> {
        // Always there: the mask is the array's length less one. Without it nothing would be sent twice.
        let set = SEEN.get_ptr_mut(hash as u32 & SEEN_MASK.load())?.cast::<u64>();
        let value = hash & !EPOCH_BITS | epoch & EPOCH_BITS;
        let mut way = hash >> 32 & (WAYS as u64 - 1);
        let mut displaces = true;
        for i in 0..WAYS {
            // SAFETY: within the set; the verifier checks.
            let differs = unsafe { set.add(i).read() } ^ value;
            if differs == 0 {
                return None;
            }
            // Its own of an earlier epoch, or another's: both may be written over.
            if differs & EPOCH_BITS != 0 {
                way = i as u64;
                displaces = false;
            }
        }
        // SAFETY: as above.
        Some(Self { word: unsafe { set.add(way as usize & (WAYS - 1)) }, value, displaces })
    }

    /// The stack was sent.
    #[inline(always)]
    pub fn take(self) {
        // SAFETY: points into the set; a word is written whole.
        unsafe { self.word.write(self.value) }
    }
}
