//! Which processes are watched, and which files have a probe, where there are too many: of each tenant his share.
//!
//! Pure: tenants in, choices out.

use emberscope_model::{Excess, FileId, ProcessKey, Refusals, Tenant};
use std::collections::BTreeMap;

/// At most `room` of these processes, Spark's first. Of a tenant that has more than its share those stay that are known
/// already, then the older ones.
pub(super) fn chosen(
    mut live: Vec<(Tenant, ProcessKey)>,
    room: usize,
    known: impl Fn(&ProcessKey) -> bool,
    refused: &mut Refusals,
) -> Vec<(Tenant, ProcessKey)> {
    let mut excess = Excess::over(room, live.iter().map(|(tenant, _)| (*tenant, 1)));
    if !excess.is_empty() {
        // The first to go come first.
        live.sort_by_key(|(_, key)| (known(key), std::cmp::Reverse((key.start_ticks, key.pid))));
        live.retain(|(tenant, _)| {
            let goes = excess.take(tenant, 1);
            if goes {
                refused.add(*tenant);
            }
            !goes
        });
    }
    live.sort_by_key(|(tenant, key)| (!tenant.spark, *key));
    live
}

/// Whose each file is: where several tenants map it, Spark's before others'.
pub(super) fn of_files(mapped: impl Iterator<Item = (Tenant, FileId)>) -> BTreeMap<FileId, Tenant> {
    let mut files = BTreeMap::new();
    for (tenant, file) in mapped {
        let of: &mut Tenant = files.entry(file).or_insert(tenant);
        *of = (*of).max(tenant);
    }
    files
}

/// The file that makes room for one of `tenant`'s; None if he has his share already.
pub(super) fn gives_way(files: &BTreeMap<FileId, Tenant>, room: usize, tenant: Tenant) -> Option<FileId> {
    let held = files.values().copied().chain([tenant]);
    let mut excess = Excess::over(room, held.map(|tenant| (tenant, 1)));
    if excess.take(&tenant, 0) {
        return None;
    }
    files.iter().find(|(_, of)| excess.take(of, 1)).map(|(file, _)| *file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOODER: Tenant = Tenant { spark: false, uid: 65534, group: 0 };
    const JOB: Tenant = Tenant { spark: true, uid: 1000, group: 0 };
    const OTHER: Tenant = Tenant { spark: false, uid: 0, group: 0 };

    fn key(pid: u32) -> ProcessKey {
        ProcessKey { pid, start_ticks: u64::from(pid) }
    }

    #[test]
    fn a_flooders_jvms_beyond_his_share_are_not_watched() {
        let mut live: Vec<_> = (0..4096).map(|pid| (FLOODER, key(pid))).collect();
        live.extend((5000..5020).map(|pid| (JOB, key(pid))));
        live.push((OTHER, key(6000)));
        let mut refused = Refusals::default();
        let chosen = chosen(live, 1024, |key| key.pid < 1024, &mut refused);
        assert_eq!(chosen.len(), 1024);
        assert!(chosen[..20].iter().all(|(tenant, _)| *tenant == JOB), "and Spark's come first");
        assert!(chosen.contains(&(OTHER, key(6000))) && chosen.contains(&(FLOODER, key(0))));
        assert_eq!(refused.by_tenant().collect::<Vec<_>>(), [(FLOODER, 4096 - 1003)]);
    }

    #[test]
    fn a_flooders_file_makes_room_and_he_gets_none_for_it() {
        let file = |n| FileId { dev: 1, ino: n };
        let mapped = (0..256).map(|n| (FLOODER, file(n)));
        let files = of_files(mapped.chain([(JOB, file(7))]));
        assert_eq!(files[&file(7)], JOB, "a file that Spark maps is not the flooder's");
        assert_eq!(gives_way(&files, 256, FLOODER), None);
        let loser = gives_way(&files, 256, OTHER).unwrap();
        assert_eq!(files[&loser], FLOODER);
    }
}
