//! Whose an application is: which of the processes that say they are of it are believed.
//!
//! In: the claims on one application on this node (arguments, environment, a web server's answer: all words of
//! the process itself), each with what the kernel says of the claimant; and who held the application so far.
//! Out: who holds it now, and which claims are refused. Pure.
//!
//! A party is a user id, by the kernel; all pods are one, as each may have ids of its own. The executors of an
//! application on a node are of one party, and so are its drivers. The stronger evidence wins; among equals
//! whoever held it first keeps it, then the oldest process. A driver may be another party's than the executors
//! (standalone: a Worker's user; YARN without LinuxContainerExecutor: the NodeManager's) only where both are
//! vouched for: the executors by a service of the cluster, the driver by these executors' `--driver-url`.

use emberscope_model::ProcessKey;

/// Who claims: a user, or all pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Party {
    /// A user id.
    User(u32),
    /// Pods of Kubernetes, for applications with ids of Kubernetes.
    Pods,
}

/// How sure a claim is, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// The process's own arguments and environment: anybody may write any.
    Word,
    /// A driver's own web server says so, at a socket that the kernel knows as that process's.
    Answered,
    /// A driver listens where executors of the same user were told that theirs is.
    Family,
    /// A Worker or NodeManager that is a service of the cluster started it, or one of another user, which
    /// takes root.
    Vouched,
    /// The kernel's cgroup says so.
    Kernel,
}

/// Driver or what runs for executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Executors, and whatever else says that it is of the application.
    Executors,
    /// Drivers.
    Driver,
}

/// A process says that it is of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The claimant; the older a process is the smaller its start time.
    pub key: ProcessKey,
    /// Whose process that is.
    pub party: Party,
    /// As what the process says that it is of the application.
    pub side: Side,
    /// How sure the claim is.
    pub evidence: Evidence,
}

/// Who holds one side of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Whose processes are believed.
    pub party: Party,
    /// The best evidence that there ever was for them.
    pub evidence: Evidence,
    /// Start time of the oldest of these processes, clock ticks since boot.
    since: u64,
}

/// Who holds an application. Outlives its processes: who claims it after they ended is not believed either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    executors: Option<Holder>,
    driver: Option<Holder>,
}

impl Holders {
    /// Takes the claims there are now. Returns those that are refused, with whom they are refused for.
    pub fn judge(&mut self, claims: &[Claim]) -> Vec<(ProcessKey, Party)> {
        self.executors = strongest(self.executors, claims, Side::Executors);
        self.driver = strongest(self.driver, claims, Side::Driver);
        let refused = |claim: &Claim| {
            let holder = self.of(claim.side)?;
            (holder.party != claim.party).then_some((claim.key, holder.party))
        };
        claims.iter().filter_map(refused).collect()
    }

    /// Who holds a side: where the two do not go together, the stronger one holds both.
    pub fn of(&self, side: Side) -> Option<Holder> {
        let (own, other) = match side {
            Side::Executors => (self.executors, self.driver),
            Side::Driver => (self.driver, self.executors),
        };
        let (Some(mine), Some(theirs)) = (own, other) else { return own.or(other) };
        if mine.party == theirs.party || mine.links() && theirs.links() {
            return own;
        }
        let rank = |h: Holder, driver: bool| (h.evidence, std::cmp::Reverse(h.since), driver);
        let driver = side == Side::Driver;
        if rank(mine, driver) > rank(theirs, !driver) { own } else { other }
    }

    /// The user who holds the application, of its driver first.
    pub fn user(&self) -> Option<u32> {
        [Side::Driver, Side::Executors].into_iter().find_map(|side| match self.of(side)?.party {
            Party::User(uid) => Some(uid),
            Party::Pods => None,
        })
    }
}

impl Holder {
    /// Whether the other side may be another user's.
    fn links(&self) -> bool {
        self.evidence >= Evidence::Vouched
    }
}

/// The party with the best claim on one side, whoever held it before among equals.
fn strongest(held: Option<Holder>, claims: &[Claim], side: Side) -> Option<Holder> {
    let mut parties: Vec<Holder> = Vec::new();
    for claim in claims.iter().filter(|claim| claim.side == side) {
        let new = Holder { party: claim.party, evidence: claim.evidence, since: claim.key.start_ticks };
        match parties.iter_mut().find(|holder| holder.party == claim.party) {
            Some(known) => {
                known.evidence = known.evidence.max(new.evidence);
                known.since = known.since.min(new.since);
            }
            None => parties.push(new),
        }
    }
    if let Some(held) = held {
        match parties.iter_mut().find(|holder| holder.party == held.party) {
            Some(known) => {
                known.evidence = known.evidence.max(held.evidence);
                known.since = known.since.min(held.since);
            }
            None => parties.push(held),
        }
    }
    let is_held = |holder: &Holder| held.is_some_and(|held| held.party == holder.party);
    parties.into_iter().max_by_key(|h| (h.evidence, is_held(h), std::cmp::Reverse(h.since)))
}

#[cfg(test)]
mod tests;
