//! Which processes are believed to be of the application that they name: the registry's side of
//! [`crate::claims`].
//!
//! In: the entries. Out: which are refused, and [`Conflict`]s for people. A process whose ancestor claims the same
//! application is that one's child and no claimant of its own. One below another application's executor is no executor of
//! this one, whoever's it is: on YARN without LinuxContainerExecutor all containers have one user. Bounded: holders of applications that nobody
//! claims any more, [`MAX_HELD`]; conflicts listed, [`MAX_LISTED`]; the rest are counted.

use super::entry::Entry;
use super::{MAX_ANCESTORS, Registry};
use crate::claims::{Claim, Evidence, Holders, Party, Side};
use crate::identity::Runtime;
use emberscope_model::{Pid, ProcessKey, Role};
use std::collections::{HashMap, HashSet};

/// Applications remembered with who held them, beyond those that are claimed now: weeks of a node.
const MAX_HELD: usize = 4096;
/// Conflicts listed; a user who makes more is listed often enough.
pub const MAX_LISTED: usize = 64;

/// A claim that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The process that makes the claim.
    pub pid: Pid,
    /// Number of its user.
    pub uid: u32,
    /// Name of its user.
    pub user: String,
    /// Id of the application that it names.
    pub app: String,
    /// What the process says that it is there.
    pub role: Role,
    /// Who holds the application: a user's number or name, `pods`, or the driver's pid and user; of a process below another
    /// application's executor that one.
    pub holder: String,
}

/// Who holds what, and who was refused at the last look.
#[derive(Debug, Default)]
pub(super) struct Claims {
    holders: HashMap<String, Holders>,
    refused: HashMap<ProcessKey, Conflict>,
    /// Refused processes and what they started, with the application that none of these is of.
    disowned: HashMap<ProcessKey, String>,
    /// Executors that named a driver of another user's.
    strays: HashMap<ProcessKey, Conflict>,
}

impl Claims {
    /// The application that a process is not believed to be of: its claim, or that of who started it, is refused.
    pub fn disowns(&self, key: ProcessKey) -> Option<&str> {
        self.disowned.get(&key).map(String::as_str)
    }

    /// Applications with the user who holds each.
    pub fn owners(&self) -> impl Iterator<Item = (&String, u32)> {
        self.holders.iter().filter_map(|(app, holders)| Some((app, holders.user()?)))
    }
}

impl Registry {
    /// Claims that are refused now, at most 64.
    pub fn conflicts(&self) -> Vec<&Conflict> {
        let mut all: Vec<&Conflict> =
            self.claims.refused.values().chain(self.claims.strays.values()).collect();
        all.sort_by_key(|conflict| conflict.pid);
        all.truncate(MAX_LISTED);
        all
    }

    /// Looks again at who claims what.
    pub(super) fn judge(&mut self) {
        let mut claims: HashMap<String, Vec<Claim>> = HashMap::new();
        let family = |e: &Entry| Some((e.process.uid, by_url_of(e)?.clone()));
        let families: HashSet<(u32, String)> = self.entries.values().filter_map(family).collect();
        let mut refused = HashMap::new();
        for (key, entry) in &self.entries {
            let Some((app, claim)) = self.claim(*key, entry, &families) else { continue };
            match self.other_executor(*key, &app, &claim) {
                Some(holder) => {
                    refused.insert(*key, conflict(entry, app, holder));
                }
                None => claims.entry(app).or_default().push(claim),
            }
        }
        if self.claims.holders.len() >= MAX_HELD {
            self.claims.holders.retain(|app, _| claims.contains_key(app));
        }
        for (app, claims) in claims {
            for (key, holder) in self.claims.holders.entry(app.clone()).or_default().judge(&claims) {
                let Some(entry) = self.entries.get(&key) else { continue };
                let holder = match holder {
                    Party::User(uid) => self.users.name(uid),
                    Party::Pods => "pods".to_owned(),
                };
                refused.insert(key, conflict(entry, app.clone(), holder));
            }
        }
        for conflict in
            refused.iter().filter(|(key, _)| !self.claims.refused.contains_key(key)).map(|(_, c)| c)
        {
            self.counters.conflicts += 1;
            tell(conflict);
        }
        self.claims.refused = refused;
        self.claims.strays.retain(|key, _| self.entries.get(key).is_some_and(|e| !e.process.exited));
        self.claims.disowned = self.disowned();
    }

    fn disowned(&self) -> HashMap<ProcessKey, String> {
        let refused = &self.claims.refused;
        if refused.is_empty() {
            return HashMap::new();
        }
        let app = |key: &ProcessKey| {
            let above = || self.ancestors(*key).find_map(|above| refused.get(&above.process.key));
            Some((*key, refused.get(key).or_else(above)?.app.clone()))
        };
        self.entries.keys().filter_map(app).collect()
    }

    /// An executor's `--driver-url` leads to a driver of another user, and nothing vouches for the executor.
    pub(super) fn stray(&mut self, executor: ProcessKey, driver: ProcessKey, app: &str) {
        let driver_user = self.entries.get(&driver).map_or(String::new(), |d| d.own.user.clone());
        let Some(entry) = self.entries.get(&executor) else { return };
        let conflict = conflict(entry, app.to_owned(), format!("driver {} of {driver_user}", driver.pid));
        if self.claims.strays.len() < MAX_LISTED && !self.claims.strays.contains_key(&executor) {
            self.counters.conflicts += 1;
            tell(&conflict);
            self.claims.strays.insert(executor, conflict);
        }
    }

    /// What a process says of itself. What a claimant starts says the same (its environment), and is its child.
    fn claim(
        &self,
        key: ProcessKey,
        entry: &Entry,
        families: &HashSet<(u32, String)>,
    ) -> Option<(String, Claim)> {
        let side = if entry.own.role == Role::Driver { Side::Driver } else { Side::Executors };
        let told = entry.told.as_ref();
        let by_url = told.and_then(|t| t.by_url.as_ref());
        let by_rest = told.and_then(|t| t.by_rest.as_ref()).map(|rest| &rest.id);
        let app = by_url.or(entry.own.app.as_ref()).or(by_rest)?;
        let side = if by_url.is_some() { Side::Driver } else { side };
        if key.start_ticks == 0 {
            // Gone before it could be read: what is known of it is its parent's.
            return None;
        }
        let uid = entry.process.uid;
        // A JVM may be better vouched for than the shell that started it.
        let speaks = |above: &Entry| is_spark_jvm(entry) && above.process.uid == uid;
        if self.ancestors(key).any(|above| claimed(above) == Some(app) && !speaks(above)) {
            return None;
        }
        let evidence = if entry.own.by_kernel {
            Evidence::Kernel
        } else if told.is_some_and(|t| t.by_url.is_some() && t.by_service) || self.is_vouched(key, entry, app)
        {
            Evidence::Vouched
        } else if by_url.is_some() || families.contains(&(uid, app.clone())) {
            Evidence::Family
        } else if by_rest == Some(app) {
            Evidence::Answered
        } else {
            Evidence::Word
        };
        let pods = entry.own.by_kernel && entry.own.deploy == emberscope_model::Deploy::Kubernetes;
        let party = if pods { Party::Pods } else { Party::User(uid) };
        Some((app.clone(), Claim { key, party, side, evidence }))
    }

    /// The executor of another application that a process is below which says that it is an executor of `app`. The
    /// kernel's word goes before.
    fn other_executor(&self, key: ProcessKey, app: &str, claim: &Claim) -> Option<String> {
        if claim.side != Side::Executors || claim.evidence == Evidence::Kernel {
            return None;
        }
        let (above, other) = self.ancestors(key).find_map(|above| Some((above, claimed(above)?)))?;
        let is_other = other != app && above.own.role == Role::Executor;
        is_other.then(|| format!("executor {} of {other}", above.process.key.pid))
    }

    /// Whether a service of the cluster started a process: a Worker or NodeManager of a cluster's user, or of another
    /// user than its own (LinuxContainerExecutor: changing users takes root, so it is no lookalike's). Not so below
    /// another application's process: what a container's own code starts is that container's.
    pub(super) fn is_vouched(&self, key: ProcessKey, entry: &Entry, app: &str) -> bool {
        for above in self.ancestors(key) {
            if matches!(above.own.role, Role::Worker | Role::NodeManager) {
                // A lookalike's child has its user, unless it runs a set-uid program: none of these is a JVM.
                let other_user = above.process.uid != entry.process.uid && is_spark_jvm(entry);
                return other_user || self.is_cluster_user(above);
            }
            if claimed(above).is_some_and(|other| other != app) {
                return false;
            }
        }
        false
    }

    /// Whether a user's services act for others.
    pub(super) fn is_cluster_user(&self, entry: &Entry) -> bool {
        let number = entry.process.uid.to_string();
        self.config.cluster_users.iter().any(|name| *name == entry.own.user || *name == number)
    }

    /// Parents, and theirs, as far as they are known.
    fn ancestors(&self, key: ProcessKey) -> impl Iterator<Item = &Entry> {
        let parent = |entry: &&Entry| entry.parent.and_then(|p| self.entries.get(&p));
        let first = self.entries.get(&key).and_then(|e| parent(&e));
        std::iter::successors(first, move |e| parent(e)).take(MAX_ANCESTORS)
    }
}

/// Whether a process is one of Spark's own JVMs, that run tasks or start those that do.
fn is_spark_jvm(entry: &Entry) -> bool {
    entry.own.runtime == Runtime::Java
        && matches!(entry.own.role, Role::Driver | Role::Executor | Role::AppMaster)
}

fn claimed(entry: &Entry) -> Option<&String> {
    by_url_of(entry).or(entry.own.app.as_ref()).or_else(|| Some(&entry.told.as_ref()?.by_rest.as_ref()?.id))
}

fn by_url_of(entry: &Entry) -> Option<&String> {
    entry.told.as_ref()?.by_url.as_ref()
}

fn conflict(entry: &Entry, app: String, holder: String) -> Conflict {
    let Entry { process, own, .. } = entry;
    Conflict { pid: process.key.pid, uid: process.uid, user: own.user.clone(), app, role: own.role, holder }
}

fn tell(conflict: &Conflict) {
    let Conflict { pid, user, app, holder, .. } = conflict;
    tracing::debug!(
        pid,
        user,
        app,
        holder,
        "a process claims an application that it is not believed to be of"
    );
}

#[cfg(test)]
mod tests;
