//! The rows of functions that have no unwind information, as their code tells them: musl's C library has none, and so what
//! is linked with it statically.
//!
//! In: code, where functions begin, constants. Out: at each instruction that was reached, how far above rsp the CFA is, and
//! where the caller's rbp lies. From a function's first instruction each way through it is followed, with what push, pop
//! and arithmetic on rsp do (System V ABI, AMD64, 3.2.2: a called function gives rsp and rbp back as they were). A function
//! is believed if on each way to a return rsp and rbp are as they were, and nothing is done to them that is not followed;
//! where two ways meet with different stacks (one of them behind a call that does not return), nothing is told. Bounded:
//! instructions that are decoded, and that are kept.

mod jumps;
mod stack;
mod step;

use crate::Code;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use profiler_ebpf::{CfaRule, FpRule, ReturnRule, UnwindRule};
use stack::State;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;

/// Instructions that are decoded, of all ways: some ten times those of musl's C library.
const MAX_INSTRUCTIONS: usize = 4 << 20;
/// How often all functions are followed, each time with what the last time told of functions that never return.
const ROUNDS: usize = 4;
/// Instructions before an indirect jump in which its table is looked for.
const BEFORE_JUMP: usize = 16;
/// Instructions of one function, and of all: musl's C library has some 110,000. What is behind them has no rows.
const MAX_FUNCTION: usize = 64 << 10;
const MAX_ALL: usize = 256 << 10;

/// The number of the system call with which a signal's handler returns (arch/x86/entry/syscalls/syscall_64.tbl).
const RT_SIGRETURN: u64 = 15;
/// Of the code that makes it: rsp is at the `ucontext`, and the interrupted rsp 160 bytes above (arch/x86/include/asm/sigframe.h,
/// `struct rt_sigframe`; its uapi's `struct sigcontext_64`).
const SIGNAL: UnwindRule = UnwindRule {
    cfa: CfaRule::Signal,
    cfa_offset: 160,
    fp: FpRule::Same,
    fp_offset: 0,
    return_address: ReturnRule::BelowCfa,
};

/// The rows of the code, from the addresses where they hold, in order; [`UnwindRule::GAP`] where nothing is told.
pub fn rows(code: &Code<'_>) -> Vec<(u64, UnwindRule)> {
    Reader::new(code).rows()
}

/// The functions of the code.
pub fn functions(code: &Code<'_>) -> Vec<Range<u64>> {
    let mut reader = Reader::new(code);
    reader.find_entries();
    let entries: Vec<u64> = reader.entries.iter().copied().collect();
    let mut found = Vec::new();
    for (nth, entry) in entries.iter().enumerate() {
        let next = entries.get(nth + 1).copied().unwrap_or(u64::MAX);
        let reached = reader.function(*entry).reached;
        let ends = reached.into_iter().filter(|(at, _)| (*entry..next).contains(at));
        if let Some(end) = ends.map(|(at, (_, len))| at.saturating_add(len as u64)).max() {
            found.push(*entry..end.min(next));
        }
    }
    found
}

struct Reader<'a> {
    code: &'a Code<'a>,
    info: InstructionInfoFactory,
    /// Instructions that may still be decoded.
    left: usize,
    /// Where functions begin, as it is known so far.
    entries: BTreeSet<u64>,
    /// Where they may: addresses that are loaded.
    loaded: BTreeSet<u64>,
    /// Functions that never return, as far as it is known: what stands behind a call of one is not reached by it.
    endless: BTreeSet<u64>,
}

/// The rule before each instruction, and the instruction's bytes.
type Rules = BTreeMap<u64, (Option<UnwindRule>, usize)>;

/// What was reached from a function's first instruction.
struct Function {
    /// The state before each instruction, and the instruction's bytes. No state: there are several.
    reached: HashMap<u64, (Option<State>, usize)>,
    /// Functions that it calls.
    calls: Vec<u64>,
    /// On no way it does anything that a function does not do, or that is not followed.
    believed: bool,
    /// There is a way out of it.
    returns: bool,
}

impl<'a> Reader<'a> {
    fn new(code: &'a Code<'a>) -> Self {
        let mut reader = Self {
            code,
            info: InstructionInfoFactory::new(),
            left: MAX_INSTRUCTIONS,
            entries: BTreeSet::new(),
            loaded: code.pointers.iter().copied().filter(|at| inside(code, *at)).collect(),
            endless: BTreeSet::new(),
        };
        reader.entries.extend(code.entries.iter().copied().filter(|at| inside(code, *at)));
        reader
    }

    fn rows(mut self) -> Vec<(u64, UnwindRule)> {
        self.find_entries();
        let mut all = Rules::new();
        for _ in 0..ROUNDS {
            let endless = self.endless.len();
            all = self.all();
            if self.endless.len() == endless {
                break;
            }
        }
        let (mut rows, mut end) = (Vec::new(), self.code.address);
        let mut put = |at, rule| {
            if rows.last().is_none_or(|(_, last)| *last != rule) {
                rows.push((at, rule));
            }
        };
        for (at, (rule, len)) in all {
            if at > end {
                put(end, UnwindRule::GAP);
            }
            put(at, rule.unwrap_or(UnwindRule::GAP));
            end = end.max(at.saturating_add(len as u64));
        }
        put(end, UnwindRule::GAP);
        rows
    }

    /// Follows all functions.
    fn all(&mut self) -> Rules {
        let mut all = Rules::new();
        for entry in self.entries.clone() {
            let function = self.function(entry);
            if !function.returns {
                self.endless.insert(entry);
            }
            if all.len() > MAX_ALL {
                break;
            }
            for (at, (state, len)) in function.reached {
                let rule = state.filter(|_| function.believed).and_then(State::rule);
                let known = all.entry(at).or_insert((rule, len));
                if known.0 != rule {
                    known.0 = None;
                }
            }
        }
        for entry in self.entries.clone() {
            if let Some(len) = self.ends_signal(entry) {
                // A handler returns to the first instruction, and callers are looked up a byte before that; in the kernel
                // the next one is where the program is.
                let end = entry.saturating_add(len as u64);
                let within: Vec<u64> = all.range(entry - 1..end).map(|(at, _)| *at).collect();
                for at in within {
                    all.remove(&at);
                }
                all.insert(entry - 1, (Some(SIGNAL), len + 1));
                if inside(self.code, end) && !self.entries.contains(&end) {
                    all.insert(end, (Some(SIGNAL), 1));
                }
            }
        }
        all
    }

    /// How many bytes of code there are before the system call that ends a signal's handler, where a function begins with these.
    fn ends_signal(&mut self, entry: u64) -> Option<usize> {
        let first = self.instruction(entry)?;
        let is_number = first.mnemonic() == Mnemonic::Mov
            && first.op0_register().full_register() == Register::RAX
            && matches!(
                first.op1_kind(),
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
            )
            && first.immediate(1) == RT_SIGRETURN;
        let call = self.instruction(first.next_ip()).filter(|_| is_number && entry > 0)?;
        (call.mnemonic() == Mnemonic::Syscall).then(|| first.len() + call.len())
    }

    /// Finds functions that others call, and those whose address is taken, unless it lies within what was reached.
    fn find_entries(&mut self) {
        let mut reached = BTreeSet::new();
        for _ in 0..ROUNDS {
            let endless = self.endless.len();
            reached = self.follow(self.entries.iter().copied().collect());
            if self.endless.len() == endless {
                break;
            }
        }
        while let Some(next) = self.loaded.pop_first() {
            if !reached.contains(&next) && self.entries.insert(next) {
                reached.extend(self.follow(vec![next]));
            }
        }
    }

    /// Follows functions, and others that they call; what is reached inside of them.
    fn follow(&mut self, mut todo: Vec<u64>) -> BTreeSet<u64> {
        let mut reached = BTreeSet::new();
        while let Some(entry) = todo.pop()
            && reached.len() < MAX_ALL
        {
            let function = self.function(entry);
            if !function.returns {
                self.endless.insert(entry);
            }
            reached.extend(function.reached.into_keys().filter(|at| *at != entry));
            for called in function.calls {
                if self.entries.insert(called) {
                    todo.push(called);
                }
            }
        }
        reached
    }

    /// Follows all ways through a function.
    fn function(&mut self, entry: u64) -> Function {
        let mut reached: HashMap<u64, (Option<State>, usize)> = HashMap::new();
        let mut calls = Vec::new();
        let (mut believed, mut returns) = (true, false);
        let mut todo = vec![(entry, State::ENTRY)];
        while let Some((mut at, mut state)) = todo.pop() {
            let mut before = VecDeque::with_capacity(BEFORE_JUMP);
            loop {
                if at != entry && self.entries.contains(&at) {
                    // Another function: it is jumped to as it is called, or stands behind a call that does not return.
                    break;
                }
                if let Some((known, _)) = reached.get_mut(&at) {
                    if *known != Some(state) {
                        *known = None;
                    }
                    break;
                }
                // A table of jumps has hundreds of ways.
                let more = reached.len().max(todo.len()) < MAX_FUNCTION;
                let Some(instruction) = self.instruction(at).filter(|_| more) else {
                    (believed, returns) = (false, true);
                    break;
                };
                reached.insert(at, (Some(state), instruction.len()));
                let next = self.next(state, &instruction, &before);
                believed &= next.leaves != Some(false) && !next.strays;
                returns |= next.leaves.is_some() || next.strays;
                calls.extend(next.calls);
                self.loaded.extend(next.loads);
                for target in next.jumps {
                    if target != entry && self.entries.contains(&target) {
                        believed &= state == State::ENTRY;
                        returns |= !self.endless.contains(&target);
                    } else {
                        todo.push((target, state));
                    }
                }
                let Some(on) = next.on else { break };
                if before.len() == BEFORE_JUMP {
                    before.pop_front();
                }
                before.push_back(instruction);
                (at, state) = (instruction.next_ip(), on);
            }
        }
        Function { reached, calls, believed, returns }
    }

    fn instruction(&mut self, at: u64) -> Option<Instruction> {
        self.left = self.left.checked_sub(1)?;
        let from = usize::try_from(at.checked_sub(self.code.address)?).ok()?;
        let bytes = self.code.bytes.get(from..).filter(|bytes| !bytes.is_empty())?;
        let bytes = bytes.get(..15).unwrap_or(bytes);
        let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }
}

fn inside(code: &Code<'_>, at: u64) -> bool {
    at.checked_sub(code.address).is_some_and(|from| from < code.bytes.len() as u64)
}

#[cfg(test)]
mod tests;
