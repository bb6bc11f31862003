//! Adds what a view of another part or block has, by longer windows and without its tasks.
//!
//! In: a view, which label sets of it, a grain. Out: this part with a window for each of the view's that fall into one
//! grain. Counts, weights, what was lost, the ledger and the processes are the view's, summed up.

use super::super::StoreError;
use super::super::facts::{LedgerLine, NO_TEXT, Record, Set, StackNode, TextId, WindowFacts};
use super::super::pointer::PairMap;
use super::super::read::{SlotSum, UNSELECTED, View};
use super::codec::put;
use super::{GroupHead, Part, PartRow, Taken, put_row};
use crate::model::{LabelKey, SampleKind, Selection, WallTime};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Places of a thread's labels that tell tasks apart.
const OF_TASKS: [LabelKey; 3] = [LabelKey::TaskIndex, LabelKey::TaskAttempt, LabelKey::Task];
/// No place yet.
const NOWHERE: u32 = u32::MAX;

/// Places of a view's things in this part.
struct Places {
    texts: Vec<TextId>,
    processes: Vec<u32>,
    sets: Vec<u32>,
    nodes: Vec<u32>,
}

/// A window in the making.
#[derive(Default)]
struct Gathering {
    window: Option<WindowFacts>,
    heads: Vec<GroupHead>,
    rows: Vec<u8>,
    ledger: Vec<LedgerLine>,
}

impl Part {
    /// Adds what a view has of a selection. Windows that begin in one grain become one.
    pub fn gather(
        &mut self,
        view: &dyn View,
        selection: &Selection,
        grain: Duration,
    ) -> Result<(), StoreError> {
        let facts = view.facts();
        let selected = facts.labels.selected(selection);
        let is = |set: u32| selected.get(set as usize).copied().unwrap_or(false);
        let mut places = Places {
            texts: vec![NO_TEXT; facts.labels.texts.len() + 1],
            processes: vec![NOWHERE; facts.labels.processes.len()],
            sets: vec![NOWHERE; facts.labels.sets.len()],
            nodes: Vec::new(),
        };
        let mut of_window = Vec::with_capacity(facts.windows.len());
        let mut windows: BTreeMap<WallTime, Gathering> = BTreeMap::new();
        let mut records: HashMap<u32, u32> = HashMap::new();
        for window in &facts.windows {
            let begin = window.range.from.floor(grain);
            of_window.push(begin);
            let mut seen = BTreeSet::new();
            for place in &window.records {
                let Some(record) = facts.records.get(*place as usize).filter(|record| is(record.set)) else {
                    continue;
                };
                let known = records.get(place).copied();
                let known = known.unwrap_or_else(|| {
                    let set = self.gather_set(view, record.set, &mut places);
                    self.push_record(Record { set, process: record.process.clone() })
                });
                records.insert(*place, known);
                seen.insert(known);
            }
            let into = windows.entry(begin).or_default();
            match &mut into.window {
                Some(whole) => {
                    whole.range.cover(&window.range);
                    whole.partial |= window.partial;
                    whole.lost.add(&window.lost);
                    seen.extend(whole.records.iter().copied());
                    whole.records = seen.into_iter().collect();
                }
                None => {
                    let records = seen.into_iter().collect();
                    into.window = Some(WindowFacts { records, ..window.clone() });
                }
            }
        }
        self.gather_rows(view, &is, &of_window, &mut places, &mut windows)?;
        self.gather_ledger(view, &is, &of_window, &mut places, &mut windows)?;
        for (_, gathering) in windows {
            let Gathering { window: Some(window), heads, rows, mut ledger } = gathering else { continue };
            let number = self.facts.windows.len() as u32;
            ledger.iter_mut().for_each(|line| line.window = number);
            // What was written just now can be read.
            let pushed = self.push(Taken { window, heads, rows, ledger });
            debug_assert!(pushed.is_ok());
        }
        Ok(())
    }

    fn gather_rows(
        &mut self,
        view: &dyn View,
        is: &impl Fn(u32) -> bool,
        of_window: &[WallTime],
        places: &mut Places,
        windows: &mut BTreeMap<WallTime, Gathering>,
    ) -> Result<(), StoreError> {
        let facts = view.facts();
        // Slots in the order in which windows and groups are written.
        let mut slots: BTreeMap<(WallTime, u32, SampleKind), (u32, u64)> = BTreeMap::new();
        let mut keys = Vec::with_capacity(facts.groups.len());
        for group in facts.groups.iter() {
            let begin = of_window.get(group.window as usize).copied();
            let key = begin.filter(|_| is(group.set)).map(|begin| {
                let set = self.gather_set(view, group.set, places);
                (begin, set, group.kind)
            });
            if let Some(key) = key {
                slots.entry(key).or_insert((0, group.period));
            }
            keys.push(key);
        }
        for (number, (slot, _)) in slots.values_mut().enumerate() {
            *slot = number as u32;
        }
        if slots.is_empty() {
            return Ok(());
        }
        let slot = |key: Option<(WallTime, u32, SampleKind)>| {
            key.and_then(|key| slots.get(&key)).map_or(UNSELECTED, |(slot, _)| *slot)
        };
        let of_group: Vec<u32> = keys.into_iter().map(slot).collect();
        let sums = view.sums(&of_group, slots.len())?.into_sorted();
        let stacks = self.gather_stacks(view, &sums, places)?;
        let mut sums = sums.as_slice();
        for ((begin, set, kind), (slot, period)) in slots {
            let own = sums.partition_point(|(of, ..)| *of == slot);
            let (rows, rest) = sums.split_at_checked(own).unwrap_or_default();
            sums = rest;
            let mut rows: Vec<PartRow> = (rows.iter())
                .filter_map(|(_, stack, count, weight)| {
                    let stack = stacks.get(stack).copied()?;
                    Some(PartRow { stack, count: *count, weight: *weight })
                })
                .collect();
            rows.sort_unstable_by_key(|row| row.stack);
            let Some(into) = windows.get_mut(&begin).filter(|_| !rows.is_empty()) else { continue };
            into.heads.push(GroupHead { set, kind, period, rows: rows.len() as u32 });
            let mut before = 0;
            for row in &rows {
                put(&mut into.rows, u64::from(row.stack - before));
                before = row.stack;
                put_row(&mut into.rows, row, period);
            }
        }
        Ok(())
    }

    /// Stacks that have rows: their places here.
    fn gather_stacks(
        &mut self,
        view: &dyn View,
        sums: &[SlotSum],
        places: &mut Places,
    ) -> Result<PairMap<u32, u32>, StoreError> {
        let stacks = view.stacks()?;
        places.nodes = vec![NOWHERE; stacks.nodes.len()];
        if let Some(root) = places.nodes.first_mut() {
            *root = 0;
        }
        let mut of_stack: PairMap<u32, u32> = PairMap::default();
        let mut way = Vec::new();
        for (_, stack, ..) in sums {
            if of_stack.contains_key(stack) {
                continue;
            }
            let Some(line) = stacks.stacks.get(*stack as usize) else { continue };
            let mut at = line.node;
            way.clear();
            while places.nodes.get(at as usize) == Some(&NOWHERE) {
                way.push(at);
                at = stacks.nodes.get(at as usize).map_or(0, |node| node.parent);
            }
            let mut here = places.nodes.get(at as usize).copied().unwrap_or_default();
            while let Some(node) = way.pop() {
                let Some(frame) =
                    stacks.nodes.get(node as usize).and_then(|n| stacks.frames.get(n.frame as usize))
                else {
                    continue;
                };
                here = self.child(here, frame);
                if let Some(place) = places.nodes.get_mut(node as usize) {
                    *place = here;
                }
            }
            let place = match self.names.stack_of(here, line.end) {
                Some(place) => place,
                None => self.push_stack(here, line.end),
            };
            of_stack.insert(*stack, place);
        }
        Ok(of_stack)
    }

    fn child(&mut self, parent: u32, frame: &std::sync::Arc<crate::model::Frame>) -> u32 {
        let frame = match self.names.frame_of(frame) {
            Some(place) => place,
            None => self.push_frame(frame.clone()),
        };
        match self.names.node_of(parent, frame) {
            Some(place) => place,
            None => self.push_node(StackNode { parent, frame }),
        }
    }

    fn gather_ledger(
        &mut self,
        view: &dyn View,
        is: &impl Fn(u32) -> bool,
        of_window: &[WallTime],
        places: &mut Places,
        windows: &mut BTreeMap<WallTime, Gathering>,
    ) -> Result<(), StoreError> {
        let lines = view.ledger()?;
        let mut sums: BTreeMap<(WallTime, u32), LedgerLine> = BTreeMap::new();
        for line in lines.iter().filter(|line| is(line.set)) {
            let Some(begin) = of_window.get(line.window as usize) else { continue };
            let set = self.gather_set(view, line.set, places);
            match sums.get_mut(&(*begin, set)) {
                Some(sum) => {
                    sum.sums.add(&line.sums);
                    sum.seen.cover(&line.seen);
                }
                None => {
                    sums.insert((*begin, set), LedgerLine { set, ..*line });
                }
            }
        }
        for ((begin, _), line) in sums {
            if let Some(into) = windows.get_mut(&begin) {
                into.ledger.push(line);
            }
        }
        Ok(())
    }

    /// The place of a view's label set here, without its task.
    fn gather_set(&mut self, view: &dyn View, place: u32, places: &mut Places) -> u32 {
        let labels = &view.facts().labels;
        if let Some(known) = places.sets.get(place as usize).filter(|known| **known != NOWHERE) {
            return *known;
        }
        let Some(from) = labels.sets.get(place as usize) else { return 0 };
        let process = match places.processes.get(from.process as usize) {
            Some(known) if *known != NOWHERE => *known,
            _ => {
                let process = self.process(&labels.process(from.process));
                if let Some(slot) = places.processes.get_mut(from.process as usize) {
                    *slot = process;
                }
                process
            }
        };
        let mut set = Set { process, thread: [NO_TEXT; super::super::facts::THREAD_KEYS.len()] };
        let keys = super::super::facts::THREAD_KEYS.iter();
        for ((slot, text), key) in set.thread.iter_mut().zip(from.thread).zip(keys) {
            if OF_TASKS.contains(key) || text == NO_TEXT {
                continue;
            }
            let known = places.texts.get(text as usize).copied().unwrap_or(NO_TEXT);
            *slot = if known != NO_TEXT {
                known
            } else {
                labels.shared(text).map_or(NO_TEXT, |text| self.text(text))
            };
            if let Some(known) = places.texts.get_mut(text as usize) {
                *known = *slot;
            }
        }
        let here = match self.names.set_of(&set) {
            Some(place) => place,
            None => self.push_set(set),
        };
        if let Some(known) = places.sets.get_mut(place as usize) {
            *known = here;
        }
        here
    }
}
