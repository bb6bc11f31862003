//! The places that a view's label sets and stacks get in the part that gathers them.
//!
//! In: places of a view. Out: places here, new ones where the part did not know the text, the set, the frame. What was
//! asked for once is remembered until the view is done.

use super::super::super::error::StoreError;
use super::super::super::facts::{NO_TEXT, Set, StackNode, THREAD_KEYS, TextId};
use super::super::super::pointer::PairMap;
use super::super::super::sums::SlotSum;
use super::super::super::view::View;
use super::super::Part;
use emberscope_model::{Frame, LabelKey};
use std::sync::Arc;

/// Places of a thread's labels that tell tasks apart.
const OF_TASKS: [LabelKey; 3] = [LabelKey::TaskIndex, LabelKey::TaskAttempt, LabelKey::Task];
/// The place of what has none yet.
const NOWHERE: u32 = u32::MAX;

/// Places of a view's things in this part.
pub(super) struct Places {
    /// Tasks stay apart.
    tasks: bool,
    texts: Vec<TextId>,
    processes: Vec<u32>,
    sets: Vec<u32>,
    nodes: Vec<u32>,
}

impl Places {
    /// No place is known yet.
    pub fn of(view: &dyn View, tasks: bool) -> Self {
        let labels = &view.facts().labels;
        Self {
            tasks,
            texts: vec![NO_TEXT; labels.texts.len() + 1],
            processes: vec![NOWHERE; labels.processes.len()],
            sets: vec![NOWHERE; labels.sets.len()],
            nodes: Vec::new(),
        }
    }
}

impl Part {
    /// Stacks that have rows: their places here.
    pub(super) fn gather_stacks(
        &mut self,
        view: &dyn View,
        sums: &[SlotSum],
        places: &mut Places,
    ) -> Result<PairMap<u32, u32>, StoreError> {
        let stacks = view.stacks()?;
        places.nodes.resize(stacks.nodes.len(), NOWHERE);
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

    fn child(&mut self, parent: u32, frame: &Arc<Frame>) -> u32 {
        let frame = match self.names.frame_of(frame) {
            Some(place) => place,
            None => self.push_frame(frame.clone()),
        };
        match self.names.node_of(parent, frame) {
            Some(place) => place,
            None => self.push_node(StackNode { parent, frame }),
        }
    }

    /// The place of a view's label set here, without its task where tasks are summed up.
    pub(super) fn gather_set(&mut self, view: &dyn View, place: u32, places: &mut Places) -> u32 {
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
        let mut set = Set { process, thread: [NO_TEXT; THREAD_KEYS.len()] };
        for ((slot, text), key) in set.thread.iter_mut().zip(from.thread).zip(&THREAD_KEYS) {
            if text == NO_TEXT || !places.tasks && OF_TASKS.contains(key) {
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
