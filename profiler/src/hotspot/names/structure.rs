//! What compiled code's own shape tells of the places between debug info: instructions and PcDescs in, the
//! scope that is nearest to an address within its loop out.
//!
//! C2 writes PcDescs at calls, polls and traps only (unless DebugNonSafepoints is on), so an interrupted
//! instruction has to borrow. The entry above it in memory may belong to code that runs at another time.
//! Two things are better: the innermost loop that an address is in, whose poll and calls run with it; and
//! branches to uncommon traps, each of which has an exact scope for the place that it branches from. Made once
//! for an nmethod that was interrupted. x86-64; elsewhere nothing is told.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

/// Bytes of code that are decoded: C2 gives up at some 60 KB (`HugeMethodLimit` is of bytecode; nodes are
/// limited), C1 at less.
pub const MAX_CODE: u64 = 512 << 10;
/// Loops and hints that are kept, each.
const MAX_KEPT: usize = 4096;
/// Instructions from a branch's target to the call of the trap: moves that set up its state.
const MAX_SETUP: usize = 24;

/// An nmethod's.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// First byte and one past the last, the smallest first.
    loops: Box<[(u32, u32)]>,
    /// The last byte that it tells of, scope; ascending.
    hints: Box<[(u32, u32)]>,
}

impl Structure {
    /// Of code whose PcDescs are at these offsets, with these scopes.
    pub fn of(code: &[u8], pcs: &[(u32, u32)]) -> Self {
        if !cfg!(target_arch = "x86_64") || code.len() as u64 > MAX_CODE {
            return Self::default();
        }
        let (mut loops, mut hints) = (Vec::new(), pcs.to_vec());
        let inside = |target: u64| target < code.len() as u64;
        for instruction in Decoder::with_ip(64, code, 0, DecoderOptions::NONE).iter() {
            let conditional = match instruction.flow_control() {
                FlowControl::ConditionalBranch => true,
                FlowControl::UnconditionalBranch => false,
                _ => continue,
            };
            let (target, end) = (instruction.near_branch_target(), instruction.next_ip());
            if !inside(target) {
                continue;
            }
            if target < end {
                loops.push((target as u32, end as u32));
            } else if conditional && let Some(scope) = trap(code, target, pcs) {
                hints.push((end as u32 - 1, scope));
            }
            if loops.len() >= MAX_KEPT || hints.len() >= pcs.len() + MAX_KEPT {
                break;
            }
        }
        loops.sort_by_key(|(from, to)| (to - from, *from));
        loops.dedup();
        hints.sort_by_key(|(at, _)| *at);
        Self { loops: loops.into(), hints: hints.into() }
    }

    /// About so many bytes of memory.
    pub fn bytes(&self) -> usize {
        8 * (self.loops.len() + self.hints.len())
    }

    /// The scope for an instruction at `offset`: of the smallest loop around it that has any, the next one there
    /// or else the first; without a loop the next one.
    pub fn scope(&self, offset: u32) -> Option<u32> {
        let around = self.loops.iter().filter(|(from, to)| (*from..*to).contains(&offset));
        let next = self.hints.partition_point(|(at, _)| *at < offset);
        for (from, to) in around {
            let first = self.hints.partition_point(|(at, _)| at < from);
            let best = [next, first].into_iter().filter_map(|at| self.hints.get(at));
            if let Some((_, scope)) = best.into_iter().find(|(at, _)| at < to) {
                return Some(*scope);
            }
        }
        self.hints.get(next).map(|(_, scope)| *scope)
    }
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
        assert_eq!(all(&only_poll), [Some(50), Some(50), Some(50), Some(50), Some(50), None]);
        let with_trap = Structure::of(&code, &[(22, 70)]);
        assert_eq!(all(&with_trap), [Some(70); 6]);
        let both = Structure::of(&code, &[(9, 50), (22, 70)]);
        assert_eq!(all(&both), [Some(70), Some(70), Some(70), Some(50), Some(70), Some(70)]);
        assert_eq!(both.bytes(), 8 * (1 + 3));
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
            prop_assert!(structure.bytes() <= 8 * (2 * MAX_KEPT + pcs.len() + 1));
        }
    }
}
