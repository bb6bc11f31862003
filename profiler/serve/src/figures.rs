//! The two kinds of figures of a row, side by side: exact ones from the ledger, and sampled ones.
//!
//! In: lines of the ledger and sums of samples that belong to one row. Out: `exact` (null where the ledger
//! has nothing) and `sampled` (with its error), and when the row was seen. They are
//! never mixed: what must be one number says which of the two it is.

use super::answer::{share, share_error};
use emberscope_api::{Amount, Cost, Exact};
use emberscope_model::{LabelTotal, LedgerSums, LedgerTotal, SampleKind, TimeRange};

/// Samples, and what they weigh in the unit of their kind.
#[derive(Clone, Copy, Default)]
pub struct Samples {
    /// How many.
    pub count: u64,
    /// What they weigh.
    pub weight: u64,
}

impl Samples {
    /// Adds others.
    pub fn add(&mut self, count: u64, weight: u64) {
        self.count = self.count.saturating_add(count);
        self.weight = self.weight.saturating_add(weight);
    }
    /// For a row; `all` are the samples of which they are a part.
    pub fn cost(self, kind: SampleKind, all: u64) -> Cost {
        Cost {
            amount: Amount::new(kind, self.count, self.weight),
            share: share(self.count, all),
            share_error: share_error(self.count, all),
        }
    }
}

/// Sums of one row of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Exact sums from the ledger; None: the ledger has none.
    pub exact: Option<LedgerSums>,
    /// How many samples the row has.
    pub samples: u64,
    /// Weight of these samples, in the unit of their kind.
    pub weight: u64,
    /// When the row was seen by the ledger, to the instant.
    seen_exactly: Option<TimeRange>,
    /// When the row was seen by samples, in whole windows.
    seen_sampled: Option<TimeRange>,
}

impl Figures {
    /// Adds a line of the ledger.
    pub fn add_exact(&mut self, line: &LedgerTotal) {
        self.exact.get_or_insert_default().add(&line.sums);
        self.seen_exactly = joined(self.seen_exactly, Some(line.seen));
    }
    /// Adds the samples of some labels.
    pub fn add_samples(&mut self, total: &LabelTotal) {
        self.samples = self.samples.saturating_add(total.count);
        self.weight = self.weight.saturating_add(total.weight);
        self.seen_sampled = joined(self.seen_sampled, Some(total.seen));
    }
    /// Adds the sums of another row.
    pub fn add(&mut self, other: &Self) {
        if let Some(sums) = &other.exact {
            self.exact.get_or_insert_default().add(sums);
        }
        self.samples = self.samples.saturating_add(other.samples);
        self.weight = self.weight.saturating_add(other.weight);
        self.seen_exactly = joined(self.seen_exactly, other.seen_exactly);
        self.seen_sampled = joined(self.seen_sampled, other.seen_sampled);
    }
    /// When the row was seen: by the ledger where it tells.
    pub fn seen(&self) -> Option<TimeRange> {
        self.seen_exactly.or(self.seen_sampled)
    }
    /// For a row whose samples are of a kind.
    pub fn answer(&self, kind: SampleKind) -> emberscope_api::Figures {
        let sampled = Amount::new(kind, self.samples, self.weight).into();
        emberscope_api::Figures { exact: self.exact.as_ref().map(exact), sampled }
    }
}

fn joined(one: Option<TimeRange>, other: Option<TimeRange>) -> Option<TimeRange> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.cover(&other);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

/// Exact sums, for a row.
pub fn exact(sums: &LedgerSums) -> Exact {
    let (user, system) = sums.user_and_system_ns();
    let accounts = &sums.accounts;
    Exact {
        cpu_seconds: seconds(accounts.cpu_ns),
        user_seconds: seconds(user),
        system_seconds: seconds(system),
        wall_seconds: seconds(sums.wall_ns),
        run_delay_seconds: seconds(accounts.run_delay_ns),
        throttled_seconds: seconds(sums.queued_and_throttled_ns().1),
        paused_seconds: seconds(accounts.paused_ns),
        blocked_seconds: seconds(sums.blocked_ns()),
        python_wait_seconds: seconds(accounts.python_wait_ns),
        voluntary_switches: accounts.voluntary_switches,
        involuntary_switches: accounts.involuntary_switches,
        minor_faults: accounts.minor_faults,
        major_faults: accounts.major_faults,
        read_bytes: accounts.read_bytes,
        written_bytes: accounts.written_bytes,
        begun: sums.begun,
    }
}

/// Nanoseconds as seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
