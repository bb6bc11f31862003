//! Deferred frames on their way to a name, of one process.
//!
//! In: frames as the kernel's walker sent them. Out: a [`Slot`] for each, which the reader of the process's memory
//! fills a moment later; equal frames share one. The slot of a frame that never means another ([`Meaning::Forever`]) is
//! kept while it is used; one that found the frame `[unloaded]` is asked for again with the next stack, since the code may
//! have been there all the time, in doubt while something was unloaded. Any other's slot is for stacks of the same
//! generation; where the runtime counts none, for the stacks of one batch.

use emberscope_model::{FastMap, FastSet, Frame, UnknownReason};
use emberscope_runtime::{DeferredFrame, Meaning, RuntimeId};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Slots of one process; if all are used, beyond this all go.
pub const MAX_SLOTS: usize = 16_384;
/// Slots that were not used for [`UNUSED`] go each time that there are so many more. The reader still knows most of
/// their names.
const SWEPT: usize = 1_024;
/// Stacks are sent again each epoch of ten seconds, so what was not used for two is no longer sampled.
const UNUSED: Duration = Duration::from_secs(20);

/// The frames that one deferred frame stands for, root first: a function and what is inlined in it. Empty until they were
/// read. Compared by identity.
#[derive(Clone, Debug, Default)]
pub struct Slot(Arc<OnceLock<Arc<[Arc<Frame>]>>>);

impl Slot {
    /// The frames, once they are known.
    pub fn get(&self) -> Option<&Arc<[Arc<Frame>]>> {
        self.0.get()
    }
    /// Whether another read may say more: the name could not be known any more, or not be told from what came after
    /// it, or there was no room for it.
    fn is_asked_again(&self) -> bool {
        let passes = |frame: &Arc<Frame>| {
            let asked = [UnknownReason::Unloaded, UnknownReason::PythonCodeGone, UnknownReason::TableFull];
            frame.unknown.is_some_and(|why| asked.contains(&why))
        };
        self.get().is_some_and(|frames| frames.iter().any(passes))
    }
    /// Fills the slot; the first answer stays.
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

struct Known {
    slot: Slot,
    /// The batch in which the frame is wanted.
    batch: u64,
    used: Instant,
}

/// A frame that is to be read, and its slot.
#[derive(Clone)]
pub struct Wanted {
    /// The frame, as the walker sent it.
    pub frame: DeferredFrame,
    /// Where its names go.
    pub slot: Slot,
}

/// The slots of a process.
#[derive(Default)]
pub struct Slots {
    /// Slots by frame; of those that last, without the generation.
    known: FastMap<DeferredFrame, Known>,
    wanted: Vec<Wanted>,
    batch: u64,
    /// Passing things, by number, of which names were asked.
    met: FastSet<u64>,
    /// Number of slots at which unused ones are looked for next.
    sweep_at: usize,
    /// Slots given up because there were too many.
    pub dropped: u64,
}

impl Slots {
    /// The slot of a frame; a new one is put on the list of what is wanted.
    pub fn of(&mut self, frame: DeferredFrame, meaning: Meaning, now: Instant) -> Slot {
        let forever = meaning == Meaning::Forever;
        let key = if forever { DeferredFrame { generation: 0, ..frame } } else { frame };
        let lasts = forever || frame.generation != 0;
        if let Some(known) = self.known.get_mut(&key)
            && (lasts && !(forever && known.slot.is_asked_again()) || known.batch == self.batch)
        {
            known.used = now;
            return known.slot.clone();
        }
        self.make_room(now);
        let slot = Slot::default();
        self.wanted.push(Wanted { frame, slot: slot.clone() });
        self.known.insert(key, Known { slot: slot.clone(), batch: self.batch, used: now });
        slot
    }

    /// Whether a passing thing, by the number that its runtime gives it, is met for the first time.
    pub fn meets(&mut self, thing: u64) -> bool {
        if self.met.len() >= MAX_SLOTS {
            self.met.clear();
        }
        self.met.insert(thing)
    }

    /// The runtime of the first frame that is to be read.
    pub fn next(&self) -> Option<RuntimeId> {
        self.wanted.first().map(|wanted| wanted.frame.frame.runtime())
    }

    /// What is to be read of one runtime, once.
    pub fn take_wanted(&mut self, runtime: RuntimeId) -> Vec<Wanted> {
        self.batch += 1;
        self.wanted.extract_if(.., |wanted| wanted.frame.frame.runtime() == runtime).collect()
    }

    /// Puts frames back on the list: they could not be handed over.
    pub fn put_back(&mut self, wanted: &[Wanted]) {
        self.wanted.splice(0..0, wanted.iter().cloned());
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
    use emberscope_model::FrameKind;
    use profiler_ebpf::UserFrame;

    const RUNTIME: RuntimeId = RuntimeId(9);

    fn frame(value: u64, cookie: u32, generation: u64) -> DeferredFrame {
        DeferredFrame {
            frame: UserFrame { value, cookie, kind: 1, runtime: RUNTIME.0, ..UserFrame::default() },
            generation,
        }
    }
    const LASTS: Meaning = Meaning::Forever;
    const PASSES: Meaning = Meaning::Generation;

    #[test]
    fn equal_frames_share_a_slot_and_are_wanted_once() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let first = slots.of(frame(0x7000, 4, 1), LASTS, now);
        assert_eq!(slots.of(frame(0x7000, 4, 2), LASTS, now), first);
        assert_ne!(slots.of(frame(0x7000, 5, 1), LASTS, now), first, "compiled anew");
        assert_eq!(slots.take_wanted(RUNTIME).len(), 2);
        assert!(slots.take_wanted(RUNTIME).is_empty());
        first.set([Arc::new(Frame::new(FrameKind::JavaCompiled, "a.B.c", ""))].into());
        assert_eq!(&*slots.of(frame(0x7000, 4, 3), LASTS, now).get().unwrap()[0].name, "a.B.c");
    }

    #[test]
    fn one_that_passes_is_another_in_the_next_generation() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let first = slots.of(frame(0x8000, 7, 5), PASSES, now);
        slots.take_wanted(RUNTIME);
        assert_eq!(slots.of(frame(0x8000, 7, 5), PASSES, now), first);
        assert_ne!(slots.of(frame(0x8000, 7, 6), PASSES, now), first);
        assert_eq!(slots.take_wanted(RUNTIME).len(), 1);
    }

    #[test]
    fn without_a_generation_it_is_asked_for_in_each_batch_and_older_stacks_keep_what_they_had() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let first = slots.of(frame(0x8000, 7, 0), PASSES, now);
        assert_eq!(slots.of(frame(0x8000, 7, 0), PASSES, now), first);
        let waits = slots.take_wanted(RUNTIME);
        let second = slots.of(frame(0x8000, 7, 0), PASSES, now);
        assert_ne!(second, first);
        second.set([].into());
        assert!(first.get().is_none());
        slots.put_back(&waits);
        let wanted = slots.take_wanted(RUNTIME);
        assert!(wanted.len() == 2 && wanted[0].slot == first, "what could not be handed over goes first");
    }

    #[test]
    fn each_runtime_has_a_batch_of_its_own() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        slots.of(frame(1, 1, 1), LASTS, now);
        let mut other = frame(1, 1, 1);
        other.frame.runtime += 1;
        slots.of(other, LASTS, now);
        assert_eq!(slots.next(), Some(RUNTIME));
        assert_eq!(slots.take_wanted(RUNTIME).len(), 1, "equal numbers of another runtime are another frame");
        assert_eq!(slots.next(), Some(other.frame.runtime()));
    }

    #[test]
    fn what_passes_is_met_once_and_is_bounded() {
        let mut slots = Slots::default();
        assert!(slots.meets(7) && !slots.meets(7) && slots.meets(8));
        for thing in 0..=MAX_SLOTS as u64 {
            slots.meets(thing);
        }
        assert!(slots.met.len() <= MAX_SLOTS);
    }

    #[test]
    fn slots_are_bounded_and_the_used_ones_stay() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let at = |value| frame(value, 1, 1);
        for value in 0..MAX_SLOTS as u64 {
            slots.of(at(value), LASTS, now);
        }
        let used = slots.of(at(3), LASTS, now + UNUSED);
        slots.of(at(u64::MAX), LASTS, now + UNUSED);
        assert_eq!((slots.known.len(), slots.dropped), (2, MAX_SLOTS as u64 - 1));
        assert_eq!(slots.of(at(3), LASTS, now + UNUSED), used);
        // Not only when there is no room left.
        for value in 0..=SWEPT as u64 {
            slots.of(at(value), LASTS, now + 3 * UNUSED);
        }
        assert_eq!(slots.known.len(), SWEPT + 1);
    }
}
