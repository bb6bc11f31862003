//! Java frames on their way to a name, of one process.
//!
//! In: frames as the kernel's walker recorded them. Out: a [`Slot`] for each, which the reader of the JVM's memory
//! fills a moment later; equal frames share one. What names a compiled frame (its pc and compile id) never means
//! another method, so its slot is kept while it is used. A `Method*` may be another's once its class is
//! unloaded, so the slot of an interpreted frame is for [`RENEW`] and stacks taken later get a new one.

use crate::model::Frame;
use profiler_ebpf::{FrameKindTag, UserFrame};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long the name of an interpreted frame or a stub holds: less than it takes to unload a class and to load
/// another into its memory while no stack is read.
pub const RENEW: Duration = Duration::from_secs(1);
/// Slots of one process; beyond, those that were not used for [`UNUSED`] go, and if that does not help all do.
pub const MAX_SLOTS: usize = 16_384;
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
type Key = (u64, u32, u8, u8);

struct Known {
    slot: Slot,
    asked: Instant,
    used: Instant,
}

/// The slots of a process.
#[derive(Default)]
pub struct Slots {
    known: HashMap<Key, Known>,
    wanted: Vec<(UserFrame, Slot)>,
    /// Slots given up because there were too many.
    pub dropped: u64,
}

impl Slots {
    /// The slot of a frame; a new one is put on the list of what is wanted.
    pub fn of(&mut self, frame: &UserFrame, now: Instant) -> Slot {
        let key = (frame.value, frame.cookie, frame.kind, frame.flags);
        let renews = frame.kind != FrameKindTag::JavaCompiled as u8;
        if let Some(known) = self.known.get_mut(&key)
            && !(renews && now.duration_since(known.asked) >= RENEW)
        {
            known.used = now;
            return known.slot.clone();
        }
        self.make_room(now);
        let slot = Slot::default();
        self.wanted.push((*frame, slot.clone()));
        self.known.insert(key, Known { slot: slot.clone(), asked: now, used: now });
        slot
    }

    /// What is to be read, once.
    pub fn take_wanted(&mut self) -> Vec<(UserFrame, Slot)> {
        std::mem::take(&mut self.wanted)
    }

    /// Back on the list: it could not be handed over.
    pub fn put_back(&mut self, wanted: Vec<(UserFrame, Slot)>) {
        self.wanted.extend(wanted);
    }

    fn make_room(&mut self, now: Instant) {
        if self.known.len() < MAX_SLOTS {
            return;
        }
        let before = self.known.len();
        self.known.retain(|_, known| now.duration_since(known.used) < UNUSED);
        if self.known.len() >= MAX_SLOTS {
            self.known.clear();
        }
        self.dropped += (before - self.known.len()) as u64;
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
        let first = slots.of(&compiled, now);
        assert_eq!(slots.of(&compiled, now + RENEW * 9), first);
        assert_ne!(slots.of(&frame(FrameKindTag::JavaCompiled, 0x7000, 5), now), first, "compiled anew");
        assert_eq!(slots.take_wanted().len(), 2);
        assert!(slots.take_wanted().is_empty());
        first.set([Arc::new(Frame::new(FrameKind::JavaCompiled, "a.B.c", ""))].into());
        assert_eq!(&*slots.of(&compiled, now).get().unwrap()[0].name, "a.B.c");
    }

    #[test]
    fn an_interpreted_frame_is_asked_for_again_and_older_stacks_keep_what_they_had() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let interpreted = frame(FrameKindTag::JavaInterpreted, 0x8000, 7);
        let first = slots.of(&interpreted, now);
        assert_eq!(slots.of(&interpreted, now + RENEW / 2), first);
        let second = slots.of(&interpreted, now + RENEW);
        assert_ne!(second, first);
        second.set([].into());
        assert!(first.get().is_none());
        assert_eq!(slots.take_wanted().len(), 2);
    }

    #[test]
    fn slots_are_bounded_and_the_used_ones_stay() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let at = |value| frame(FrameKindTag::JavaCompiled, value, 1);
        for value in 0..MAX_SLOTS as u64 {
            slots.of(&at(value), now);
        }
        let used = slots.of(&at(3), now + UNUSED);
        slots.of(&at(u64::MAX), now + UNUSED);
        assert_eq!((slots.known.len(), slots.dropped), (2, MAX_SLOTS as u64 - 1));
        assert_eq!(slots.of(&at(3), now + UNUSED), used);
    }
}
