//! Reads unwind information: sections in, a rule for each piece of code out.
//!
//! gimli interprets the call frame instructions; here is what the walker can make of a row. Expressions are known by
//! their bytes: those that compilers and linkers write (jump tables, aligned stacks, signal frames). An entry that does
//! not parse is left out, as a gap. Limits: entries, rows, and instructions that are run, for each entry runs those that
//! it shares with others again.

use super::{Image, TableError};
use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame, EndianSlice, FrameDescriptionEntry,
    LittleEndian, Register, RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression,
    UnwindOffset, UnwindSection, UnwindTableRow,
};
use profiler_ebpf::{CfaRule, RbpRule, UnwindRule};
use std::collections::HashMap;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;
type Cie<'a> = CommonInformationEntry<Bytes<'a>>;

const RBP: Register = Register(6);
const RSP: Register = Register(7);
const RETURN_ADDRESS: Register = Register(16);
/// DWARF operations (DWARF 5, 7.7.1).
const DEREF: u8 = 0x06;
const BREG_RBP: u8 = 0x76;
const BREG_RSP: u8 = 0x77;
/// Of a jump table: rsp + 8 + ((rip & 15) >= N) << 3, N as in `lit0` + N. After `breg7 8`.
const PLT_HEAD: [u8; 4] = [0x80, 0x00, 0x3f, 0x1a];
const PLT_TAIL: [u8; 4] = [0x2a, 0x33, 0x24, 0x22];
const LIT0: u8 = 0x30;

/// Rows in the making: x86-64 has 17 registers that compilers tell of, and states are remembered one or two deep. gimli's
/// own storage is copied for each function and is six times as large.
struct Small;

impl UnwindContextStorage<usize> for Small {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = Box<[UnwindTableRow<usize, Self>; 8]>;
}

/// Entries; libtorch_cpu has 700,000.
const MAX_ENTRIES: usize = 2 << 20;
/// Rows of all entries.
pub const MAX_ROWS: usize = 4 << 20;
/// Different heads that entries share; libraries have two to some thousands.
const MAX_HEADS: usize = 16_384;
/// Bytes of instructions that are run.
const MAX_RUN: u64 = 512 << 20;

/// The rules of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its first address.
    pub start: u64,
    /// One past its last.
    pub end: u64,
    /// Its first row.
    pub row: u32,
    /// How many.
    pub rows: u32,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Functions, in the order of the file.
    pub entries: Vec<Entry>,
    /// Address from which it holds, and number in `rules`.
    pub rows: Vec<(u64, u16)>,
    /// Different rules.
    pub rules: Vec<UnwindRule>,
    /// Rows before equal neighbours are merged.
    pub read: usize,
    numbers: HashMap<UnwindRule, u16>,
}

impl Rules {
    /// A file with more rules than this is no compiler's.
    const MAX_RULES: usize = 4096;

    /// The number of a rule; of `Unsupported` where there are too many.
    fn number(&mut self, rule: UnwindRule) -> u16 {
        if self.rules.is_empty() {
            self.rules.push(UnwindRule::UNSUPPORTED);
            self.numbers.insert(UnwindRule::UNSUPPORTED, 0);
        }
        if let Some(number) = self.numbers.get(&rule) {
            return *number;
        }
        let Some(number) = u16::try_from(self.rules.len()).ok().filter(|n| usize::from(*n) < Self::MAX_RULES)
        else {
            return 0;
        };
        self.rules.push(rule);
        self.numbers.insert(rule, number);
        number
    }
}

/// Reads all entries.
pub fn read(image: &Image) -> Result<Rules, TableError> {
    let address = image.frames.address;
    if image.debug {
        let mut section = DebugFrame::new(&image.frames.bytes, LittleEndian);
        section.set_address_size(8);
        return entries(&section, &BaseAddresses::default());
    }
    let text = image.segments.iter().find(|s| s.code).map_or(0, |s| s.address);
    let mut section = EhFrame::new(&image.frames.bytes, LittleEndian);
    section.set_address_size(8);
    entries(&section, &BaseAddresses::default().set_eh_frame(address).set_text(text))
}

fn entries<'a, S>(section: &S, bases: &BaseAddresses) -> Result<Rules, TableError>
where
    S: UnwindSection<Bytes<'a>>,
{
    let mut rules = Rules::default();
    let mut heads: HashMap<usize, Cie<'a>> = HashMap::new();
    let mut context = UnwindContext::<usize, Small>::new_in();
    let mut run = 0u64;
    let mut all = section.entries(bases);
    // A broken entry hides what follows it: the lengths lead from one to the next.
    while let Ok(Some(entry)) = all.next() {
        let CieOrFde::Fde(entry) = entry else { continue };
        if rules.entries.len() >= MAX_ENTRIES {
            return Err(TableError::TooMuch("functions"));
        }
        let mut full = false;
        let entry = entry.parse(|section: &S, bases: &BaseAddresses, offset: S::Offset| {
            let at: usize = UnwindOffset::into(offset);
            if let Some(head) = heads.get(&at) {
                return Ok(head.clone());
            }
            let head = section.cie_from_offset(bases, offset)?;
            full |= heads.len() >= MAX_HEADS;
            if !full {
                heads.insert(at, head.clone());
            }
            Ok(head)
        });
        if full {
            return Err(TableError::TooMuch("kinds of functions"));
        }
        let Ok(entry) = entry else { continue };
        run += (entry.entry_len() as u64).saturating_add(entry.cie().entry_len() as u64);
        if run > MAX_RUN {
            return Err(TableError::TooMuch("unwind instructions"));
        }
        function(section, bases, &entry, &mut context, &mut rules)?;
    }
    if rules.entries.is_empty() { Err(TableError::Nothing) } else { Ok(rules) }
}

fn function<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    entry: &FrameDescriptionEntry<Bytes<'a>>,
    context: &mut UnwindContext<usize, Small>,
    rules: &mut Rules,
) -> Result<(), TableError> {
    let start = entry.initial_address();
    let Some(end) = start.checked_add(entry.len()).filter(|end| start != 0 && *end > start) else {
        // Of code that the linker left out.
        return Ok(());
    };
    let first = rules.rows.len();
    let signal = entry.is_signal_trampoline();
    let Ok(mut table) = entry.rows(section, bases, context) else { return Ok(()) };
    loop {
        let row = match table.next_row() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(_) => {
                rules.rows.truncate(first);
                return Ok(());
            }
        };
        rules.read += 1;
        if rules.read > MAX_ROWS {
            return Err(TableError::TooMuch("rows"));
        }
        let rule = rule(section, row, signal);
        let at = row.start_address();
        let number = rules.number(rule);
        match rules.rows.get(first..).unwrap_or_default().last() {
            Some((_, last)) if *last == number => {}
            _ if at < start || at >= end => {}
            _ => rules.rows.push((at, number)),
        }
    }
    let rows = rules.rows.get_mut(first..).unwrap_or_default();
    // `DW_CFA_set_loc` may go back.
    if !rows.is_sorted() {
        rows.sort_by_key(|(at, _)| *at);
    }
    let rows = rows.len() as u32;
    rules.entries.push(Entry { start, end, row: first as u32, rows });
    Ok(())
}

/// What the walker can do with a row.
fn rule<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    row: &UnwindTableRow<usize, Small>,
    signal: bool,
) -> UnwindRule {
    let bytes = |expression: &UnwindExpression<usize>| {
        expression.get(section).map(|expression| expression.0.slice()).unwrap_or_default()
    };
    let return_address = match row.register(RETURN_ADDRESS) {
        Some(RegisterRule::Undefined) => return UnwindRule::END,
        // `None`: the psABI's place.
        None | Some(RegisterRule::Offset(-8)) => None,
        Some(RegisterRule::Expression(e)) => Some(based(bytes(&e))),
        Some(_) => return UnwindRule::UNSUPPORTED,
    };
    let (cfa, cfa_offset, threshold) = match row.cfa() {
        gimli::CfaRule::RegisterAndOffset { register: RSP, offset } => (CfaRule::Rsp, *offset, 0),
        gimli::CfaRule::RegisterAndOffset { register: RBP, offset } => (CfaRule::Rbp, *offset, 0),
        gimli::CfaRule::RegisterAndOffset { .. } => return UnwindRule::UNSUPPORTED,
        gimli::CfaRule::Expression(expression) => match computed(bytes(expression)) {
            Some(found) => found,
            None => return UnwindRule::UNSUPPORTED,
        },
    };
    let Ok(cfa_offset) = i32::try_from(cfa_offset) else { return UnwindRule::UNSUPPORTED };
    if let Some(place) = return_address {
        // rsp and rip lie side by side in a signal's frame, and the walker knows where the others do.
        let beside = place == Some((BREG_RSP, i64::from(cfa_offset) + 8));
        return if signal && cfa == CfaRule::AtRsp && beside {
            UnwindRule { cfa: CfaRule::Signal, cfa_offset, rbp: RbpRule::Same, rbp_offset: 0 }
        } else {
            UnwindRule::UNSUPPORTED
        };
    }
    let (rbp, rbp_offset) = match row.register(RBP) {
        None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => (RbpRule::Same, threshold),
        Some(RegisterRule::Offset(offset)) => (RbpRule::AtCfa, offset),
        Some(RegisterRule::Expression(e)) => match based(bytes(&e)) {
            Some((BREG_RBP, offset)) => (RbpRule::AtRbp, offset),
            _ => return UnwindRule::UNSUPPORTED,
        },
        Some(_) => return UnwindRule::UNSUPPORTED,
    };
    match i16::try_from(rbp_offset) {
        Ok(rbp_offset) if rbp_offset % 8 == 0 || cfa == CfaRule::Plt => {
            UnwindRule { cfa, cfa_offset, rbp, rbp_offset }
        }
        _ => UnwindRule::UNSUPPORTED,
    }
}

/// `bregN offset` and nothing more.
fn based(expression: &[u8]) -> Option<(u8, i64)> {
    let (register, rest) = expression.split_first()?;
    let (offset, rest) = sleb(rest)?;
    rest.is_empty().then_some((*register, offset))
}

/// A CFA that is an expression; the third is a jump table's threshold.
fn computed(expression: &[u8]) -> Option<(CfaRule, i64, i64)> {
    let (register, rest) = expression.split_first()?;
    let (offset, rest) = sleb(rest)?;
    if rest == [DEREF] {
        return match *register {
            BREG_RSP => Some((CfaRule::AtRsp, offset, 0)),
            BREG_RBP => Some((CfaRule::AtRbp, offset, 0)),
            _ => None,
        };
    }
    let literal = rest.strip_prefix(&PLT_HEAD)?.strip_suffix(&PLT_TAIL)?;
    match literal {
        [literal @ LIT0..=0x3f] if *register == BREG_RSP => {
            Some((CfaRule::Plt, offset, i64::from(literal - LIT0)))
        }
        _ => None,
    }
}

/// A signed LEB128 of at most five bytes, and what follows.
fn sleb(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut value = 0i64;
    for (i, byte) in bytes.iter().enumerate().take(5) {
        value |= i64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            let unused = 64 - 7 * (i + 1);
            return Some((value << unused >> unused, bytes.get(i + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_compilers_and_linkers_are_known() {
        assert_eq!(sleb(&[0x78, 9]), Some((-8, &[9][..])));
        assert_eq!(sleb(&[0xa0, 0x01]), Some((160, &[][..])));
        assert_eq!(sleb(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]), None);
        assert_eq!(based(&[0x76, 0]), Some((BREG_RBP, 0)));
        assert_eq!(computed(&[0x76, 0x78, 0x06]), Some((CfaRule::AtRbp, -8, 0)));
        assert_eq!(computed(&[0x77, 0xa0, 0x01, 0x06]), Some((CfaRule::AtRsp, 160, 0)));
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(computed(&plt), Some((CfaRule::Plt, 8, 11)));
        assert_eq!(computed(&plt[..10]), None);
        assert_eq!(computed(&[]), None);
    }
}
