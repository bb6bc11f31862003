//! What compiled code's own shape tells of the places between debug info: instructions and PcDescs in, the
//! scope that is nearest to an address within its loop out.
//!
//! C2 writes PcDescs at polls, traps and calls that are safepoints only (unless DebugNonSafepoints is on), so an
//! interrupted instruction has to borrow, and so has the call of a leaf routine. The entry above it in memory may
//! belong to code that runs at another time. Two things are better: the innermost loop that an address is in, whose
//! poll and calls run with it; and branches to uncommon traps, each of which has an exact scope for the place that it
//! branches from. A loop may have neither: with the serial and the parallel collector counted loops have no poll
//! (`LoopStripMiningIter` is 0 there).
//! Then the traps before it tell, which C2 makes of a loop's checks, else what its end leads to, and where that is the
//! return the nmethod's own method is all that is known. Made once for an nmethod that was interrupted. What an instruction
//! is, `flow` knows.

use super::flow::{self, Flow, Step};
use super::runs::Runs;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bytes of code that are decoded: C2 gives up at some 60 KB (`HugeMethodLimit` is of bytecode; nodes are
/// limited), C1 at less.
pub const MAX_CODE: u64 = 512 << 10;
/// Loops and hints that are kept, each.
const MAX_KEPT: usize = 4096;
/// Instructions from a branch's target to the call of the trap: moves that set up its state.
const MAX_SETUP: usize = 24;

/// Bytes of code to a branch, about.
const USUAL_BRANCH: usize = 24;
/// Jumps that are followed.
const MAX_JUMPS: usize = 16;
/// The target of what leaves the code, or leads nobody knows where.
const AWAY: u32 = u32::MAX;

/// A scope that is none: see [`Told::Own`].
pub const OWN: u32 = 0;

/// What is known of an instruction's scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The nearest scope.
    Scope(u32),
    /// None on the way that the code takes: its own method, and perhaps inlined ones.
    Own,
    /// The shape of the code is not known.
    Nothing,
}

/// The loops, branches and PcDescs of an nmethod's code.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// First byte and one past the last, the smallest first.
    loops: Vec<(u32, u32)>,
    /// Those that end with a jump, which are loops only where they lead to that: code apart that comes back to what
    /// runs once is none.
    back: Vec<(u32, u32)>,
    branches: Vec<Branch>,
    /// The last byte that it tells of, scope; ascending.
    hints: Vec<(u32, u32)>,
    /// Hints that are branches to traps: their last bytes.
    traps: Vec<u32>,
    /// Where the code does not go on with what follows: the end of a jump or a return, the jump's target or [`AWAY`];
    /// ascending.
    breaks: Vec<(u32, u32)>,
}

impl Structure {
    /// The shape of code whose PcDescs are at these offsets, with these scopes.
    pub fn of(code: &[u8], pcs: &[(u32, u32)]) -> Self {
        if code.len() as u64 > MAX_CODE {
            return Self::default();
        }
        let (mut loops, mut hints, mut traps) = (Vec::new(), Vec::with_capacity(2 * pcs.len()), Vec::new());
        let (mut back, mut breaks, mut branches) =
            (Vec::new(), Vec::new(), Vec::with_capacity(code.len() / USUAL_BRANCH));
        hints.extend_from_slice(pcs);
        for Step { end, flow } in flow::steps(code, 0) {
            let (conditional, target) = match flow {
                Flow::Conditional(target) => (true, target),
                Flow::Jump(target) => (false, target),
                Flow::Away => (false, u64::MAX),
                Flow::Next | Flow::Call => continue,
            };
            let target = if target < code.len() as u64 { target as u32 } else { AWAY };
            branches.push(Branch { end, target, conditional });
            if !conditional {
                breaks.push((end, target));
            }
            if target < end {
                (if conditional { &mut loops } else { &mut back }).push((target, end));
            } else if conditional
                && target != AWAY
                && let Some(scope) = trap(code, u64::from(target), pcs)
            {
                hints.push((end - 1, scope));
                traps.push(end - 1);
            }
            if [&loops, &back, &breaks].iter().any(|kept| kept.len() >= MAX_KEPT) || traps.len() >= MAX_KEPT {
                break;
            }
        }
        sort_loops(&mut loops);
        hints.sort_by_key(|(at, _)| *at);
        Self { loops, back, branches, hints, traps, breaks }
    }

    /// Finds out which of those that may be loops are.
    fn with_loops(mut self) -> Self {
        let is_loop = |(from, to): &(u32, u32)| leads_to(&self.branches, *from, *to);
        self.loops.extend(std::mem::take(&mut self.back).into_iter().filter(is_loop));
        sort_loops(&mut self.loops);
        self
    }

    /// The same for every place in the code, which is what is kept of it: a scope, or [`OWN`], for each piece of code
    /// from its offset on; nothing where nothing is known.
    pub fn leaves(self) -> Runs {
        let shape = self.with_loops();
        // What is told changes only behind a hint, where a loop begins or ends, and behind a jump.
        let mut places: Vec<u32> = shape.hints.iter().map(|(at, _)| at.saturating_add(1)).collect();
        places.extend(shape.loops.iter().flat_map(|(from, to)| [*from, *to]));
        places.extend(shape.breaks.iter().map(|(end, _)| *end));
        places.push(0);
        places.sort_unstable();
        places.dedup();
        let told = |at: u32| match shape.scope(at) {
            Told::Scope(scope) => Some((at, scope)),
            Told::Own => Some((at, OWN)),
            Told::Nothing => None,
        };
        let mut leaves: Vec<_> = places.into_iter().filter_map(told).collect();
        leaves.dedup_by_key(|(_, scope)| *scope);
        Runs::of(leaves)
    }

    /// The scope for an instruction at `offset`: of the smallest loop around it that has any, the next one there
    /// or else the first; else what is nearest on the way that the code takes.
    pub fn scope(&self, offset: u32) -> Told {
        if self.hints.is_empty() && self.branches.is_empty() {
            return Told::Nothing;
        }
        let here = |(from, to): &&(u32, u32)| (*from..*to).contains(&offset);
        let mut around: Vec<_> = self.loops.iter().filter(here).collect();
        let back = self.back.iter().filter(here);
        around.extend(back.filter(|(from, to)| leads_to(&self.branches, *from, *to)));
        around.sort_by_key(|(from, to)| (to - from, *from));
        let next = self.hints.partition_point(|(at, _)| *at < offset);
        let (mut first, mut last) = (offset, offset);
        for (from, to) in around {
            let begin = self.hints.partition_point(|(at, _)| at < from);
            let best = [next, begin].into_iter().filter_map(|at| self.hints.get(at));
            if let Some((_, scope)) = best.into_iter().find(|(at, _)| at < to) {
                return Told::Scope(*scope);
            }
            (first, last) = (first.min(*from), last.max(*to));
        }
        let before = self.before(first, last);
        let trap = before.filter(|(at, _)| first != last && self.traps.binary_search(at).is_ok());
        let nearest = trap.map(|(_, scope)| scope).or_else(|| self.after(last));
        nearest.or(before.map(|(_, scope)| scope)).map_or(Told::Own, Told::Scope)
    }

    /// The hint that code from `offset` on comes to first, if it takes no conditional branch.
    fn after(&self, mut offset: u32) -> Option<u32> {
        for _ in 0..MAX_JUMPS {
            let hint = self.hints.get(self.hints.partition_point(|(at, _)| *at < offset));
            let leaves = self.breaks.get(self.breaks.partition_point(|(end, _)| *end <= offset));
            match (hint, leaves) {
                (Some((at, scope)), Some((end, _))) if at < end => return Some(*scope),
                (Some((_, scope)), None) => return Some(*scope),
                (_, Some((_, target))) if *target != AWAY => offset = *target,
                _ => return None,
            }
        }
        None
    }

    /// The last hint before the code from `first` to `last` from which that is reached.
    fn before(&self, first: u32, last: u32) -> Option<(u32, u32)> {
        let hint = *self.hints.get(self.hints.partition_point(|(at, _)| *at < first).checked_sub(1)?)?;
        let breaks = self.breaks.get(..self.breaks.partition_point(|(end, _)| *end <= first))?;
        // A loop may be entered by a jump to its condition.
        let enters = |(end, target): &(u32, u32)| *end == first && (first..last).contains(target);
        let left = breaks.iter().rev().find(|left| !enters(left)).map_or(0, |(end, _)| *end);
        (hint.0 >= left).then_some(hint)
    }
}

/// Sorts loops, the smallest first.
fn sort_loops(loops: &mut Vec<(u32, u32)>) {
    loops.sort_by_key(|(from, to)| (to - from, *from));
    loops.dedup();
}

/// A jump or a return.
#[derive(Debug, PartialEq, Eq)]
struct Branch {
    /// One past the branch's last byte.
    end: u32,
    /// The offset that the branch leads to, or [`AWAY`].
    target: u32,
    conditional: bool,
}

/// Whether code from `from` on comes to the jump that ends at `to`, going forward only.
fn leads_to(branches: &[Branch], from: u32, to: u32) -> bool {
    let mut targets = BinaryHeap::new();
    let mut alive = true;
    let first = branches.partition_point(|branch| branch.end <= from);
    for branch in branches.iter().skip(first).take_while(|branch| branch.end <= to) {
        while targets.peek().is_some_and(|Reverse(target)| *target < branch.end) {
            targets.pop();
            alive = true;
        }
        if branch.end == to {
            break;
        }
        if alive && (branch.end..to).contains(&branch.target) {
            targets.push(Reverse(branch.target));
        }
        alive &= branch.conditional;
    }
    alive
}

/// The scope of the call that the code at `target` leads to without a branch.
fn trap(code: &[u8], target: u64, pcs: &[(u32, u32)]) -> Option<u32> {
    let rest = code.get(target as usize..)?;
    for Step { end, flow } in flow::steps(rest, target).take(MAX_SETUP) {
        match flow {
            Flow::Next => {}
            Flow::Call => {
                let at = pcs.binary_search_by_key(&end, |(at, _)| *at).ok()?;
                // A trap does not come back: what follows is a halt or the next one's set-up, never more of this.
                return pcs.get(at).map(|(_, scope)| *scope);
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests;
