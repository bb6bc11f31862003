//! The order in which a block keeps things, which is what makes it small and quick.
//!
//! In: a part. Out: new places for its frames, nodes, stacks, label sets and groups.
//! - Frames by name; nodes in preorder, children by frame; stacks by node: what is alike is side by side.
//! - Label sets of one *scope* (the same program, stage and class of thread, whichever process and task)
//!   are side by side, within it those of one *lane* (a scope's part in one process). Their stacks are alike.
//! - Groups by set and window. A scope of very many rows is cut into several.

use super::super::facts::{NO_TEXT, TextId};
use super::super::part::Part;
use emberscope_model::{Frame, LabelKey, StackEnd};
use std::collections::HashMap;

/// Rows after which a scope is cut: what is sorted at once, some 24 MB.
pub(super) const MAX_SCOPE_ROWS: u64 = 1 << 20;
/// The place of what is not in the block.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A scope's part in one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub scope: u32,
    /// Rows of the lane's groups.
    pub rows: u64,
    /// What most samples of the lane weigh.
    pub period: u64,
    /// How many sums by stack the lane has; 0: none, or not known yet.
    pub merged: u64,
}

/// The places that a part's things get in its block.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Old places of frames, in the new order; so for the others.
    pub frames: Vec<u32>,
    pub nodes: Vec<u32>,
    pub stacks: Vec<u32>,
    pub sets: Vec<u32>,
    pub groups: Vec<u32>,
    /// New place by old place.
    pub frame_of: Vec<u32>,
    pub node_of: Vec<u32>,
    pub stack_of: Vec<u32>,
    pub set_of: Vec<u32>,
    pub group_of: Vec<u32>,
    /// Of each group, in the new order.
    pub lane_of: Vec<u32>,
    pub lanes: Vec<Lane>,
    /// Levels to go up from the node before to the parent, by node in the new order.
    pub ups: Vec<u32>,
}

fn inverse(order: &[u32], length: usize) -> Vec<u32> {
    let mut places = vec![NOWHERE; length];
    for (new, old) in order.iter().enumerate() {
        if let Some(place) = places.get_mut(*old as usize) {
            *place = new as u32;
        }
    }
    places
}

fn at(list: &[u32], place: u32) -> u32 {
    list.get(place as usize).copied().unwrap_or(NOWHERE)
}

impl Order {
    /// The order of a part.
    pub fn of(part: &Part) -> Self {
        let mut order = Self::default();
        order.stacks(part);
        order.sets(part);
        order.groups(part);
        order
    }

    fn stacks(&mut self, part: &Part) {
        let stacks = &part.stacks;
        let key = |frame: &Frame| {
            let Frame { kind, name, module, signature, line, approximate, unknown } = frame.clone();
            (name, kind, module, signature, line, approximate, unknown)
        };
        self.frames = (0..stacks.frames.len() as u32).collect();
        self.frames.sort_by_cached_key(|place| stacks.frames.get(*place as usize).map(|frame| key(frame)));
        self.frame_of = inverse(&self.frames, stacks.frames.len());
        // Children of a node lie side by side, the last first: a stack pops the first.
        let mut children: Vec<u32> = (1..stacks.nodes.len() as u32).collect();
        let node = |place: u32| stacks.nodes.get(place as usize).copied();
        let parent = |place: u32| node(place).map_or(0, |node| node.parent);
        children.sort_unstable_by_key(|place| {
            node(*place).map(|node| (node.parent, std::cmp::Reverse(at(&self.frame_of, node.frame))))
        });
        let mut depths = vec![0_u32; stacks.nodes.len()];
        let (mut pending, mut before) = (vec![0_u32], 0_u32);
        while let Some(place) = pending.pop() {
            let depth = if place == 0 { 0 } else { depths.get(parent(place) as usize).map_or(0, |d| d + 1) };
            if let Some(slot) = depths.get_mut(place as usize) {
                *slot = depth;
            }
            self.nodes.push(place);
            self.ups.push(if place == 0 { 0 } else { before + 1 - depth });
            before = depth;
            let first = children.partition_point(|child| parent(*child) < place);
            let own = children.get(first..).unwrap_or_default();
            pending.extend(own.iter().take_while(|child| parent(**child) == place));
        }
        self.node_of = inverse(&self.nodes, stacks.nodes.len());
        self.stacks = (0..stacks.stacks.len() as u32).collect();
        let end = |end: StackEnd| end as u8;
        self.stacks.sort_by_key(|place| {
            stacks.stacks.get(*place as usize).map(|line| (at(&self.node_of, line.node), end(line.end)))
        });
        self.stack_of = inverse(&self.stacks, stacks.stacks.len());
    }

    fn sets(&mut self, part: &Part) {
        let labels = &part.facts.labels;
        // A task's id tells its order, its text does not: 9 comes before 10.
        let natural = |text: TextId| (labels.text(text).len(), labels.text(text));
        let scope = |set: u32| scope(part, set).map(natural);
        let key = |place: &u32| {
            let set = labels.sets.get(*place as usize)?;
            let forgotten = labels.forgotten.get(*place as usize).copied().unwrap_or(false);
            Some((forgotten, scope(*place), set.process, set.thread.map(natural)))
        };
        self.sets = (0..labels.sets.len() as u32).collect();
        self.sets.sort_by_cached_key(key);
        self.sets.retain(|set| !labels.forgotten.get(*set as usize).copied().unwrap_or(false));
        self.set_of = inverse(&self.sets, labels.sets.len());
    }

    fn groups(&mut self, part: &Part) {
        let facts = &part.facts;
        let group = |place: u32| facts.groups.get(place as usize);
        self.groups = (0..facts.groups.len() as u32).collect();
        self.groups.retain(|place| group(*place).is_some_and(|g| at(&self.set_of, g.set) != NOWHERE));
        self.groups.sort_by_key(|place| {
            group(*place).map(|group| (group.kind, at(&self.set_of, group.set), group.window))
        });
        self.group_of = inverse(&self.groups, facts.groups.len());
        let (mut scopes, mut rows) = (0_u32, 0_u64);
        let mut last = None;
        let mut ids: HashMap<u32, [TextId; SCOPE_KEYS.len()]> = HashMap::new();
        for place in &self.groups {
            let Some(group) = group(*place) else { continue };
            let of = *ids.entry(group.set).or_insert_with(|| scope(part, group.set));
            let scope = (group.kind, of);
            let process = facts.labels.sets.get(group.set as usize).map_or(0, |set| set.process);
            let own = u64::from(part.row_count(*place));
            if last.is_some_and(|(known, _)| known != scope) || rows + own > MAX_SCOPE_ROWS && rows > 0 {
                (scopes, rows, last) = (scopes + 1, 0, None);
            }
            rows += own;
            if last != Some((scope, process)) {
                self.lanes.push(Lane { scope: scopes, rows: 0, period: group.period, merged: 0 });
                last = Some((scope, process));
            }
            if let Some(lane) = self.lanes.last_mut() {
                lane.rows += own;
            }
            self.lane_of.push(self.lanes.len() as u32 - 1);
        }
    }
}

/// Labels of which one value is one scope.
const SCOPE_KEYS: [LabelKey; 8] = [
    LabelKey::ServiceName,
    LabelKey::App,
    LabelKey::User,
    LabelKey::Role,
    LabelKey::Process,
    LabelKey::Stage,
    LabelKey::StageAttempt,
    LabelKey::ThreadClass,
];

fn scope(part: &Part, set: u32) -> [TextId; SCOPE_KEYS.len()] {
    let mut values = [NO_TEXT; SCOPE_KEYS.len()];
    for (value, key) in values.iter_mut().zip(SCOPE_KEYS) {
        *value = part.facts.labels.value(set, key);
    }
    values
}
