//! Files that have probes: whose they are, and since when no process maps them.
//!
//! Taking a file's probes away lasts (`detached`), and JVMs that come one after the other map the same file: so its probes stay
//! for a while after the last one, which costs nothing. Of more than some such files (each container brings its own) the oldest
//! go without delay; and he who maps a new copy with each process, faster than they go, waits for his own old ones.

use emberscope_model::{FileId, Tenant};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// For so long a file keeps its probes when no process maps it any more.
const LINGERS: Duration = Duration::from_secs(20);
/// So many such files linger.
const MAX_LINGER: usize = 16;
/// Such files of one tenant; with more he gets no probes on others.
const MAX_UNUSED: usize = 64;

struct File {
    /// Spark's before others'.
    tenant: Tenant,
    /// Since when no process maps it.
    unused: Option<Instant>,
}

/// The files that have probes.
#[derive(Default)]
pub(super) struct Probed(BTreeMap<FileId, File>);

impl Probed {
    /// A process of this tenant maps the file, which has probes now.
    pub(super) fn maps(&mut self, id: FileId, tenant: Tenant) {
        let file = self.0.entry(id).or_insert(File { tenant, unused: None });
        (file.tenant, file.unused) = (file.tenant.max(tenant), None);
    }

    pub(super) fn contains(&self, id: FileId) -> bool {
        self.0.contains_key(&id)
    }

    /// Which files processes map.
    pub(super) fn are_used(&mut self, used: &HashSet<FileId>, now: Instant) {
        for (id, file) in &mut self.0 {
            file.unused = if used.contains(id) { None } else { file.unused.or(Some(now)) };
        }
    }

    /// Whether a tenant has so many files that no process maps that he gets no other.
    pub(super) fn waits(&self, tenant: Tenant) -> bool {
        let unused = self.0.values().filter(|file| file.tenant == tenant && file.unused.is_some());
        unused.count() >= MAX_UNUSED
    }

    /// The file that no process has mapped for longest.
    pub(super) fn unused(&self) -> Option<FileId> {
        self.all_unused().min().map(|(_, id)| id)
    }

    /// The file that is to lose its probes next, if one has lingered long enough or too many do.
    pub(super) fn goes(&self, now: Instant) -> Option<FileId> {
        let (since, id) = self.all_unused().min()?;
        let long = now.duration_since(since) >= LINGERS;
        (long || self.all_unused().count() > MAX_LINGER).then_some(id)
    }

    fn all_unused(&self) -> impl Iterator<Item = (Instant, FileId)> {
        self.0.iter().filter_map(|(id, file)| Some((file.unused?, *id)))
    }

    /// The file has no probes any more.
    pub(super) fn remove(&mut self, id: FileId) {
        self.0.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: Tenant = Tenant { spark: true, uid: 1000, group: 0 };
    const OTHER: Tenant = Tenant { spark: false, uid: 65534, group: 0 };

    fn file(ino: u64) -> FileId {
        FileId { dev: 1, ino }
    }

    #[test]
    fn a_file_lingers_after_its_last_process() {
        let (mut probed, now) = (Probed::default(), Instant::now());
        probed.maps(file(1), OTHER);
        probed.maps(file(2), OTHER);
        probed.are_used(&HashSet::from([file(2)]), now);
        probed.are_used(&HashSet::new(), now + Duration::from_secs(1));
        assert_eq!(probed.goes(now + Duration::from_secs(19)), None);
        assert_eq!(probed.goes(now + LINGERS), Some(file(1)), "the older one");
        assert_eq!(probed.unused(), Some(file(1)));
        // The next process maps it in time.
        probed.maps(file(1), OTHER);
        assert_eq!(probed.goes(now + LINGERS), None);
        assert_eq!(probed.goes(now + Duration::from_secs(21)), Some(file(2)));
        probed.remove(file(2));
        assert!(probed.contains(file(1)) && !probed.contains(file(2)));
    }

    #[test]
    fn of_many_files_the_oldest_go_at_once() {
        let (mut probed, now) = (Probed::default(), Instant::now());
        (0..17).for_each(|ino| probed.maps(file(ino), JOB));
        probed.are_used(&(1..17).map(file).collect(), now);
        assert_eq!(probed.goes(now), None);
        probed.are_used(&HashSet::new(), now + Duration::from_secs(1));
        assert_eq!(probed.goes(now + Duration::from_secs(1)), Some(file(0)));
        assert!(!probed.waits(JOB), "thirty containers that end at once hold up nobody");
        probed.remove(file(0));
        assert_eq!(probed.goes(now + Duration::from_secs(1)), None);
    }

    #[test]
    fn who_maps_ever_new_copies_waits_for_his_own() {
        let (mut probed, now) = (Probed::default(), Instant::now());
        (0..64).for_each(|ino| probed.maps(file(ino), OTHER));
        assert!(!probed.waits(OTHER), "processes map them");
        // What Spark maps as well is not on his account.
        probed.maps(file(3), JOB);
        probed.are_used(&HashSet::new(), now);
        assert!(!probed.waits(OTHER));
        probed.maps(file(64), OTHER);
        probed.are_used(&HashSet::new(), now);
        assert!(probed.waits(OTHER) && !probed.waits(JOB));
    }
}
