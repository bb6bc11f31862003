//! Which of the named events a sample is of, or of which disk's requests: the label `event`.

use emberscope_model::{
    BlockWay, FastMap, LabelKey, LabelRewrite, LabelSet, LabelSetBuilder, NamedEvent, RawSample, SampleKind,
};
use std::path::Path;
use std::sync::Arc;

/// Disks and ways whose names are kept; over it all are read again.
const MAX_DISKS: usize = 1024;
/// Where the kernel names disks by their numbers.
const DISKS: &str = "/sys/dev/block";

/// A name, and the label sets that have it.
type Name = (Arc<str>, LabelRewrite);

/// The names of the events, by slot, and of disks' requests, by disk and way.
#[derive(Debug, Default)]
pub struct Named {
    events: Vec<Name>,
    disks: FastMap<(u32, u16), Name>,
}

impl Named {
    /// The events in the order of their slots.
    pub fn new(events: &[NamedEvent]) -> Self {
        let named = events.iter().map(|event| (event.name.clone(), LabelRewrite::default()));
        Self { events: named.collect(), disks: FastMap::default() }
    }

    /// The labels of a sample; with its event, if it is of one or a disk's request.
    pub fn tell(&mut self, sample: &RawSample, labels: Arc<LabelSet>) -> Arc<LabelSet> {
        let name = match sample.kind {
            SampleKind::Event => self.events.get_mut(usize::from(sample.slot)),
            SampleKind::BlockIo => Some(self.disk(sample.detail, sample.slot)),
            _ => None,
        };
        let Some((name, sets)) = name else { return labels };
        let with = |labels: &Arc<LabelSet>| {
            let set = LabelSetBuilder::from_set(labels).set(LabelKey::Event, name.clone());
            Some(Arc::new(set.build()))
        };
        sets.of(&labels, with).unwrap_or(labels)
    }

    fn disk(&mut self, device: u32, way: u16) -> &mut Name {
        if self.disks.len() >= MAX_DISKS {
            self.disks.clear();
        }
        self.disks.entry((device, way)).or_insert_with(|| {
            let name = format!("{} {}", disk(Path::new(DISKS), device), way_name(way));
            (name.into(), LabelRewrite::default())
        })
    }

    /// A window is over: the sets of its rows are not asked for again.
    pub fn forget(&mut self) {
        let names = self.events.iter_mut().chain(self.disks.values_mut());
        names.for_each(|(_, sets)| *sets = LabelRewrite::default());
    }
}

/// A disk's name, else its numbers: `dev_t` is 12 bits of major and 20 of minor (include/linux/kdev_t.h).
fn disk(disks: &Path, device: u32) -> String {
    let numbers = format!("{}:{}", device >> 20, device & 0xf_ffff);
    let link = std::fs::read_link(disks.join(&numbers)).ok();
    let name = link.as_ref().and_then(|link| link.file_name()?.to_str());
    name.map_or(numbers, str::to_owned)
}

fn way_name(way: u16) -> &'static str {
    match way {
        way if way == BlockWay::Read as u16 => "read",
        way if way == BlockWay::Write as u16 => "write",
        way if way == BlockWay::Discard as u16 => "discard",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(kind: SampleKind, slot: u16, detail: u32) -> RawSample {
        RawSample {
            time_ns: 0,
            weight: 1,
            stack: 1,
            pid: 1,
            tid: 1,
            cpu: 0,
            name_seq: 0,
            kind,
            slot,
            detail,
            kernel_mode: true,
        }
    }

    #[test]
    fn a_sample_has_the_name_of_its_slot() {
        let events = ["cpu-migrations", "block:block_rq_issue"].map(|name| name.parse().unwrap());
        let mut named = Named::new(&events);
        let labels = Arc::new(LabelSetBuilder::new().set(LabelKey::Task, "7").build());
        let of = |slot| sample(SampleKind::Event, slot, 0);
        let one = named.tell(&of(1), labels.clone());
        assert_eq!((one.get(LabelKey::Event), one.get(LabelKey::Task)), ("block:block_rq_issue", "7"));
        assert!(Arc::ptr_eq(&one, &named.tell(&of(1), labels.clone())));
        assert_eq!(named.tell(&of(0), labels.clone()).get(LabelKey::Event), "cpu-migrations");
        assert!(Arc::ptr_eq(&named.tell(&of(2), labels.clone()), &labels), "a record from nowhere");
        let of_time = sample(SampleKind::Cpu, 0, 0);
        assert!(Arc::ptr_eq(&named.tell(&of_time, labels.clone()), &labels));
        named.forget();
        assert_eq!(*named.tell(&of(1), labels), *one);
    }

    #[test]
    fn a_request_has_its_disk_and_which_way() {
        let disks = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("../../devices/virtio1/block/vda", disks.path().join("254:3")).unwrap();
        assert_eq!(disk(disks.path(), 254 << 20 | 3), "vda");
        assert_eq!(disk(disks.path(), 8 << 20 | 1_048_575), "8:1048575");
        let mut named = Named::default();
        let labels = Arc::new(LabelSet::default());
        let of = |way: BlockWay| sample(SampleKind::BlockIo, way as u16, 4095 << 20 | 7);
        let ways = [BlockWay::Read, BlockWay::Write, BlockWay::Discard, BlockWay::Other];
        for (way, name) in ways.into_iter().zip(["read", "write", "discard", "other"]) {
            assert_eq!(named.tell(&of(way), labels.clone()).get(LabelKey::Event), format!("4095:7 {name}"));
        }
    }
}
