//! What one may have of what all share: threads, places of a queue, a user's budget.
//!
//! Two rules. One *user* has at most half of what the others leave ([`half`]): the first of 16 threads has 8, the next 4, then
//! 2, and whoever has nothing may have one as long as there is one. A user's *cgroups* divide his budget ([`Parts`]) as those
//! of a [`Tenant`](emberscope_model::Tenant) divide a table: all of it but the last quarter is anybody's, and that one is for
//! those that took no more than an equal part.

use std::collections::HashMap;
use std::hash::Hash;

/// Cgroups that are told apart; beyond, all are forgotten.
const MAX_PARTS: usize = 1024;

/// What one may have of `room` things of which others have so many: half of what they leave, and one at least.
pub(crate) fn half(room: usize, others: usize) -> usize {
    room.saturating_sub(others).div_ceil(2).max(1)
}

/// What the cgroups of each user took; halved with each period of the caller's.
#[derive(Clone, Debug)]
pub struct Parts<U> {
    taken: HashMap<(U, u64), u64>,
    period: u64,
}

impl<U> Default for Parts<U> {
    fn default() -> Self {
        Self { taken: HashMap::new(), period: 0 }
    }
}

impl<U: Copy + Eq + Hash> Parts<U> {
    /// A cgroup of a user took so much more, in any unit; `period` counts up with time.
    pub fn add(&mut self, user: U, group: u64, amount: u64, period: u64) {
        let past = u32::try_from(period.saturating_sub(self.period)).unwrap_or(u32::MAX);
        if past > 0 {
            self.period = period;
            self.taken.retain(|_, taken| {
                *taken = taken.checked_shr(past).unwrap_or(0);
                *taken > 0
            });
        }
        if self.taken.len() >= MAX_PARTS && !self.taken.contains_key(&(user, group)) {
            self.taken.clear();
        }
        let taken = self.taken.entry((user, group)).or_default();
        *taken = taken.saturating_add(amount.max(1));
    }

    /// Whether a cgroup took more than an equal part of what its user's took. One that took all did: the next one's part
    /// is left for it.
    pub fn has_more(&self, user: U, group: u64) -> bool {
        let of_user = self.taken.iter().filter(|((one, _), _)| *one == user);
        let (groups, sum) =
            of_user.fold((0u64, 0u64), |(groups, sum), (_, taken)| (groups + 1, sum.saturating_add(*taken)));
        let own = self.taken.get(&(user, group)).copied().unwrap_or(0);
        own.saturating_mul(groups.max(2)) > sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_come_each_has_half_of_what_is_left() {
        let mut held: Vec<usize> = Vec::new();
        for _ in 0..6 {
            let others = held.iter().sum();
            held.push(half(16, others));
        }
        assert_eq!(held, [8, 4, 2, 1, 1, 1]);
    }

    #[test]
    fn who_took_more_than_an_equal_part_waits() {
        let mut parts = Parts::default();
        assert!(!parts.has_more(185, 1));
        parts.add(185, 1, 100, 0);
        assert!(parts.has_more(185, 1), "another's part is left, before there is another");
        assert!(!parts.has_more(185, 2) && !parts.has_more(186, 1));
        parts.add(185, 2, 30, 0);
        assert!(parts.has_more(185, 1) && !parts.has_more(185, 2));
        parts.add(185, 3, 100, 0);
        assert!(parts.has_more(185, 3) && !parts.has_more(185, 2));
        // What was long ago does not count.
        parts.add(185, 2, 50, 10);
        assert!(parts.has_more(185, 2) && !parts.has_more(185, 1));
    }

    #[test]
    fn they_are_bounded() {
        let mut parts = Parts::default();
        (0..10_000).for_each(|group| parts.add(185, group, 1, 0));
        assert!(parts.taken.len() <= MAX_PARTS);
    }
}
