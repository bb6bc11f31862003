//! The call tree of all stacks of a part or block, for one [`Detail`]: made once, then only summed up.
//!
//! In: frames, nodes and stacks; then sums by slot and stack. Out: a [`Flat`] tree of the nodes on the way to these
//! stacks, each slot's under the prefix frames of its group. A slot costs what its stacks have of nodes.

mod growing;

use super::{Flat, Symbol, hands_on, kind, preorder, told};
use crate::error::StoreError;
use crate::facts::{StackNode, Stacks};
use crate::pointer::PairMap;
use crate::sums::SlotSum;
use emberscope_model::{Detail, FrameKind};
use growing::Growing;
use std::sync::Arc;

/// A symbol that is a prefix frame's.
const PREFIX: u32 = 1 << 31;

/// Nodes that are not those of the stacks: where frames become one, so do their nodes.
#[derive(Debug)]
struct Own {
    /// Parent and symbol, in preorder, callees by symbol.
    nodes: Vec<(u32, u32)>,
    /// The node of each of the stacks' nodes.
    of_node: Vec<u32>,
}

/// A tree without sums.
#[derive(Debug)]
pub(crate) struct Shape {
    detail: Detail,
    /// What each symbol tells frames apart by.
    kinds: Vec<FrameKind>,
    symbol_of_frame: Vec<u32>,
    /// None: the nodes are the stacks' own.
    own: Option<Own>,
}

impl Shape {
    /// The shape of all stacks.
    pub fn of(stacks: &Stacks, detail: Detail) -> Self {
        let symbols = stacks.frames.iter().map(|frame| {
            let shown = told(frame, detail);
            Symbol { kind: kind(&shown, detail), shown }
        });
        let mut symbols: Vec<(u32, Symbol)> = (0..).zip(symbols).collect();
        symbols.sort_by(|(_, a), (_, b)| a.order(b));
        let mut symbol_of_frame = vec![0; symbols.len()];
        let mut kinds = Vec::new();
        for same in symbols.chunk_by(|(_, a), (_, b)| a.order(b).is_eq()) {
            for (frame, _) in same {
                if let Some(slot) = symbol_of_frame.get_mut(*frame as usize) {
                    *slot = kinds.len() as u32;
                }
            }
            kinds.extend(same.first().map(|(_, symbol)| symbol.kind));
        }
        let mut shape = Self { detail, kinds, symbol_of_frame, own: None };
        if !shape.is_ordered(stacks) {
            shape.own = Some(shape.order(stacks));
        }
        shape
    }

    /// Bytes of memory that the shape takes, estimated.
    pub fn bytes(&self) -> usize {
        let own = self.own.as_ref().map_or(0, |own| own.nodes.len() * 8 + own.of_node.len() * 4);
        own + self.symbol_of_frame.len() * 4 + self.kinds.len()
    }

    /// The detail that the shape is for.
    pub fn detail(&self) -> Detail {
        self.detail
    }

    fn symbol(&self, frame: u32) -> u32 {
        self.symbol_of_frame.get(frame as usize).copied().unwrap_or_default()
    }

    /// Whether the stacks' nodes are in preorder, with distinct symbols going up under each parent.
    fn is_ordered(&self, stacks: &Stacks) -> bool {
        // From the root to the last node: its place, and the symbol of its last callee, plus one.
        let mut way: Vec<(u32, u32)> = vec![(0, 0)];
        (0..).zip(&stacks.nodes).skip(1).all(|(place, node)| {
            if self.is_handed_on(stacks, node) {
                return false;
            }
            while way.last().is_some_and(|(at, _)| *at != node.parent) {
                way.pop();
            }
            let Some((_, last)) = way.last_mut() else { return false };
            let symbol = self.symbol(node.frame) + 1;
            let goes_up = symbol > *last;
            *last = symbol;
            way.push((place, 0));
            goes_up
        })
    }

    /// Whether a node is the method that its caller hands on to.
    fn is_handed_on(&self, stacks: &Stacks, node: &StackNode) -> bool {
        let Some(caller) = stacks.nodes.get(node.parent as usize).filter(|_| node.parent != 0) else {
            return false;
        };
        self.symbol(caller.frame) == self.symbol(node.frame)
            && stacks
                .frames
                .get(caller.frame as usize)
                .zip(stacks.frames.get(node.frame as usize))
                .is_some_and(|(caller, callee)| hands_on(caller, callee, self.detail))
    }

    fn order(&self, stacks: &Stacks) -> Own {
        let mut nodes: Vec<(u32, u32)> = vec![(0, 0)];
        let mut of_node: Vec<u32> = vec![0];
        let mut known: PairMap<(u32, u32), u32> = PairMap::default();
        // Those that are one with their caller: of a recursion through a bridge each round stays.
        let mut one = vec![false; stacks.nodes.len()];
        for (at, node) in stacks.nodes.iter().enumerate().skip(1) {
            let parent = of_node.get(node.parent as usize).copied().unwrap_or_default();
            if one.get(node.parent as usize) == Some(&false) && self.is_handed_on(stacks, node) {
                if let Some(slot) = one.get_mut(at) {
                    *slot = true;
                }
                of_node.push(parent);
                continue;
            }
            let key = (parent, self.symbol(node.frame));
            let place = *known.entry(key).or_insert_with(|| {
                nodes.push(key);
                nodes.len() as u32 - 1
            });
            of_node.push(place);
        }
        drop(known);
        let order = preorder(&nodes);
        let mut place_of = vec![0_u32; nodes.len()];
        for (new, old) in order.iter().enumerate() {
            if let Some(place) = place_of.get_mut(*old as usize) {
                *place = new as u32;
            }
        }
        let place = |old: u32| place_of.get(old as usize).copied().unwrap_or_default();
        let moved = order.iter().filter_map(|old| nodes.get(*old as usize));
        Own {
            nodes: moved.map(|(parent, symbol)| (place(*parent), *symbol)).collect(),
            of_node: of_node.into_iter().map(place).collect(),
        }
    }

    /// Parent and symbol of a node.
    fn node(&self, stacks: &Stacks, at: u32) -> (u32, u32) {
        let node = match &self.own {
            Some(own) => own.nodes.get(at as usize).copied(),
            None => stacks.nodes.get(at as usize).map(|node| (node.parent, self.symbol(node.frame))),
        };
        node.unwrap_or_default()
    }

    /// The tree of some sums. `prefixes` are the prefix frames of each slot, no two of them equal.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: the tree has more than `max_nodes` nodes, the root counted in.
    pub fn grow(
        &self,
        stacks: &Stacks,
        sums: &[SlotSum],
        prefixes: &[Vec<Arc<str>>],
        max_nodes: usize,
    ) -> Result<Flat, StoreError> {
        let mut growing = Growing::new(self, stacks, max_nodes);
        let mut slots: Vec<&[SlotSum]> = sums.chunk_by(|a, b| a.0 == b.0).collect();
        let prefix = |slot: &[SlotSum]| prefixes.get(slot.first()?.0 as usize);
        slots.sort_by(|a, b| prefix(a).cmp(&prefix(b)));
        let mut before: &[Arc<str>] = &[];
        let mut texts: Vec<Arc<str>> = Vec::new();
        for slot in slots {
            let prefix = prefix(slot).map_or(&[] as &[_], |prefix| prefix);
            let same = before.iter().zip(prefix).take_while(|(a, b)| a == b).count();
            for (depth, text) in prefix.iter().enumerate().skip(same) {
                texts.push(text.clone());
                growing.push(depth as u32 + 1, PREFIX | (texts.len() as u32 - 1))?;
            }
            before = prefix;
            growing.slot(slot, prefix.len() as u32)?;
        }
        Ok(growing.finish(texts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::StackLine;
    use emberscope_model::{Frame, StackEnd};

    /// Stacks of (name, signature) from the root, each seen as often as is said, as folded lines.
    fn folded(all: &[(&[(&str, &str)], u64)], detail: Detail) -> Vec<String> {
        let mut stacks = Stacks::default();
        let mut sums = Vec::new();
        for (stack, (path, count)) in (0..).zip(all) {
            let mut parent = 0;
            for (name, signature) in *path {
                let signature = Some((*signature).into()).filter(|_| !signature.is_empty());
                let frame = Frame { signature, ..Frame::new(FrameKind::JavaCompiled, *name, "") };
                let place = stacks.frames.iter().position(|known| **known == frame);
                let frame = place.unwrap_or_else(|| {
                    stacks.frames.push(Arc::new(frame));
                    stacks.frames.len() - 1
                }) as u32;
                let node = StackNode { parent, frame };
                // Node 0 is the root, whatever it says.
                let place = stacks.nodes.iter().skip(1).position(|known| *known == node).map(|at| at + 1);
                parent = place.unwrap_or_else(|| {
                    stacks.nodes.push(node);
                    stacks.nodes.len() - 1
                }) as u32;
            }
            let depth = path.len() as u32;
            let line = StackLine {
                node: parent,
                end: StackEnd::Root,
                depth,
                approximate: false,
                unnamed: Box::new([]),
            };
            stacks.stacks.push(line);
            sums.push((0, stack, *count, *count));
        }
        let tree = Shape::of(&stacks, detail).grow(&stacks, &sums, &[Vec::new()], 1000).unwrap().finish();
        let mut lines = Vec::new();
        for (place, node) in tree.nodes.iter().enumerate().filter(|(_, node)| node.self_count > 0) {
            let (mut at, mut path) = (place, Vec::new());
            while at != 0 {
                path.push(tree.nodes[at].frame.name.to_string());
                at = tree.nodes[at].parent as usize;
            }
            path.reverse();
            lines.push(format!("{} {}", path.join(";"), node.self_count));
        }
        lines
    }

    #[test]
    fn calls_that_only_hand_on_are_one_with_what_they_call() {
        let (bridge, real) =
            (("a.Map.runTask", "(TaskContext)Object"), ("a.Map.runTask", "(TaskContext)Status"));
        let (forward, body) = (("a.Seq.foreach$", "(Seq, F)void"), ("a.Seq.foreach", "(F)void"));
        let (boxed, lambda) =
            (("a.B.$anonfun$f$1$adapted", "(Object)Object"), ("a.B.$anonfun$f$1", "(int)int"));
        let all: &[(&[(&str, &str)], u64)] = &[
            (&[bridge, real, ("a.leaf", "()void")], 5),
            (&[bridge], 1),
            (&[bridge, real], 2),
            (&[forward, body, boxed, lambda], 3),
            // A recursion, of a method and through a bridge: its depth stays.
            (&[("a.fib", "(int)int"), ("a.fib", "(int)int")], 4),
            (&[real, bridge, real, bridge, real], 6),
            // Not of scalac's making, or not a method of Java.
            (&[("a.B.$deserializeLambda$", "()Object"), ("a.C.$init$", "()void")], 7),
        ];
        assert_eq!(
            folded(all, Detail::default()),
            [
                "a.B.$deserializeLambda$;a.C.$init$ 7",
                "a.Map.runTask 3",
                "a.Map.runTask;a.Map.runTask;a.Map.runTask 6",
                "a.Map.runTask;a.leaf 5",
                "a.Seq.foreach;a.B.$anonfun$f$1 3",
                "a.fib;a.fib 4",
            ]
        );
        let apart = folded(all, Detail { kinds: true, ..Detail::default() });
        assert!(apart.contains(&"a.Map.runTask;a.Map.runTask;a.leaf 5".to_owned()), "{apart:?}");
        let scala = "a.Seq.foreach$;a.Seq.foreach;a.B.$anonfun$f$1$adapted;a.B.$anonfun$f$1 3";
        assert!(apart.contains(&scala.to_owned()), "{apart:?}");
    }

    #[test]
    fn without_signatures_nothing_is_known_to_hand_on() {
        let all: &[(&[(&str, &str)], u64)] = &[(&[("a.f", ""), ("a.f", "()void")], 1)];
        assert_eq!(folded(all, Detail::default()), ["a.f;a.f 1"]);
    }
}
