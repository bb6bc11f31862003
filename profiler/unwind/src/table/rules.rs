//! Reads unwind information: sections in, the rules of each function out, by address.
//!
//! Twice over: first where each function begins and which entry it has, eight bytes each, then in that order its rows,
//! which are handed on at once: a file of hundreds of megabytes costs what its own section and table take. gimli
//! interprets the call frame instructions; `row` says what the walker can make of them. An entry that does
//! not parse is left out, as a gap. Limits: entries, rows, and instructions that are run, for each entry runs those
//! that it shares with others again.

use super::row::{Small, rule};
use super::{Image, TableError};
use emberscope_model::FastMap;
use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame, EndianSlice, FrameDescriptionEntry,
    LittleEndian, UnwindContext, UnwindOffset, UnwindSection, Vendor,
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

/// A function's rules, as they are handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// The function's first address.
    pub start: u64,
    /// One past the function's last address; another may begin before.
    pub end: u64,
    /// Where the next function begins; `u64::MAX` after the last.
    pub next: u64,
    /// Addresses from which a rule holds, in order, and its number.
    pub rows: &'a [(u64, u16)],
}

/// What was read of all functions.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The rules that rows have, each once; [`Rules::GAP`] is the second.
    pub rules: Vec<UnwindRule>,
    /// How many functions have rows.
    pub functions: usize,
    /// Rows before equal neighbours are merged.
    pub read: usize,
    numbers: FastMap<UnwindRule, u16>,
}

/// Where a function begins, from the first address of the code, and where its entry is in the section. Code and
/// sections of more than 4 GiB are refused before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    start: u32,
    entry: u32,
}

impl Rules {
    /// A file with more rules than this is no compiler's.
    const MAX_RULES: usize = 4096;
    /// The number of code without a rule.
    pub const GAP: u16 = 1;

    /// The two that all have.
    pub fn new() -> Self {
        let mut rules = Self::default();
        rules.number(UnwindRule::UNSUPPORTED);
        rules.number(UnwindRule::GAP);
        rules
    }

    /// The number of a rule; of `Unsupported` where there are too many.
    pub fn number(&mut self, rule: UnwindRule) -> u16 {
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

/// Reads all entries; `take` is given each function of the code between `low` and `high`, by address.
///
/// # Errors
/// [`TableError::TooMuch`]: there are more entries, heads, rows or instructions than the limits.
/// [`TableError::Nothing`]: no function has rows. What `take` fails with.
pub fn read(
    image: &Image,
    (low, high): (u64, u64),
    take: impl FnMut(Function<'_>) -> Result<(), TableError>,
) -> Result<Rules, TableError> {
    let address = image.frames.address;
    let code = low..high;
    if image.debug {
        let mut section = DebugFrame::new(&image.frames.bytes, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(vendor());
        return Reader::new(&section, BaseAddresses::default()).read(code, take);
    }
    let text = image.segments.iter().find(|s| s.code).map_or(0, |s| s.address);
    let (section, bases) = eh_frame(&image.frames.bytes, address, text);
    Reader::new(&section, bases).read(code, take)
}

fn vendor() -> Vendor {
    if emberscope_arch::OWN.signs_returns { Vendor::AArch64 } else { Vendor::Default }
}

/// Bytes of .eh_frame, of which the first has this address, in a file whose code begins at `text`.
pub fn eh_frame(bytes: &[u8], address: u64, text: u64) -> (EhFrame<Bytes<'_>>, BaseAddresses) {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    section.set_vendor(vendor());
    (section, BaseAddresses::default().set_eh_frame(address).set_text(text))
}

/// Reads entries of one section.
pub struct Reader<'s, 'a, S> {
    section: &'s S,
    bases: BaseAddresses,
    /// What entries share, by its place in the section.
    heads: FastMap<usize, Cie<'a>>,
    /// There were more than [`MAX_HEADS`] heads.
    full: bool,
}

impl<'s, 'a, S: UnwindSection<Bytes<'a>>> Reader<'s, 'a, S> {
    /// Nothing was read yet.
    pub fn new(section: &'s S, bases: BaseAddresses) -> Self {
        Self { section, bases, heads: FastMap::default(), full: false }
    }

    fn read(
        mut self,
        code: std::ops::Range<u64>,
        mut take: impl FnMut(Function<'_>) -> Result<(), TableError>,
    ) -> Result<Rules, TableError> {
        let places = self.places(&code)?;
        let mut rules = Rules::new();
        let mut context = UnwindContext::<usize, Small>::new_in();
        let mut rows = Vec::new();
        let mut run = 0u64;
        let start = |place: &Place| code.start + u64::from(place.start);
        for (i, place) in places.iter().enumerate() {
            let next = places.get(i + 1).map_or(u64::MAX, start);
            // Of two that begin at one address the later one in the file has it.
            if next <= start(place) {
                continue;
            }
            let Some(entry) = self.entry(place.entry) else { continue };
            run += (entry.entry_len() as u64).saturating_add(entry.cie().entry_len() as u64);
            if run > MAX_RUN {
                return Err(TableError::TooMuch("unwind instructions"));
            }
            if self.rows(&entry, &mut context, &mut rules, &mut rows)? {
                rules.functions += 1;
                take(Function { start: start(place), end: entry.end_address(), next, rows: &rows })?;
            }
        }
        if rules.functions == 0 { Err(TableError::Nothing) } else { Ok(rules) }
    }

    /// Where the functions of this code are, by address.
    fn places(&mut self, code: &std::ops::Range<u64>) -> Result<Vec<Place>, TableError> {
        let mut places = Vec::new();
        let section = self.section;
        let bases = self.bases.clone();
        let mut all = section.entries(&bases);
        // A broken entry hides what follows it: the lengths lead from one to the next.
        while let Ok(Some(entry)) = all.next() {
            let CieOrFde::Fde(entry) = entry else { continue };
            let entry = entry.parse(|_, _, offset| self.head(offset));
            if self.full {
                return Err(TableError::TooMuch("kinds of functions"));
            }
            let Ok(entry) = entry else { continue };
            let start = entry.initial_address();
            let ends = start.checked_add(entry.len()).is_some_and(|end| end > start);
            // At 0 is code that the linker left out.
            if start == 0 || !ends || !code.contains(&start) {
                continue;
            }
            let place = u32::try_from(start - code.start).ok().zip(u32::try_from(entry.offset()).ok());
            let Some((start, entry)) = place else {
                return Err(TableError::TooMuch("bytes of code"));
            };
            if places.len() >= MAX_ENTRIES {
                return Err(TableError::TooMuch("functions"));
            }
            places.push(Place { start, entry });
        }
        places.sort_unstable();
        Ok(places)
    }

    fn head(&mut self, offset: S::Offset) -> gimli::Result<Cie<'a>> {
        let at: usize = UnwindOffset::into(offset);
        if let Some(head) = self.heads.get(&at) {
            return Ok(head.clone());
        }
        let head = self.section.cie_from_offset(&self.bases, offset)?;
        self.full |= self.heads.len() >= MAX_HEADS;
        if !self.full {
            self.heads.insert(at, head.clone());
        }
        Ok(head)
    }

    /// The entry at this place of the section; None: none can be read there.
    pub fn entry(&mut self, place: u32) -> Option<FrameDescriptionEntry<Bytes<'a>>> {
        let (section, bases) = (self.section, self.bases.clone());
        let at = S::Offset::from(place as usize);
        section.fde_from_offset(&bases, at, |_, _, offset| self.head(offset)).ok()
    }

    /// The rows of a function; false where they do not parse.
    ///
    /// # Errors
    /// [`TableError::TooMuch`]: over the limit of rows.
    pub fn rows(
        &self,
        entry: &FrameDescriptionEntry<Bytes<'a>>,
        context: &mut UnwindContext<usize, Small>,
        rules: &mut Rules,
        rows: &mut Vec<(u64, u16)>,
    ) -> Result<bool, TableError> {
        rows.clear();
        let code = entry.initial_address()..entry.end_address();
        let signal = entry.is_signal_trampoline();
        let Ok(mut table) = entry.rows(self.section, &self.bases, context) else { return Ok(false) };
        loop {
            let row = match table.next_row() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(_) => return Ok(false),
            };
            rules.read += 1;
            if rules.read > MAX_ROWS {
                return Err(TableError::TooMuch("rows"));
            }
            let number = rules.number(rule(self.section, row, signal));
            let at = row.start_address();
            match rows.last() {
                Some((_, last)) if *last == number => {}
                _ if !code.contains(&at) => {}
                _ => rows.push((at, number)),
            }
        }
        // `DW_CFA_set_loc` may go back.
        if !rows.is_sorted() {
            rows.sort_by_key(|(at, _)| *at);
        }
        Ok(true)
    }
}
