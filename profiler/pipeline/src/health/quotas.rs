//! What full tables turned away, and whose it was.
//!
//! In: each table's refusals. Out: a metric by table, and for the status the tenants that lost most, with names as far
//! as one of their processes is still known.

use super::Metrics;
use emberscope_model::{LabelKey, Refusals, Tenant};
use emberscope_process::Registry;
use emberscope_serve::raise_to;
use serde_json::{Value, json};

/// Tenants that the status lists.
const MAX_LISTED: usize = 20;

/// Counts what each table turned away.
pub(super) fn count(metrics: &Metrics, tables: &[(&'static str, &Refusals)]) {
    for (table, refusals) in tables {
        raise_to(&metrics.bounded.quota_refused.with_label_values(&[table]), refusals.total());
    }
}

/// The tenants that lost most, for the status.
pub(super) fn status(tables: &[(&'static str, &Refusals)], registry: &Registry) -> Vec<Value> {
    let each = tables.iter().flat_map(|(table, refusals)| {
        refusals.by_tenant().map(move |(tenant, refused)| (refused, *table, tenant))
    });
    let mut most: Vec<(u64, &str, Tenant)> = each.collect();
    most.sort_unstable_by(|a, b| b.cmp(a));
    most.truncate(MAX_LISTED);
    most.into_iter().map(|(refused, table, tenant)| one(refused, table, tenant, registry)).collect()
}

fn one(refused: u64, table: &str, tenant: Tenant, registry: &Registry) -> Value {
    let of_user = || registry.iter().filter(|process| process.tenant.uid == tenant.uid);
    let process = of_user().find(|process| process.tenant.group == tenant.group);
    let user = process.or_else(|| of_user().next()).map(|process| process.labels.get(LabelKey::User));
    json!({
        "table": table,
        // What no process is known of has the number that no user has.
        "uid": (tenant.uid != u32::MAX).then_some(tenant.uid),
        "user": user,
        "cgroup": process.map(|process| &*process.cgroup),
        "spark": tenant.spark,
        "refused": refused,
    })
}
