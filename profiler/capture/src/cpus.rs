//! Which CPUs are sampled: all that are online, also those that come later.
//!
//! A perf event dies with its CPU and does not come back with it (kernel/events/core.c,
//! perf_event_exit_cpu). So besides comparing with the list of online CPUs, a CPU whose tick counter
//! stands still is attached anew: that also finds one that went and came between two looks. An idle CPU
//! stands still too (its ticks are left out), so each time in vain doubles the wait for the next.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often the wait doubles: from half a second to half a minute.
const MAX_DOUBLINGS: u32 = 6;

/// What a look at the CPUs changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuChange {
    /// CPUs that are newly sampled.
    pub added: Vec<u32>,
    /// CPUs that went offline.
    pub removed: Vec<u32>,
    /// CPUs that were online all the time as far as was seen, but without ticks: attached anew.
    pub revived: Vec<u32>,
}

/// The CPUs sampled, each with whatever keeps its sampling alive.
#[derive(Debug)]
pub(super) struct CpuSet<L> {
    cpus: BTreeMap<u32, Attached<L>>,
    /// Times that a CPU was attached anew without a tick since.
    vain: BTreeMap<u32, u32>,
    stall: Duration,
}

#[derive(Debug)]
struct Attached<L> {
    link: L,
    ticks: u64,
    since: Instant,
}

/// Which CPUs to leave, to sample, and to sample anew.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) attach: Vec<u32>,
    pub(super) detach: Vec<u32>,
    pub(super) revive: Vec<u32>,
}

impl<L> CpuSet<L> {
    /// `period`: time between two ticks; a CPU is taken to stand still after twenty, and no sooner than
    /// after half a second.
    pub(super) fn new(period: Duration) -> Self {
        Self {
            cpus: BTreeMap::new(),
            vain: BTreeMap::new(),
            stall: (period * 20).max(Duration::from_millis(500)),
        }
    }

    /// Compares with who is online; `ticks` gives a CPU's counter.
    pub(super) fn plan(&mut self, online: &[u32], ticks: impl Fn(u32) -> u64, now: Instant) -> Plan {
        let mut plan = Plan::default();
        for cpu in online {
            match self.cpus.get_mut(cpu) {
                None => plan.attach.push(*cpu),
                Some(state) => {
                    let seen = ticks(*cpu);
                    if seen != state.ticks {
                        (state.ticks, state.since) = (seen, now);
                        self.vain.remove(cpu);
                        continue;
                    }
                    let vain = self.vain.get(cpu).copied().unwrap_or(0);
                    if now.duration_since(state.since) >= self.stall * (1 << vain.min(MAX_DOUBLINGS)) {
                        self.vain.insert(*cpu, vain + 1);
                        plan.revive.push(*cpu);
                    }
                }
            }
        }
        plan.detach = self.cpus.keys().filter(|cpu| !online.contains(cpu)).copied().collect();
        // Who comes back begins anew.
        self.vain.retain(|cpu, _| !plan.detach.contains(cpu));
        plan
    }

    /// A CPU is sampled from now on; its old link, if any, is given back.
    pub(super) fn insert(&mut self, cpu: u32, link: L, ticks: u64, now: Instant) -> Option<L> {
        self.cpus.insert(cpu, Attached { link, ticks, since: now }).map(|old| old.link)
    }

    /// A CPU is sampled no longer.
    pub(super) fn remove(&mut self, cpu: u32) -> Option<L> {
        self.cpus.remove(&cpu).map(|old| old.link)
    }

    /// What keeps each CPU's sampling alive.
    pub(super) fn links_mut(&mut self) -> impl Iterator<Item = &mut L> {
        self.cpus.values_mut().map(|cpu| &mut cpu.link)
    }

    /// How many CPUs are sampled.
    pub(super) fn len(&self) -> usize {
        self.cpus.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_come_go_or_stand_still_are_seen() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut set = CpuSet::new(Duration::from_millis(10));
        let plan = set.plan(&[0, 1], |_| 0, start);
        assert_eq!(plan.attach, [0, 1]);
        set.insert(0, "a", 0, start);
        set.insert(1, "b", 0, start);

        // CPU 1 ticks; CPU 0 does not, but not for long yet.
        let plan = set.plan(&[0, 1], u64::from, at(400));
        assert_eq!(plan, Plan::default());
        let plan = set.plan(&[0, 1], u64::from, at(600));
        assert_eq!(plan, Plan { revive: vec![0], ..Default::default() });
        assert_eq!(set.insert(0, "c", 0, at(600)), Some("a"));
        // In vain: it may be idle, so the next time is later. A tick begins the count anew.
        assert_eq!(set.plan(&[0], |_| 0, at(1_200)).revive, [0; 0]);
        assert_eq!(set.plan(&[0], |_| 0, at(1_700)).revive, [0]);
        set.insert(0, "d", 0, at(1_700));
        set.insert(1, "b", 0, at(1_700));
        assert_eq!(set.plan(&[0, 1], |_| 1, at(1_800)), Plan::default());
        assert_eq!(set.plan(&[0, 1], |_| 1, at(2_400)).revive, [0, 1]);

        let plan = set.plan(&[0, 2], |_| 9, at(2_500));
        assert_eq!(plan, Plan { attach: vec![2], detach: vec![1], revive: vec![] });
        assert_eq!(set.remove(1), Some("b"));
        assert_eq!(set.len(), 1);
    }
}
