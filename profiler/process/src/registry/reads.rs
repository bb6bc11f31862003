//! How many processes are read from /proc, so that a storm of forks costs its own user's processes their names and
//! nobody else his.
//!
//! A read takes some 100 us of the sampling thread. Who pays is known without one: the process itself if it was read
//! before, else who forked it, as the fork's event says, else the owner of /proc/PID. Spark's processes and the
//! others' have buckets of their own, a user each; the others together have one more. The last quarter of a user's is for those
//! of his cgroups that took no more than an equal part ([`Parts`]): pods mostly run as one user.

use super::Registry;
use emberscope_model::{FastMap, Pid, Tenant};
use emberscope_target::errand::Parts;
use std::os::unix::fs::MetadataExt;

/// Reads a second of one user's processes; in a burst four times as many. A compile farm of 16 cores starts some
/// hundreds a second.
const A_USER: u64 = 500;
/// The same of all users together that have no role in Spark: a tenth of a core.
const OTHERS: u64 = 1_000;
/// The same of one user's processes of Spark: Python workers that are not used again are one a task.
const A_SPARK_USER: u64 = 1_000;
/// Seconds whose reads may be taken at once. What a second brings comes with the registry's tick.
const BURST: u64 = 4;
/// Users with a bucket, each some 50 bytes; over it those whose bucket is full are forgotten, then all.
const MAX_USERS: usize = 4096;

/// The tenant of processes of which nothing is known.
const NOBODY: Tenant = Tenant { spark: false, uid: u32::MAX, group: 0 };

const SECOND_NS: u64 = 1_000_000_000;

/// Until when what was taken is paid for; time begins at [`BURST`] seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket(u64);

impl Bucket {
    fn after(self, now_ns: u64, a_second: u64) -> Option<Self> {
        let from = self.0.max(now_ns.saturating_sub(BURST * SECOND_NS));
        let until = from + SECOND_NS / a_second;
        (until <= now_ns).then_some(Self(until))
    }

    /// Whether no more than a quarter is left.
    fn is_low(self, now_ns: u64) -> bool {
        self.0 > now_ns.saturating_sub(BURST * SECOND_NS / 4)
    }
}

/// A bucket for each user, and one for all that are not Spark's.
#[derive(Debug, Default)]
pub(super) struct ReadBudget {
    others: Bucket,
    users: FastMap<(bool, u32), Bucket>,
    cgroups: Parts<(bool, u32)>,
}

impl ReadBudget {
    /// Takes a read, if there is one left. `now_ns` counts from any beginning.
    pub fn take(&mut self, now_ns: u64, who: Tenant) -> bool {
        let now_ns = now_ns + BURST * SECOND_NS;
        let key = (who.spark, who.uid);
        if self.users.len() >= MAX_USERS && !self.users.contains_key(&key) {
            self.users.retain(|_, bucket| bucket.0 + BURST * SECOND_NS > now_ns);
            if self.users.len() >= MAX_USERS {
                self.users.clear();
            }
        }
        let bucket = self.users.get(&key).copied().unwrap_or_default();
        let a_second = if who.spark { A_SPARK_USER } else { A_USER };
        let Some(bucket) = bucket.after(now_ns, a_second) else { return false };
        if bucket.is_low(now_ns) && self.cgroups.has_more(key, who.group) {
            return false;
        }
        if !who.spark {
            let Some(others) = self.others.after(now_ns, OTHERS) else { return false };
            self.others = others;
        }
        self.users.insert(key, bucket);
        self.cgroups.add(key, who.group, 1, now_ns / (BURST * SECOND_NS));
        true
    }
}

impl Registry {
    /// Whether a process may be read now; if not that is counted.
    pub(super) fn may_read(&mut self, pid: Pid) -> bool {
        if self.scanning {
            return true;
        }
        let who = self.payer(pid);
        let granted = self.budget.take(self.tick * SECOND_NS, who);
        if !granted {
            self.unread.add(who);
        }
        granted
    }

    /// Whose a process is, as far as that is known without reading anything: its own, or who forked it.
    pub fn tenant(&self, pid: Pid) -> Tenant {
        self.known_tenant(pid).unwrap_or(NOBODY)
    }

    /// Whose budget a read is taken from.
    pub(super) fn payer(&self, pid: Pid) -> Tenant {
        self.known_tenant(pid).unwrap_or_else(|| {
            // Of a process that is not dumpable it is root (fs/proc/base.c, task_dump_owner).
            let directory = std::fs::metadata(self.config.proc_root.join(pid.to_string()));
            directory.map_or(NOBODY, |directory| Tenant { uid: directory.uid(), ..NOBODY })
        })
    }

    fn known_tenant(&self, pid: Pid) -> Option<Tenant> {
        let entry = |pid: &Pid| self.by_pid.get(pid).and_then(|key| self.entries.get(key));
        let known = entry(&pid).or_else(|| entry(&self.forks.get(pid)?.parent));
        known.map(|entry| entry.process.tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spark: bool, uid: u32) -> Tenant {
        Tenant { spark, uid, group: 0 }
    }

    #[test]
    fn a_storm_takes_its_own_users_reads() {
        let mut budget = ReadBudget::default();
        let taken = (0..100_000).filter(|_| budget.take(0, of(false, 65534))).count();
        assert_eq!(taken as u64, BURST * A_USER / 4 * 3, "the rest is another cgroup's");
        assert!((0..1_000).all(|_| budget.take(0, of(true, 65534))), "Spark's of the same user");
        assert!((0..1_000).all(|_| budget.take(0, of(false, 1000))), "another user's");
        let later = (0..1_000).filter(|i| budget.take(SECOND_NS + i, of(false, 65534))).count();
        assert_eq!(later as u64, A_USER);
    }

    #[test]
    fn a_cgroup_leaves_reads_to_others_of_its_user() {
        let mut budget = ReadBudget::default();
        let of = |group| Tenant { group, ..of(true, 185) };
        let mut take = |group, at| (0..100_000).filter(|_| budget.take(at, of(group))).count() as u64;
        assert_eq!(take(1, 0), BURST * A_SPARK_USER / 4 * 3);
        assert_eq!((take(2, 0), take(1, 0)), (BURST * A_SPARK_USER / 4, 0));
        // Each second again: who took most waits until there is more than a quarter.
        assert_eq!((take(1, SECOND_NS), take(2, SECOND_NS)), (0, A_SPARK_USER));
    }

    #[test]
    fn many_users_are_bounded_together() {
        let mut budget = ReadBudget::default();
        let taken = (0..100_000).filter(|uid| budget.take(0, of(false, *uid))).count();
        assert_eq!(taken as u64, BURST * OTHERS);
        assert!(budget.users.len() <= MAX_USERS);
        assert!(budget.take(0, of(true, 1)));
    }
}
