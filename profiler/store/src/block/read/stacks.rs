//! Reads a block's frames, tree and stacks.
//!
//! Every reference is checked here, so that what uses them need not.

use super::super::super::facts::{StackNode, Stacks};
use super::super::table::Room;
use super::super::*;
use super::pool;
use super::tables::{Texts, slugs, unknown};
use emberscope_model::{Frame, FrameKind, StackEnd, UnknownReason};
use std::sync::Arc;

/// Frames of a stack. Samples have 512; a profile that was imported may have more.
const MAX_DEPTH: usize = 8192;

/// Reads a block's frames, tree and stacks.
pub(super) fn stacks(block: &Block, room: &Room) -> Result<Stacks, BlockProblem> {
    let mut stacks = Stacks { frames: frames(block, room)?, ..Stacks::default() };
    let table = block.table(NODES, room)?;
    let ups = table.all_ints("up")?;
    let frames = table.all_places("frame", stacks.frames.len())?;
    // The nodes from the root to the last one.
    let mut way: Vec<u32> = vec![0];
    stacks.nodes.reserve_exact(ups.len());
    for (up, frame) in ups.into_iter().zip(frames) {
        let keep = way.len().checked_sub(up as usize).filter(|keep| *keep > 0);
        let keep = keep.ok_or_else(|| BlockProblem::says(NODES, "goes up beyond its root".to_owned()))?;
        way.truncate(keep);
        let parent = way.last().copied().unwrap_or(0);
        if way.len() > MAX_DEPTH {
            return Err(BlockProblem::says(NODES, format!("has stacks of more than {MAX_DEPTH} frames")));
        }
        way.push(stacks.nodes.len() as u32);
        stacks.nodes.push(StackNode { parent, frame });
    }
    let table = block.table(STACKS, room)?;
    let nodes = table.all_places("node", stacks.nodes.len())?;
    let ends = slugs(&table, "end", StackEnd::ALL, StackEnd::slug)?;
    stacks.stacks = nodes.into_iter().zip(ends).map(|(node, end)| stacks.line(node, end)).collect();
    Ok(stacks)
}

fn frames(block: &Block, room: &Room) -> Result<Vec<Arc<Frame>>, BlockProblem> {
    let table = block.table(FRAMES, room)?;
    let kinds = slugs(&table, "kind", FrameKind::ALL, FrameKind::slug)?;
    let mut texts = Texts::default();
    let mut names: Vec<Arc<str>> = Vec::with_capacity(kinds.len());
    table.all_texts("name", |name| names.push(texts.shared(name.unwrap_or_default())))?;
    let mut modules: Vec<Arc<str>> = Vec::with_capacity(kinds.len());
    table.all_texts("module", |module| modules.push(texts.shared(module.unwrap_or_default())))?;
    let mut signatures: Vec<Option<Arc<str>>> = Vec::with_capacity(kinds.len());
    table.all_texts("signature", |signature| signatures.push(signature.map(|text| texts.shared(text))))?;
    let lines = table.all_ints("line")?;
    let approximate = table.all_bools("approximate")?;
    let (mut reasons, mut problem) = (Vec::with_capacity(kinds.len()), None);
    table.all_texts("unknown", |slug| {
        let reason = slug.map(|slug| UnknownReason::from_slug(slug).ok_or_else(|| unknown(FRAMES, slug)));
        match reason.transpose() {
            Ok(reason) => reasons.push(reason),
            Err(error) => problem = Some(error),
        }
    })?;
    if let Some(problem) = problem {
        return Err(problem);
    }
    let rest = lines.into_iter().zip(approximate).zip(reasons);
    let frames = kinds.into_iter().zip(names).zip(modules.into_iter().zip(signatures)).zip(rest);
    let frame = |(((kind, name), (module, signature)), ((line, approximate), unknown))| Frame {
        kind,
        name,
        module,
        signature,
        line,
        approximate,
        unknown,
    };
    Ok(pool::shared(frames.map(frame)))
}
