//! What a row's threads waited for, by the label `wait` of samples of waits.
//!
//! In: sums of such samples. Out: `waited` of a row: seconds by reason, and which part of the ledger's exact blocked
//! time they are. Null where waits are not sampled.

use super::figures::seconds;
use emberscope_api::Waited;
use emberscope_model::{LedgerSums, WaitReason};

/// Nanoseconds that were waited, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits([u64; WaitReason::ALL.len()]);

impl Waits {
    /// Adds waits with this label; what is no reason of this version is `other`.
    pub fn add(&mut self, label: &str, ns: u64) {
        let reason = WaitReason::from_slug(label).unwrap_or(WaitReason::Other);
        if let Some(sum) = self.0.get_mut(reason as usize) {
            *sum = sum.saturating_add(ns);
        }
    }

    /// Adds the waits of another row.
    pub fn add_all(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Each reason and its nanoseconds, in the order of answers.
    pub fn by_reason(&self) -> impl Iterator<Item = (WaitReason, u64)> {
        WaitReason::ALL.into_iter().zip(self.0)
    }

    /// All of them together, nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.0.iter().fold(0u64, |sum, ns| sum.saturating_add(*ns))
    }

    /// For a row whose threads used `exact`.
    pub fn answer(&self, exact: Option<&LedgerSums>) -> Option<Waited> {
        let total = self.total_ns();
        let blocked = exact.map(LedgerSums::blocked_ns).filter(|blocked| *blocked > 0);
        let by = self.by_reason().filter(|(_, ns)| *ns > 0);
        (total > 0).then(|| Waited {
            seconds: seconds(total),
            of_blocked: blocked.map(|blocked| total as f64 / blocked as f64),
            by: by.map(|(reason, ns)| (reason.slug().into(), seconds(ns))).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn reasons_stand_beside_what_is_exact() {
        let mut waits = Waits::default();
        assert_eq!(json!(waits.answer(None)), Value::Null);
        waits.add("shuffle", 3_000_000_000);
        waits.add("gc", 500_000_000);
        let mut more = Waits::default();
        more.add("a reason of later", 500_000_000);
        waits.add_all(&more);
        let mut exact = LedgerSums { wall_ns: 9_000_000_000, ..LedgerSums::default() };
        exact.accounts.cpu_ns = 4_000_000_000;
        exact.accounts.run_delay_ns = 1_000_000_000;
        let by = json!({ "shuffle": 3.0, "gc": 0.5, "other": 0.5 });
        assert_eq!(json!(waits.answer(Some(&exact))), json!({ "seconds": 4.0, "of_blocked": 1.0, "by": by }));
        assert_eq!(waits.answer(None).unwrap().of_blocked, None);
    }
}
