//! What the jobs of users and processes took and is not paid for yet: CPU time, and time that others waited for them.
//!
//! In: what a job took. Out: whether its user or process took too much. What is owed is paid with time: a share of each second.
//! The last quarter of what a user may owe is for those of his cgroups that took no more than an equal part ([`Parts`]).

use super::about::About;
use super::{Limits, Parts};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Users and processes that are remembered; beyond, those who owe nothing go, then all.
const MAX_PAYERS: usize = 8192;
/// After so long what a cgroup took counts half.
const PERIOD: Duration = Duration::from_secs(10);

/// Who pays, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Payer {
    /// A user, for CPU time.
    User(u32),
    /// A user, for the time that was waited.
    Waits(u32),
    /// A process, for CPU time.
    Process(PathBuf),
}

pub(super) struct Debts {
    /// When what each took is paid for.
    paid: HashMap<Payer, Instant>,
    cgroups: Parts<u32>,
    began: Instant,
}

impl Default for Debts {
    fn default() -> Self {
        Self { paid: HashMap::new(), cgroups: Parts::default(), began: Instant::now() }
    }
}

impl Debts {
    /// Whether too much was taken for a job to be begun. `group` is the process's cgroup, where it is known.
    pub fn are_too_high(&self, limits: &Limits, about: &About, group: Option<u64>, now: Instant) -> bool {
        let process = self.owes(&Payer::Process(about.dir.clone()), limits.process_share, now);
        let more = || group.is_some_and(|group| self.cgroups.has_more(about.payer, group));
        process > limits.process_ahead
            || of_user(limits, about).into_iter().flatten().any(|(payer, share, ahead)| {
                let owes = self.owes(&payer, share, now);
                owes > ahead || (owes > most(ahead) && more())
            })
    }

    /// Whether it matters which of a user's cgroups a process is in.
    pub fn are_high(&self, limits: &Limits, about: &About, now: Instant) -> bool {
        let mut of_user = of_user(limits, about).into_iter().flatten();
        of_user.any(|(payer, share, ahead)| self.owes(&payer, share, now) > most(ahead))
    }

    /// A job took so much CPU time.
    pub fn work(&mut self, limits: &Limits, about: &About, group: Option<u64>, used: Duration, now: Instant) {
        self.add(Payer::User(about.payer), limits.user_share, used, now);
        self.add(Payer::Process(about.dir.clone()), limits.process_share, used, now);
        self.of_group(about, group, used, now);
    }

    /// A job was waited for, beyond the CPU time that it took.
    pub fn wait(
        &mut self,
        limits: &Limits,
        about: &About,
        group: Option<u64>,
        waited: Duration,
        now: Instant,
    ) {
        self.add(Payer::Waits(about.payer), limits.user_waits, waited, now);
        self.of_group(about, group, waited, now);
    }

    /// Time that a user's jobs were waited for and is not paid for yet.
    pub fn waits(&self, limits: &Limits, about: &About, now: Instant) -> Duration {
        self.owes(&Payer::Waits(about.payer), limits.user_waits, now)
    }

    fn owes(&self, payer: &Payer, share: f64, now: Instant) -> Duration {
        let until = self.paid.get(payer).map_or(Duration::ZERO, |paid| paid.saturating_duration_since(now));
        until.mul_f64(share)
    }

    fn add(&mut self, payer: Payer, share: f64, took: Duration, now: Instant) {
        if self.paid.len() >= MAX_PAYERS && !self.paid.contains_key(&payer) {
            self.paid.retain(|_, paid| *paid > now);
            if self.paid.len() >= MAX_PAYERS {
                self.paid.clear();
            }
        }
        let paid = self.paid.entry(payer).or_insert(now);
        *paid = (*paid).max(now) + took.div_f64(share);
    }

    fn of_group(&mut self, about: &About, group: Option<u64>, took: Duration, now: Instant) {
        if let Some(group) = group {
            let period = now.saturating_duration_since(self.began).as_secs() / PERIOD.as_secs();
            let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            self.cgroups.add(about.payer, group, took, period);
        }
    }
}

/// What a user pays for, which share of a second he may take, and how much ahead. What the sampling thread waits is bounded
/// otherwise ([`Limits::waiting`]).
fn of_user(limits: &Limits, about: &About) -> [Option<(Payer, f64, Duration)>; 2] {
    let waits = (Payer::Waits(about.payer), limits.user_waits, limits.user_waits_ahead);
    [
        Some((Payer::User(about.payer), limits.user_share, limits.user_ahead)),
        (limits.waiting >= 1.0).then_some(waits),
    ]
}

/// What any of a user's cgroups may take ahead.
fn most(ahead: Duration) -> Duration {
    ahead / 4 * 3
}
