//! Who holds the entries of a bounded table, and what each may hold when it is full.
//!
//! In: what every [`Tenant`] holds, and the room there is. Out: how much of it is over its share. Nothing is
//! counted while a table has room: whoever comes first may have all of it. Only a full table divides:
//! 1. Spark's processes and the others are two classes. Either may use what the other does not; where both want
//!    more than there is, Spark's have three quarters.
//! 2. In a class the users share equally: what a light one leaves goes to the others (max-min fairness).
//! 3. In a user the cgroups do, likewise: `yarn`, or root in containers, is many applications. A user who can
//!    make cgroups of his own (systemd's `Delegate=`) only divides his own share by it.
//!
//! So who holds no more than his equal share never gives way to others, whatever they do. The work is that of one pass
//! over the table; who makes room makes an eighth of the table's at once, so that it is a few steps an entry.

use super::FastMap;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Spark's part of a table, in quarters, where both classes want more than there is.
const SPARK_QUARTERS: usize = 3;

/// Tenants whose losses are counted apart, at most, a table; beyond that the one that lost least gives way.
const MAX_COUNTED: usize = 32;

/// Parts of a cgroup's path that make a tenant: as deep as a pod's container, or a user's service manager.
const GROUP_DEPTH: usize = 4;

/// Whose a process is, as far as sharing goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant {
    /// The process has a role in a Spark application.
    pub spark: bool,
    /// The user, as the host's kernel numbers him.
    pub uid: u32,
    /// Hash of the cgroup ([`cgroup_of`]).
    pub group: u64,
}

impl Tenant {
    /// The tenant of a user's process in this cgroup.
    pub fn new(spark: bool, uid: u32, cgroup: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        cgroup.hash(&mut hasher);
        Self { spark, uid, group: hasher.finish() }
    }
}

/// The part of a process's cgroup that names its service, session or container: of the lines of
/// /proc/PID/cgroup the unified hierarchy's, or where that is not used the longest.
pub fn cgroup_of(lines: &[String]) -> String {
    let paths = lines.iter().filter_map(|line| {
        let (hierarchy, rest) = line.split_once(':')?;
        let path = rest.split_once(':')?.1;
        Some((hierarchy == "0" && path.len() > 1, path))
    });
    let path = paths.max_by_key(|(unified, path)| (*unified, path.len())).map_or("", |(_, path)| path);
    let end = path.match_indices('/').nth(GROUP_DEPTH).map_or(path.len(), |(at, _)| at);
    path.get(..end).unwrap_or(path).to_owned()
}

/// What each tenant holds over its share, in the unit of the room that was divided.
#[derive(Clone, Debug, Default)]
pub struct Excess(FastMap<Tenant, usize>);

impl Excess {
    /// Divides `room` among those who hold something: a pair for each entry, or for several at once, with its
    /// size in the unit of `room`.
    pub fn over(room: usize, held: impl IntoIterator<Item = (Tenant, usize)>) -> Self {
        let mut groups: BTreeMap<Tenant, usize> = BTreeMap::new();
        for (tenant, size) in held {
            let sum = groups.entry(tenant).or_default();
            *sum = sum.saturating_add(size);
        }
        let wanted = |spark| {
            let of_class = groups.iter().filter(|(tenant, _)| tenant.spark == spark);
            of_class.fold(0usize, |sum, (_, size)| sum.saturating_add(*size))
        };
        let least = room - room / 4 * (4 - SPARK_QUARTERS);
        let for_spark = least.max(room.saturating_sub(wanted(false))).min(wanted(true));
        let mut excess = FastMap::default();
        for (spark, room) in [(true, for_spark), (false, room.saturating_sub(for_spark))] {
            let mut users: BTreeMap<u32, Vec<(Tenant, usize)>> = BTreeMap::new();
            for (tenant, size) in groups.iter().filter(|(tenant, _)| tenant.spark == spark) {
                users.entry(tenant.uid).or_default().push((*tenant, *size));
            }
            let of_user = |groups: &[(Tenant, usize)]| {
                groups.iter().fold(0usize, |sum, (_, size)| sum.saturating_add(*size))
            };
            let each = share(users.values().map(|groups| of_user(groups)).collect(), room);
            for groups in users.values() {
                let room = of_user(groups).min(each);
                let each = share(groups.iter().map(|(_, size)| *size).collect(), room);
                let over = groups.iter().filter(|(_, size)| *size > each);
                excess.extend(over.map(|(tenant, size)| (*tenant, size - each)));
            }
        }
        Self(excess)
    }

    /// The entries that leave a full table with at most `room`: of each tenant that holds more than its share as many
    /// as that is, in the order given. `held` says whose an entry is, and its size.
    pub fn of<E>(
        room: usize,
        entries: Vec<E>,
        held: impl Fn(&E) -> (Tenant, usize),
    ) -> impl Iterator<Item = E> {
        let mut excess = Self::over(room, entries.iter().map(&held));
        entries.into_iter().filter(move |entry| {
            let (tenant, size) = held(entry);
            excess.take(&tenant, size)
        })
    }

    /// Whether an entry of the tenant has to go, which is then taken off what it holds too much.
    pub fn take(&mut self, tenant: &Tenant, size: usize) -> bool {
        let Some(over) = self.0.get_mut(tenant).filter(|over| **over > 0) else { return false };
        *over = over.saturating_sub(size);
        true
    }

    /// Whether nobody holds too much, or not any more.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(|over| *over == 0)
    }
}

/// The most that each may have, so that all together have at most `room`; `usize::MAX` when all fit.
fn share(mut sizes: Vec<usize>, room: usize) -> usize {
    sizes.sort_unstable();
    let (mut left, count) = (room, sizes.len());
    for (i, size) in sizes.into_iter().enumerate() {
        let each = left / (count - i);
        if size > each {
            return each;
        }
        left -= size;
    }
    usize::MAX
}

/// What a table turned away or threw out because it was full, and of whom: the most hit are told apart.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    total: u64,
    by: FastMap<Tenant, u64>,
}

impl Refusals {
    /// Counts one more of this tenant's.
    pub fn add(&mut self, tenant: Tenant) {
        self.add_many(tenant, 1);
    }

    /// Counts so many more of this tenant's.
    pub fn add_many(&mut self, tenant: Tenant, more: u64) {
        self.total += more;
        if let Some(count) = self.by.get_mut(&tenant) {
            *count += more;
            return;
        }
        if self.by.len() >= MAX_COUNTED
            && let Some(least) = self.by.iter().min_by_key(|(_, count)| **count).map(|(who, _)| *who)
        {
            self.by.remove(&least);
        }
        self.by.insert(tenant, more);
    }

    /// All refusals, of whomever.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The refusals by tenant, as far as tenants are told apart.
    pub fn by_tenant(&self) -> impl Iterator<Item = (Tenant, u64)> {
        self.by.iter().map(|(tenant, count)| (*tenant, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tenant(spark: bool, uid: u32, group: u64) -> Tenant {
        Tenant { spark, uid, group }
    }

    fn kept(room: usize, held: &[(Tenant, usize)]) -> BTreeMap<Tenant, usize> {
        let excess = Excess::over(room, held.iter().copied());
        let of = |tenant| excess.0.get(tenant).copied().unwrap_or(0);
        held.iter().map(|(tenant, size)| (*tenant, size - of(tenant))).collect()
    }

    #[test]
    fn a_flooder_loses_his_own() {
        let (flooder, light) = (tenant(false, 65534, 0), tenant(false, 0, 0));
        assert_eq!(kept(100, &[(flooder, 1000), (light, 30)]), [(light, 30), (flooder, 70)].into());
        let job = tenant(true, 1000, 0);
        let kept = kept(100, &[(flooder, 1000), (light, 30), (job, 60)]);
        assert_eq!(kept, [(light, 20), (flooder, 20), (job, 60)].into());
    }

    #[test]
    fn spark_has_three_quarters_and_no_more_where_others_want_the_rest() {
        let (job, other) = (tenant(true, 1, 0), tenant(false, 2, 0));
        assert_eq!(kept(100, &[(job, 900), (other, 900)]), [(other, 25), (job, 75)].into());
        assert_eq!(kept(100, &[(job, 900), (other, 10)]), [(other, 10), (job, 90)].into());
        assert_eq!(kept(100, &[(job, 10), (other, 900)]), [(other, 90), (job, 10)].into());
    }

    #[test]
    fn cgroups_divide_their_users_share() {
        let mut held: Vec<_> = (0..50).map(|group| (tenant(false, 7, group), 20)).collect();
        held.push((tenant(false, 8, 0), 50));
        let kept = kept(100, &held);
        assert_eq!(kept[&tenant(false, 8, 0)], 50, "fifty cgroups are still one user");
        assert!((0..50).all(|group| kept[&tenant(false, 7, group)] == 1));
    }

    #[test]
    fn the_cgroup_that_counts() {
        let of = |lines: &[&str]| cgroup_of(&lines.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["0::/system.slice/spark.service"]), "/system.slice/spark.service");
        assert_eq!(of(&["0::/user.slice/a/b/c/d/e"]), "/user.slice/a/b/c");
        assert_eq!(of(&["4:memory:/hadoop-yarn/container_1", "1:cpu:/", "0::/"]), "/hadoop-yarn/container_1");
        assert_eq!((of(&[]), of(&["rubbish"])), (String::new(), String::new()));
    }

    #[test]
    fn those_who_lost_most_are_told_apart() {
        let mut refusals = Refusals::default();
        for uid in 0..10_000u32 {
            refusals.add(tenant(false, uid, 0));
            refusals.add(tenant(false, 65534, 0));
        }
        assert_eq!(refusals.total(), 20_000);
        assert!(refusals.by_tenant().count() <= MAX_COUNTED);
        assert!(refusals.by_tenant().any(|by| by == (tenant(false, 65534, 0), 10_000)));
    }

    proptest! {
        #[test]
        fn the_bound_holds_and_no_light_tenant_gives_way(
            room in 0usize..5_000,
            held in prop::collection::vec((any::<bool>(), 0u32..6, 0u64..4, 0usize..2_000), 0..40),
        ) {
            let mut sums: BTreeMap<Tenant, usize> = BTreeMap::new();
            for (spark, uid, group, size) in held {
                *sums.entry(tenant(spark, uid, group)).or_default() += size;
            }
            let held: Vec<_> = sums.iter().map(|(t, n)| (*t, *n)).collect();
            let kept = kept(room, &held);
            prop_assert!(kept.values().sum::<usize>() <= room);
            if sums.values().sum::<usize>() <= room {
                prop_assert_eq!(&kept, &sums);
            }
            for (who, size) in &sums {
                let of_class = if who.spark { room - room / 4 } else { room / 4 };
                let users = sums.keys().filter(|t| t.spark == who.spark).map(|t| t.uid);
                let users = users.collect::<std::collections::BTreeSet<_>>().len();
                let groups = sums.keys().filter(|t| (t.spark, t.uid) == (who.spark, who.uid)).count();
                if *size <= of_class / users / groups {
                    prop_assert_eq!(kept[who], *size);
                }
            }
        }
    }
}
