//! Reads unwind information: sections in, a rule for each piece of code out.
//!
//! gimli interprets the call frame instructions; `row` says what the walker can make of them. An entry that does
//! not parse is left out, as a gap. Limits: entries, rows, and instructions that are run, for each entry runs those
//! that it shares with others again.

use super::row::{Small, rule};
use super::{Image, TableError};
use crate::model::FastMap;
use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame, EndianSlice, FrameDescriptionEntry,
    LittleEndian, UnwindContext, UnwindOffset, UnwindSection,
};
use profiler_ebpf::UnwindRule;

/// A section's bytes.
pub type Bytes<'a> = EndianSlice<'a, LittleEndian>;
type Cie<'a> = CommonInformationEntry<Bytes<'a>>;

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
    numbers: FastMap<UnwindRule, u16>,
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
    let mut heads: FastMap<usize, Cie<'a>> = FastMap::default();
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
