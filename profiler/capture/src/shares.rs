//! What each user lost for want of room in the ring and in the tables of threads, and who runs Spark.
//!
//! In: the kernel's account of each user ([`Share`]), read when something was lost since the last look. Out: the losses
//! since then, by user. The programs give a user's slot away when four others with losses fell into his set and he has
//! nothing more: what he lost since the last look is then counted by reason alone.
// For `aya::Pod`.
#![allow(unsafe_code)]

use super::session::Capture;
use aya::maps::{Array, HashMap, MapData};
use emberscope_model::LostCounts;
use profiler_ebpf::{DropReason, GROUPS_AT, Loss, MAX_SPARK_USERS, Share};
use std::collections::BTreeSet;

/// What one user lost since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserLoss {
    /// The user's number, as the host's kernel has it.
    pub uid: u32,
    /// What was lost.
    pub what: Loss,
    /// How much of it was lost since the last look.
    pub count: u64,
}

/// As the map has it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Slot(Share);

// SAFETY: integers without padding between them (its size is asserted where it is made).
unsafe impl aya::Pod for Slot {}

/// The maps, and what they said at the last look.
pub(super) struct Shares {
    pub(super) slots: Array<MapData, Slot>,
    pub(super) spark: HashMap<MapData, u32, u8>,
    pub(super) seen: Seen,
}

/// What was known at the last look.
#[derive(Debug, Default)]
pub(super) struct Seen {
    lost: u64,
    slots: Vec<Share>,
    spark: BTreeSet<u32>,
}

impl Capture {
    /// What each user lost since the last call, for want of room or of his share of it.
    pub fn lost_by_user(&mut self) -> Vec<UserLoss> {
        let lost = self.lost();
        let shares = &mut self.shares;
        if !shares.seen.lost_more(&lost) {
            return Vec::new();
        }
        let slots = (0..GROUPS_AT).map(|at| shares.slots.get(&at, 0).map_or(Share::default(), |slot| slot.0));
        let slots = slots.collect();
        shares.seen.since(slots)
    }

    /// Tells the programs which users have processes of Spark's: these may fill three times as much as others.
    pub fn set_spark_users(&mut self, uids: BTreeSet<u32>) {
        let shares = &mut self.shares;
        for gone in shares.seen.spark.difference(&uids) {
            let _ = shares.spark.remove(gone);
        }
        let new = uids.difference(&shares.seen.spark).filter(|uid| shares.spark.insert(**uid, 1, 0).is_err());
        let refused = new.count();
        if refused > 0 {
            tracing::warn!(refused, most = MAX_SPARK_USERS, "users of Spark who have the share of others");
        }
        shares.seen.spark = uids;
    }
}

impl Seen {
    /// Whether anything was lost since it was asked last.
    fn lost_more(&mut self, lost: &LostCounts) -> bool {
        use DropReason::{
            NamesTooFast, PauseLost, RingFullEvent, RingFullSample, RingFullStack, RingFullThread,
            ThreadsFull, WaitersFull,
        };
        let reasons = [
            RingFullSample,
            RingFullStack,
            RingFullEvent,
            RingFullThread,
            ThreadsFull,
            NamesTooFast,
            PauseLost,
            WaitersFull,
        ];
        let sum = reasons.into_iter().fold(0u64, |sum, reason| sum.saturating_add(lost.get(reason)));
        std::mem::replace(&mut self.lost, sum) != sum
    }

    /// The losses that are new in `slots`, which are what is looked at next time.
    fn since(&mut self, slots: Vec<Share>) -> Vec<UserLoss> {
        let mut losses = Vec::new();
        for (at, slot) in slots.iter().enumerate().filter(|(_, slot)| slot.owner != 0) {
            // Another's counts are not his.
            let before = self.slots.get(at).filter(|before| before.owner == slot.owner);
            let before = before.map_or([0; 8], |before| before.lost);
            for (what, (now, before)) in Loss::ALL.into_iter().zip(slot.lost.into_iter().zip(before)) {
                if now > before {
                    losses.push(UserLoss { uid: (slot.owner - 1) as u32, what, count: now - before });
                }
            }
        }
        self.slots = slots;
        losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(owner: u64, what: Loss, count: u64) -> Share {
        let mut share = Share { owner, ..Share::default() };
        share.lost[what as usize] = count;
        share
    }

    #[test]
    fn losses_are_told_once_and_of_whom_they_were() {
        let mut seen = Seen::default();
        let loss = |uid, what, count| UserLoss { uid, what, count };
        let slots = vec![Share::default(), slot(1001, Loss::Stack, 5)];
        assert_eq!(seen.since(slots.clone()), [loss(1000, Loss::Stack, 5)]);
        assert_eq!(seen.since(slots), []);
        let slots = vec![slot(1, Loss::Name, 2), slot(1001, Loss::Stack, 7)];
        assert_eq!(seen.since(slots), [loss(0, Loss::Name, 2), loss(1000, Loss::Stack, 2)]);
        // Given to another, who has lost less than the one before.
        assert_eq!(seen.since(vec![slot(8, Loss::Name, 1)]), [loss(7, Loss::Name, 1)]);
    }

    #[test]
    fn the_map_is_read_only_when_something_was_lost() {
        let (mut seen, mut lost) = (Seen::default(), LostCounts::default());
        assert!(!seen.lost_more(&lost));
        lost.0[DropReason::RingFullStack as usize] = 3;
        assert!(seen.lost_more(&lost) && !seen.lost_more(&lost));
        lost.0[DropReason::KernelStackFailed as usize] = 3;
        assert!(!seen.lost_more(&lost));
    }

    /// The programs' rule, on a ring of 1,000 bytes that nobody reads.
    fn fill(users: u64, ring: u64) -> (Vec<u64>, u64) {
        let mut shares = vec![Share::default(); users as usize];
        let mut waiting = 0;
        for _ in 0..ring {
            for share in &mut shares {
                let held = 2 * share.in_ring(1, 1 + waiting);
                if waiting + 8 <= ring && held + 8 <= 2 * (ring - waiting) {
                    share.put(8, 1 + waiting);
                    waiting += 8;
                }
            }
        }
        (shares.iter_mut().map(|share| share.in_ring(1, 1 + waiting)).collect(), ring - waiting)
    }

    #[test]
    fn whoever_floods_leaves_room_for_one_more() {
        for users in 1..8 {
            let (held, free) = fill(users, 8192);
            let each = 8192 / (users + 1);
            assert!(held.iter().all(|held| held.abs_diff(each) <= 16), "{held:?}");
            assert!(free >= each - 16 * users, "{free} of {each}");
        }
    }

    #[test]
    fn what_was_read_is_forgotten() {
        let mut share = Share::default();
        share.in_ring(0, 100);
        share.put(50, 100);
        assert_eq!(share.in_ring(0, 150), 50);
        // All before the mark is read, and something after it may not be.
        share.put(50, 150);
        assert_eq!(share.in_ring(120, 200), 100);
        share.put(10, 200);
        assert_eq!(share.in_ring(205, 210), 10);
        assert_eq!(share.in_ring(210, 210), 0);
    }

    #[test]
    fn names_are_told_up_to_a_number_a_second() {
        let mut share = Share::default();
        let second = 1 << 30;
        assert_eq!((0..30).filter(|_| share.one_more_name(5 * second, 20)).count(), 20);
        assert!(share.one_more_name(6 * second, 20));
    }
}
