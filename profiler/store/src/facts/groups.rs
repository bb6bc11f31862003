//! Groups by column, each number in as few bytes as its column needs: a node may have a hundred thousand an hour.

use super::{Group, Packed};
use emberscope_model::SampleKind;

/// All groups of a part or block, by place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    windows: Packed,
    sets: Packed,
    /// Places in [`SampleKind::ALL`].
    kinds: Packed,
    periods: Packed,
    counts: Packed,
    /// What the weights are beyond count * period, modulo 2^64.
    rests: Packed,
    frames: Packed,
    approximate: Packed,
}

impl Groups {
    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// Adds a group, in the place after the last.
    pub fn push(&mut self, group: Group) {
        let kind = SampleKind::ALL.iter().position(|kind| *kind == group.kind).unwrap_or_default();
        self.windows.push(group.window.into());
        self.sets.push(group.set.into());
        self.kinds.push(kind as u64);
        self.periods.push(group.period);
        self.counts.push(group.count);
        self.rests.push(group.weight.wrapping_sub(group.count.wrapping_mul(group.period)));
        self.frames.push(group.frames);
        self.approximate.push(group.approximate);
    }

    /// The group at a place.
    pub fn get(&self, place: usize) -> Option<Group> {
        (place < self.len()).then(|| {
            let (period, count) = (self.periods.get(place), self.counts.get(place));
            Group {
                window: self.window(place),
                set: self.set(place),
                kind: self.kind(place),
                period,
                count,
                weight: count.wrapping_mul(period).wrapping_add(self.rests.get(place)),
                frames: self.frames.get(place),
                approximate: self.approximate.get(place),
            }
        })
    }

    /// A group's window: its place in [`super::Facts::windows`].
    pub fn window(&self, place: usize) -> u32 {
        self.windows.get(place) as u32
    }

    /// A group's label set: its place in [`super::Labels::sets`].
    pub fn set(&self, place: usize) -> u32 {
        self.sets.get(place) as u32
    }

    /// What a group's samples are of.
    pub fn kind(&self, place: usize) -> SampleKind {
        SampleKind::ALL.get(self.kinds.get(place) as usize).copied().unwrap_or(SampleKind::Cpu)
    }

    /// What most samples of a group weigh; 0 where there is no such group.
    pub fn period(&self, place: usize) -> u64 {
        self.periods.get(place)
    }

    /// All groups, in the order of places.
    pub fn iter(&self) -> impl Iterator<Item = Group> {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    /// Bytes of memory that the groups take.
    pub fn bytes(&self) -> usize {
        let Self { windows, sets, kinds, periods, counts, rests, frames, approximate } = self;
        let all = [windows, sets, kinds, periods, counts, rests, frames, approximate];
        all.into_iter().map(Packed::bytes).sum()
    }
}

impl<'a> IntoIterator for &'a Groups {
    type Item = Group;
    type IntoIter = Box<dyn Iterator<Item = Group> + 'a>;
    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl FromIterator<Group> for Groups {
    fn from_iter<I: IntoIterator<Item = Group>>(all: I) -> Self {
        let mut groups = Self::default();
        all.into_iter().for_each(|group| groups.push(group));
        let Self { windows, sets, kinds, periods, counts, rests, frames, approximate } = &mut groups;
        for column in [windows, sets, kinds, periods, counts, rests, frames, approximate] {
            column.shrink();
        }
        groups
    }
}
