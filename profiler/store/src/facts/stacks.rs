//! Stacks as a prefix tree over frames.
//!
//! A node is a frame under its caller; a stack is the node of its leaf and how its walk ended. A caller
//! always stands before what it calls, so one pass forward walks from the root and one pass backward
//! sums up to it.

use emberscope_model::{Frame, StackEnd, UnknownReason};
use std::sync::Arc;

/// A frame under its caller. Node 0 is the root and has no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StackNode {
    pub parent: u32,
    pub frame: u32,
}

/// A stack, and what the quality of an answer counts of it.
#[derive(Clone, Debug)]
pub(crate) struct StackLine {
    pub node: u32,
    pub end: StackEnd,
    /// How many frames the stack has.
    pub depth: u32,
    pub approximate: bool,
    pub unnamed: Box<[(UnknownReason, u32)]>,
}

/// All stacks of a part or block.
#[derive(Debug)]
pub(crate) struct Stacks {
    pub frames: Vec<Arc<Frame>>,
    pub nodes: Vec<StackNode>,
    pub stacks: Vec<StackLine>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self { frames: Vec::new(), nodes: vec![StackNode { parent: 0, frame: 0 }], stacks: Vec::new() }
    }
}

impl Stacks {
    /// Bytes that they take, estimated; a frame that others hold too is theirs in part, module and signature are
    /// shared by many.
    pub fn bytes(&self) -> usize {
        let frame = |frame: &Arc<Frame>| {
            let holders = Arc::strong_count(frame).saturating_sub(1).max(1);
            size_of::<Arc<Frame>>() + (size_of::<Frame>() + frame.name.len() + 80) / holders
        };
        self.frames.iter().map(frame).sum::<usize>()
            + self.nodes.len() * size_of::<StackNode>()
            + self.stacks.len() * size_of::<StackLine>()
    }

    /// A stack's line, with what its frames say of it.
    pub fn line(&self, node: u32, end: StackEnd) -> StackLine {
        let mut line = StackLine { node, end, depth: 0, approximate: false, unnamed: Box::default() };
        let mut unnamed: Vec<(UnknownReason, u32)> = Vec::new();
        let mut at = node;
        while at != 0 {
            let Some(StackNode { parent, frame }) = self.nodes.get(at as usize).copied() else { break };
            line.depth += 1;
            if let Some(frame) = self.frames.get(frame as usize) {
                line.approximate |= frame.approximate;
                if let Some(reason) = frame.unknown {
                    match unnamed.iter_mut().find(|(known, _)| *known == reason) {
                        Some((_, count)) => *count += 1,
                        None => unnamed.push((reason, 1)),
                    }
                }
            }
            at = parent;
        }
        line.unnamed = unnamed.into();
        line
    }
}
