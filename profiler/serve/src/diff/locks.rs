//! Which locks slow tasks wait longer for than usual ones, and who held them.

use super::super::error::ApiError;
use super::super::figures::seconds;
use super::slow::Group;
use emberscope_api::SlowLock;
use emberscope_model::{LabelKey, MatchOp, Matcher, Query, SampleKind};
use emberscope_store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Locks that are listed.
const LISTED: usize = 5;

/// By class and owner, the most first.
///
/// # Errors
/// What the store fails with.
pub fn locks(
    store: &dyn Store,
    query: &Query,
    [usual, slow]: [&Group; 2],
) -> Result<Vec<SlowLock>, ApiError> {
    let usual = of_a_task(store, query, usual)?;
    let more = of_a_task(store, query, slow)?.into_iter().filter_map(|(lock, seconds)| {
        let seconds = seconds - usual.get(&lock).copied().unwrap_or_default();
        let (lock, owner) = lock;
        (seconds > 0.0).then(|| SlowLock {
            lock: lock.to_string().into(),
            owner: owner.to_string().into(),
            seconds,
        })
    });
    let mut locks: Vec<_> = more.collect();
    locks.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    locks.truncate(LISTED);
    Ok(locks)
}

/// Seconds, by lock and owner.
type Locks = BTreeMap<(Arc<str>, Arc<str>), f64>;

/// Seconds that a task of the group waited in the mean.
fn of_a_task(store: &dyn Store, query: &Query, group: &Group) -> Result<Locks, ApiError> {
    let mut query = Query { kind: SampleKind::OffCpu, ..group.query(query) };
    let some = Matcher { key: LabelKey::Lock, op: MatchOp::NotIn(vec![String::new()]) };
    query.selection.matchers.push(some);
    let mut locks = Locks::new();
    for total in store.totals(&query)? {
        let label = |key| Arc::from(total.labels.get(key));
        *locks.entry((label(LabelKey::Lock), label(LabelKey::LockOwner))).or_insert(0.0) +=
            seconds(total.weight) / group.count.max(1) as f64;
    }
    Ok(locks)
}
