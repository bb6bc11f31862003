//! Java frames on their way to a name, of one process.
//!
//! In: frames as the kernel's walker recorded them. Out: a [`Slot`] for each, which the reader of the JVM's memory
//! fills a moment later; equal frames share one. What names a compiled frame (its pc and compile id) never means
//! another method, so its slot is kept while it is used; one that found it `[unloaded]` is asked for again with the next
//! stack, since the code may have been there all the time, in doubt while some class was unloaded. A `Method*` may be
//! another's once its class is unloaded, so the slot of an interpreted frame is for stacks with the same count of
//! unloaded classes; where the JVM has no such count, for the stacks of one batch.

use crate::model::{FastMap, Frame, UnknownReason};
use profiler_ebpf::{FrameKindTag, UserFrame};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Slots of one process; if all are used, beyond this all go.
pub const MAX_SLOTS: usize = 16_384;
/// Those that were not used for [`UNUSED`] go each time that there are so many more. The reader still knows most of
/// their names.
const SWEPT: usize = 1_024;
/// Stacks are sent again each epoch of ten seconds, so what was not used for two is no longer sampled.
const UNUSED: Duration = Duration::from_secs(20);

/// The frames that one recorded frame stands for, root first: a compiled method and what is inlined in it. Empty until
/// they were read. Compared by identity.
#[derive(Clone, Debug, Default)]
pub struct Slot(Arc<OnceLock<Arc<[Arc<Frame>]>>>);

impl Slot {
    /// The frames, once they are known.
    pub fn get(&self) -> Option<&Arc<[Arc<Frame>]>> {
        self.0.get()
    }
    /// Whether another read may say more: it could not be known any more, or not be told from what came after it, or
    /// there was no room for its name.
    fn is_asked_again(&self) -> bool {
        let passes = |frame: &Arc<Frame>| {
            matches!(frame.unknown, Some(UnknownReason::Unloaded | UnknownReason::TableFull))
        };
        self.get().is_some_and(|frames| frames.iter().any(passes))
    }
    /// Fills it; the first answer stays.
    pub fn set(&self, frames: Arc<[Arc<Frame>]>) {
        let _ = self.0.set(frames);
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Slot {}
impl Hash for Slot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// What makes two recorded frames the same.
type Key = (u64, u32, u8, u8, u64);

struct Known {
    slot: Slot,
    /// The batch in which it is wanted.
    batch: u64,
    used: Instant,
}

/// What is to be read: a frame, the count of unloaded classes that its stack was recorded with, its slot.
pub type Wanted = Vec<(UserFrame, u64, Slot)>;

/// The slots of a process.
#[derive(Default)]
pub struct Slots {
    known: FastMap<Key, Known>,
    wanted: Wanted,
    batch: u64,
    /// At how many to look for unused ones next.
    sweep_at: usize,
    /// Slots given up because there were too many.
    pub dropped: u64,
}

impl Slots {
    /// The slot of a frame of a stack recorded with this count of unloaded classes ([`crate::model::RawStack`]); a
    /// new one is put on the list of what is wanted.
    pub fn of(&mut self, frame: &UserFrame, unloads: u64, now: Instant) -> Slot {
        let compiled = frame.kind == FrameKindTag::JavaCompiled as u8;
        let of_count = if compiled { 0 } else { unloads };
        let key = (frame.value, frame.cookie, frame.kind, frame.flags, of_count);
        let lasts = compiled || unloads != 0;
        if let Some(known) = self.known.get_mut(&key)
            && (lasts && !(compiled && known.slot.is_asked_again()) || known.batch == self.batch)
        {
            known.used = now;
            return known.slot.clone();
        }
        self.make_room(now);
        let slot = Slot::default();
        self.wanted.push((*frame, unloads, slot.clone()));
        self.known.insert(key, Known { slot: slot.clone(), batch: self.batch, used: now });
        slot
    }

    /// What is to be read, once.
    pub fn take_wanted(&mut self) -> Wanted {
        self.batch += 1;
        std::mem::take(&mut self.wanted)
    }

    /// Back on the list: it could not be handed over.
    pub fn put_back(&mut self, wanted: Wanted) {
        let newer = std::mem::replace(&mut self.wanted, wanted);
        self.wanted.extend(newer);
    }

    fn make_room(&mut self, now: Instant) {
        if self.known.len() < self.sweep_at.max(SWEPT) {
            return;
        }
        let before = self.known.len();
        self.known.retain(|_, known| now.duration_since(known.used) < UNUSED);
        if self.known.len() >= MAX_SLOTS {
            self.known.clear();
        }
        self.dropped += (before - self.known.len()) as u64;
        self.sweep_at = (self.known.len() + SWEPT).min(MAX_SLOTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FrameKind;

    fn frame(kind: FrameKindTag, value: u64, cookie: u32) -> UserFrame {
        UserFrame { value, cookie, kind: kind as u8, ..UserFrame::default() }
    }

    #[test]
    fn equal_frames_share_a_slot_and_are_wanted_once() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let compiled = frame(FrameKindTag::JavaCompiled, 0x7000, 4);
        let first = slots.of(&compiled, 1, now);
        assert_eq!(slots.of(&compiled, 2, now), first);
        assert_ne!(slots.of(&frame(FrameKindTag::JavaCompiled, 0x7000, 5), 1, now), first, "compiled anew");
        assert_eq!(slots.take_wanted().len(), 2);
        assert!(slots.take_wanted().is_empty());
        first.set([Arc::new(Frame::new(FrameKind::JavaCompiled, "a.B.c", ""))].into());
        assert_eq!(&*slots.of(&compiled, 3, now).get().unwrap()[0].name, "a.B.c");
    }

    #[test]
    fn an_interpreted_frame_is_another_once_classes_were_unloaded() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let interpreted = frame(FrameKindTag::JavaInterpreted, 0x8000, 7);
        let first = slots.of(&interpreted, 5, now);
        slots.take_wanted();
        assert_eq!(slots.of(&interpreted, 5, now), first);
        assert_ne!(slots.of(&interpreted, 6, now), first);
        assert_eq!(slots.take_wanted().len(), 1);
    }

    #[test]
    fn without_a_count_it_is_asked_for_in_each_batch_and_older_stacks_keep_what_they_had() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let interpreted = frame(FrameKindTag::JavaInterpreted, 0x8000, 7);
        let first = slots.of(&interpreted, 0, now);
        assert_eq!(slots.of(&interpreted, 0, now), first);
        let waits = slots.take_wanted();
        let second = slots.of(&interpreted, 0, now);
        assert_ne!(second, first);
        second.set([].into());
        assert!(first.get().is_none());
        slots.put_back(waits);
        let wanted = slots.take_wanted();
        assert!(wanted.len() == 2 && wanted[0].2 == first, "what could not be handed over goes first");
    }

    #[test]
    fn slots_are_bounded_and_the_used_ones_stay() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let at = |value| frame(FrameKindTag::JavaCompiled, value, 1);
        for value in 0..MAX_SLOTS as u64 {
            slots.of(&at(value), 1, now);
        }
        let used = slots.of(&at(3), 1, now + UNUSED);
        slots.of(&at(u64::MAX), 1, now + UNUSED);
        assert_eq!((slots.known.len(), slots.dropped), (2, MAX_SLOTS as u64 - 1));
        assert_eq!(slots.of(&at(3), 1, now + UNUSED), used);
        // Not only when there is no room left.
        for value in 0..=SWEPT as u64 {
            slots.of(&at(value), 1, now + 3 * UNUSED);
        }
        assert_eq!(slots.known.len(), SWEPT + 1);
    }
}
