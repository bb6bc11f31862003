//! What users lost before it came up: in the ring, and in the kernel's tables of threads.
//!
//! In: their losses, once a second. Out: refusals by user, as those of the daemon's own tables, and word to the registry of
//! whose processes it has to look at anew, since events of theirs are missing. The kernel knows users and not cgroups by
//! name, so these losses are told by user.

use emberscope_capture::{Capture, Loss, UserLoss};
use emberscope_model::{Refusals, Tenant};
use emberscope_process::Registry;
use std::collections::BTreeSet;

/// A table for each [`Loss`], in its order.
const TABLES: [&str; Loss::ALL.len()] = [
    "ring_stacks",
    "ring_samples",
    "ring_events",
    "ring_names",
    "named_threads",
    "names_a_second",
    "pauses",
    "waiting_threads",
];

/// Refusals of the kernel's tables, by user.
#[derive(Debug, Default)]
pub(super) struct Shares {
    refused: [Refusals; TABLES.len()],
}

impl Shares {
    /// Once a second: takes what users lost since.
    pub fn tick(&mut self, capture: &mut Capture, registry: &mut Registry) {
        let spark = registry.iter().filter(|process| process.tenant.spark && !process.exited);
        let spark: BTreeSet<u32> = spark.map(|process| process.tenant.uid).collect();
        let losses = capture.lost_by_user();
        self.take(&losses, |uid| spark.contains(&uid));
        for loss in losses.iter().filter(|loss| loss.what == Loss::Task) {
            registry.events_lost(loss.uid);
        }
        capture.set_spark_users(spark);
    }

    fn take(&mut self, losses: &[UserLoss], is_spark: impl Fn(u32) -> bool) {
        for UserLoss { uid, what, count } in losses {
            if let Some(refused) = self.refused.get_mut(*what as usize) {
                refused.add_many(Tenant { spark: is_spark(*uid), uid: *uid, group: 0 }, *count);
            }
        }
    }

    /// What users lost, by table.
    pub fn refusals(&self) -> impl Iterator<Item = (&'static str, &Refusals)> {
        TABLES.into_iter().zip(&self.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_is_its_users_in_its_table() {
        let mut shares = Shares::default();
        let loss = |uid, what, count| UserLoss { uid, what, count };
        shares.take(&[loss(7, Loss::Stack, 100), loss(8, Loss::Stack, 1), loss(7, Loss::Place, 3)], |uid| {
            uid == 8
        });
        let totals: Vec<u64> = shares.refusals().map(|(_, refused)| refused.total()).collect();
        assert_eq!(totals, [101, 0, 0, 0, 3, 0, 0, 0]);
        let (table, stacks) = shares.refusals().next().expect("eight");
        let mut by: Vec<_> = stacks.by_tenant().map(|(who, count)| (who.uid, who.spark, count)).collect();
        by.sort_unstable();
        assert_eq!((table, by), ("ring_stacks", vec![(7, false, 100), (8, true, 1)]));
    }
}
