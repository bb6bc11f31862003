//! What compiled code's own shape tells of the places between debug info: instructions and PcDescs in, the
//! scope that is nearest to an address within its loop out.
//!
//! C2 writes PcDescs at calls, polls and traps only (unless DebugNonSafepoints is on), so an interrupted
//! instruction has to borrow. The entry above it in memory may belong to code that runs at another time.
//! Two things are better: the innermost loop that an address is in, whose poll and calls run with it; and
//! branches to uncommon traps, each of which has an exact scope for the place that it branches from. A loop may have
//! neither: with the serial and the parallel collector counted loops have no poll (`LoopStripMiningIter` is 0 there).
//! Then the traps before it tell, which C2 makes of a loop's checks, else what its end leads to, and where that is the
//! return the nmethod's own method is all that is known. Made once for an nmethod that was interrupted. x86-64;
//! elsewhere nothing is told.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bytes of code that are decoded: C2 gives up at some 60 KB (`HugeMethodLimit` is of bytecode; nodes are
/// limited), C1 at less.
pub const MAX_CODE: u64 = 512 << 10;
/// Loops and hints that are kept, each.
const MAX_KEPT: usize = 4096;
/// Instructions from a branch's target to the call of the trap: moves that set up its state.
const MAX_SETUP: usize = 24;

/// Jumps that are followed.
const MAX_JUMPS: usize = 16;
/// The target of what leaves the code, or leads nobody knows where.
const AWAY: u32 = u32::MAX;

/// What is known of an instruction's scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The nearest one.
    Scope(u32),
    /// None on the way that the code takes: its own method, and perhaps inlined ones.
    Own,
    /// The shape of the code is not known.
    Nothing,
}

/// An nmethod's.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// First byte and one past the last, the smallest first.
    loops: Box<[(u32, u32)]>,
    /// The last byte that it tells of, scope; ascending.
    hints: Box<[(u32, u32)]>,
    /// Of those the ones that are branches to traps.
    traps: Box<[u32]>,
    /// Where the code does not go on with what follows: the end of a jump or a return, the jump's target or [`AWAY`];
    /// ascending.
    breaks: Box<[(u32, u32)]>,
}

impl Structure {
    /// Of code whose PcDescs are at these offsets, with these scopes.
    pub fn of(code: &[u8], pcs: &[(u32, u32)]) -> Self {
        if !cfg!(target_arch = "x86_64") || code.len() as u64 > MAX_CODE {
            return Self::default();
        }
        let (mut loops, mut hints, mut traps, mut branches) =
            (Vec::new(), pcs.to_vec(), Vec::new(), Vec::new());
        let (mut back, mut breaks) = (Vec::new(), Vec::new());
        for instruction in Decoder::with_ip(64, code, 0, DecoderOptions::NONE).iter() {
            let (target, end) = (instruction.near_branch_target(), instruction.next_ip() as u32);
            let (conditional, target) = match instruction.flow_control() {
                FlowControl::ConditionalBranch => (true, target),
                FlowControl::UnconditionalBranch => (false, target),
                FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => {
                    (false, u64::MAX)
                }
                _ => continue,
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
        // Code apart that comes back to what runs once is no loop.
        loops.extend(back.into_iter().filter(|(from, to)| leads_to(&branches, *from, *to)));
        loops.sort_by_key(|(from, to)| (to - from, *from));
        loops.dedup();
        hints.sort_by_key(|(at, _)| *at);
        Self { loops: loops.into(), hints: hints.into(), traps: traps.into(), breaks: breaks.into() }
    }

    /// About so many bytes of memory.
    pub fn bytes(&self) -> usize {
        8 * (self.loops.len() + self.hints.len() + self.breaks.len()) + 4 * self.traps.len()
    }

    /// The scope for an instruction at `offset`: of the smallest loop around it that has any, the next one there
    /// or else the first; else what is nearest on the way that the code takes.
    pub fn scope(&self, offset: u32) -> Told {
        if *self == Self::default() {
            return Told::Nothing;
        }
        let around = self.loops.iter().filter(|(from, to)| (*from..*to).contains(&offset));
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

/// A jump or a return.
struct Branch {
    /// One past its last byte.
    end: u32,
    /// Where to, or [`AWAY`].
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
    let mut decoder = Decoder::with_ip(64, rest, target, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    for _ in 0..MAX_SETUP {
        if !decoder.can_decode() {
            return None;
        }
        decoder.decode_out(&mut instruction);
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::IndirectCall => {
                let end = u32::try_from(instruction.next_ip()).ok()?;
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_loop_keeps_to_itself_and_a_trap_tells_its_branch() {
        // 0: nop; 1: inc eax; 3: jae 16; 5: test eax,[rip]; 11: jne 1; 13: nop nop; 15: ret; 16: nop;
        // 17: call; 22: nop.
        let code = [
            0x90, 0xff, 0xc0, 0x73, 0x0b, 0x85, 0x05, 0, 0, 0, 0, 0x75, 0xf4, 0x90, 0x90, 0xc3, 0x90, 0xe8,
            0, 0, 0, 0, 0x90,
        ];
        let only_poll = Structure::of(&code, &[(5, 50)]);
        let all = |s: &Structure| [0, 1, 3, 5, 11, 13].map(|at| s.scope(at));
        // Behind the poll but in its loop; and nothing follows the loop.
        assert_eq!(all(&only_poll), [Told::Scope(50); 6]);
        let with_trap = Structure::of(&code, &[(22, 70)]);
        assert_eq!(all(&with_trap), [Told::Scope(70); 6]);
        let both = Structure::of(&code, &[(9, 50), (22, 70)]);
        assert_eq!(all(&both), [70, 70, 70, 50, 70, 50].map(Told::Scope));
        assert_eq!(both.bytes(), 8 * (1 + 3 + 1) + 4);
        assert_eq!(Structure::default().scope(3), Told::Nothing);
    }

    /// As counted loops are where no pause is to be kept short.
    #[test]
    fn a_loop_without_debug_info_has_none_of_code_that_it_does_not_lead_to() {
        // 0: nop; 1: inc eax; 3: jne 1; 5: ret; 6: call; 11: jmp 0. What jumps there came from before.
        let code = [0x90, 0xff, 0xc0, 0x75, 0xfc, 0xc3, 0xe8, 0, 0, 0, 0, 0xeb, 0xf3];
        let cold = Structure::of(&code, &[(11, 70)]);
        assert_eq!([0, 1, 3, 5].map(|at| cold.scope(at)), [Told::Own; 4]);
        assert_eq!(cold.scope(6), Told::Scope(70));
        // 0: inc eax; 2: jne 0; 4: jmp 8; 6: nop nop; 8: call.
        let code = [0xff, 0xc0, 0x75, 0xfc, 0xeb, 0x02, 0x90, 0x90, 0xe8, 0, 0, 0, 0];
        assert_eq!(Structure::of(&code, &[(7, 60), (13, 70)]).scope(0), Told::Scope(70), "by the jump");
        // 0: jb 10; 2: jmp 4; 4: inc eax; 6: jne 4; 8: nop; 9: ret; 10: call.
        let code = [0x72, 0x08, 0xeb, 0, 0xff, 0xc0, 0x75, 0xfc, 0x90, 0xc3, 0xe8, 0, 0, 0, 0];
        let checked = Structure::of(&code, &[(9, 60), (15, 80)]);
        assert_eq!(checked.scope(4), Told::Scope(80), "its check's, not what follows");
        assert_eq!(checked.scope(8), Told::Scope(60));
        // 0: inc eax; 2: je 6; 4: jmp 0; 6: ret.
        assert_eq!(Structure::of(&[0xff, 0xc0, 0x74, 0x02, 0xeb, 0xfa, 0xc3], &[]).loops.len(), 1);
    }

    proptest! {
        #[test]
        fn any_code_ends(
            code in proptest::collection::vec(any::<u8>(), 0..2000),
            mut pcs in proptest::collection::vec((0..2000u32, 1..9u32), 0..50),
            at: u32,
        ) {
            pcs.sort();
            let structure = Structure::of(&code, &pcs);
            let _ = structure.scope(at % 3000);
            prop_assert!(structure.bytes() <= 8 * (4 * MAX_KEPT + pcs.len() + 1));
        }
    }
}
