//! Who has to make room in a [`Keeper`] that is full: what was not sampled for a while goes first, then what is over
//! its tenant's share. Who holds no more than his share keeps all of it, whatever his neighbours map.

use super::super::space::QUIET;
use super::files::AGAIN;
use super::{Keeper, State, Walker, WalkerError};
use emberscope_model::{Excess, Pid, Tenant};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// Processes whose tenant is remembered: as many as may wait to be looked at. Beyond that they are nobody's.
const MAX_TENANTS: usize = 32_768;

/// Something that takes room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holding {
    /// A file's table.
    Table(u64),
    /// A process's list.
    List(Pid),
}

struct Held {
    what: Holding,
    /// Whose share the holding counts for.
    payer: Tenant,
    words: usize,
    /// Mappings that have the table.
    users: u32,
}

impl<W: Walker> Keeper<W> {
    /// Whose a process is; to be told again when it turns out to be another's.
    pub fn belongs(&mut self, pid: Pid, tenant: Tenant) {
        if self.tenants.len() < MAX_TENANTS || self.tenants.contains_key(&pid) {
            self.tenants.insert(pid, tenant);
        }
    }

    /// Whose a process is, as [`Self::belongs`] was told.
    pub fn tenant(&self, pid: Pid) -> Tenant {
        self.tenants.get(&pid).copied().unwrap_or_default()
    }

    /// Something of this tenant's finds no room.
    pub(super) fn refuse(&mut self, tenant: Tenant) {
        self.refusals.add(tenant);
    }

    /// Whether one more process may have a list: one of a tenant who has too many gives way, the one that was looked at
    /// longest ago.
    pub(super) fn place(&mut self, pid: Pid) -> bool {
        let most = self.limits.processes;
        if self.processes.len() < most {
            return true;
        }
        let newcomer = self.tenant(pid);
        if self.over.contains(&newcomer) {
            return false;
        }
        let held = self.processes.keys().map(|pid| (self.tenant(*pid), 1));
        let mut excess = Excess::over(most - most / 8, held.chain([(newcomer, 1)]));
        if excess.take(&newcomer, 1) {
            self.over.insert(newcomer);
            return false;
        }
        let mut order: Vec<_> = self.processes.iter().map(|(pid, process)| (process.looked, *pid)).collect();
        order.sort_unstable();
        for (_, pid) in order {
            let tenant = self.tenant(pid);
            if excess.take(&tenant, 1) {
                self.forget(pid);
                self.refuse(tenant);
            }
        }
        true
    }

    /// Room for so many words of this tenant's; others' tables go for it.
    pub(super) fn room(&mut self, words: usize, tenant: Tenant) -> Result<Option<u32>, WalkerError> {
        if let Some(address) = self.space.take(words, Instant::now()) {
            return Ok(Some(address));
        }
        let wanted = words + words / 2;
        if self.free_idle(wanted)?
            && let Some(address) = self.take_freed(words)
        {
            return Ok(Some(address));
        }
        if !self.over.contains(&tenant) && self.free_excess(wanted, tenant)? {
            return Ok(self.take_freed(words));
        }
        Ok(None)
    }

    /// Room that was given back just now: a moment later no walk reads it any more.
    fn take_freed(&mut self, words: usize) -> Option<u32> {
        std::thread::sleep(QUIET);
        self.space.take(words, Instant::now())
    }

    /// Tables go that are not in use, the longest unused first. False: there is none.
    fn free_idle(&mut self, wanted: usize) -> Result<bool, WalkerError> {
        let now = Instant::now();
        let vdso = self.vdso.map(|(_, key)| key);
        let idle = |(key, known): &(&u64, &super::Known)| {
            matches!(known.state, State::Built { .. })
                && now.saturating_duration_since(known.used) >= self.limits.in_use
                && Some(**key) != vdso
        };
        let idle = self.files.iter().filter(idle);
        let mut order: Vec<_> = idle.map(|(key, known)| (known.users > 0, known.used, *key)).collect();
        order.sort_unstable();
        let mut freed = 0;
        for (.., key) in order {
            if freed >= wanted {
                break;
            }
            freed += self.free_table(key, now)?;
        }
        Ok(freed > 0)
    }

    /// What goes of who holds more than his share, tables first that fewest processes have. False: nothing does, or the
    /// one who asks is over his own with it.
    fn free_excess(&mut self, wanted: usize, asks: Tenant) -> Result<bool, WalkerError> {
        let now = Instant::now();
        let mut held = self.held();
        let sizes = || held.iter().map(|held| (held.payer, held.words));
        // What is in nobody's table is not divided: ends of granules, the vdso.
        let others = (self.space.bytes() / 4).saturating_sub(sizes().map(|(_, words)| words).sum());
        let room = (self.limits.bytes / 4).saturating_sub(others);
        if Excess::over(room, sizes().chain([(asks, wanted)])).take(&asks, 1) {
            self.over.insert(asks);
            return Ok(false);
        }
        let mut excess = Excess::over(room.saturating_sub(wanted), sizes());
        held.sort_unstable_by_key(|held| (held.users, Reverse(held.words), held.what));
        let mut freed = 0;
        for held in held {
            if freed >= wanted || !excess.take(&held.payer, held.words) {
                continue;
            }
            freed += match held.what {
                Holding::Table(key) => self.free_table(key, now)?,
                Holding::List(pid) => {
                    self.forget(pid);
                    held.words
                }
            };
            self.refuse(held.payer);
        }
        Ok(freed > 0)
    }

    fn free_table(&mut self, key: u64, now: Instant) -> Result<usize, WalkerError> {
        self.counts.evicted += 1;
        self.without(key)?;
        Ok(self.drop_table(key, now))
    }

    /// All tables and lists, and whose share each counts for. A table that several have is Spark's where one of them
    /// is, else his who has most: who maps others' files as well takes nothing of theirs.
    fn held(&self) -> Vec<Held> {
        let mut sums: HashMap<Tenant, usize> = HashMap::new();
        let mut tenants: HashMap<u64, HashSet<Tenant>> = HashMap::new();
        let mut all = Vec::new();
        for (pid, process) in &self.processes {
            let (payer, words) = (self.tenant(*pid), process.words);
            *sums.entry(payer).or_default() += words;
            for (_, file) in process.ranges.all.iter().filter(|(_, file)| *file != 0) {
                tenants.entry(*file).or_default().insert(payer);
            }
            all.push(Held { what: Holding::List(*pid), payer, words, users: u32::MAX });
        }
        let vdso = self.vdso.map(|(_, key)| key);
        let tables = self.files.iter().filter_map(|(key, known)| match known.state {
            State::Built { words, .. } if Some(*key) != vdso => Some((*key, words, known.users)),
            _ => None,
        });
        let tables: Vec<_> = tables.collect();
        for (key, words, _) in &tables {
            for tenant in tenants.get(key).into_iter().flatten() {
                *sums.entry(*tenant).or_default() += words;
            }
        }
        all.extend(tables.into_iter().map(|(key, words, users)| {
            let of = tenants.get(&key).into_iter().flatten().copied();
            let payer = of.max_by_key(|tenant| (tenant.spark, sums.get(tenant).copied(), *tenant));
            Held { what: Holding::Table(key), payer: payer.unwrap_or_default(), words, users }
        }));
        all
    }

    pub(super) fn drop_table(&mut self, key: u64, now: Instant) -> usize {
        self.keys.set(key, false);
        let Some(known) = self.files.get_mut(&key) else { return 0 };
        let State::Built { address, words, rules, .. } =
            std::mem::replace(&mut known.state, State::Evicted(now + AGAIN))
        else {
            return 0;
        };
        self.space.give(address, words, now);
        for rule in rules {
            self.rules.give(rule);
        }
        words
    }
}
