//! Compacts rules to a [`Table`]: rows of four bytes, by page.
//!
//! Functions come in order; where two claim an address the later one has it. Between them is a gap, unless that is no
//! more than padding. Neighbours with one rule become one row, but each page begins with a row of its own, so that a
//! search stays in the page. Limits: pages and words.

use super::rules::{self, Function, Rules};
use super::{Image, TableError};
use profiler_ebpf::{PAGE_SHIFT, UnwindRule, row};

/// Pages of the largest code: 1 GiB.
const MAX_PAGES: u64 = 1 << (30 - PAGE_SHIFT);
/// Words of one table: 16 MiB.
pub const MAX_WORDS: usize = 4 << 20;
/// Less than this between two functions is padding, which nothing runs.
const PADDING: u64 = 16;

/// What the walker needs of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The first page, in the file's own address space.
    pub page: u64,
    /// Where each page's rows begin in `rows`, and where the last's end.
    pub index: Vec<u32>,
    /// Rows, whose rule is a number in `rules`.
    pub rows: Vec<u32>,
    /// The rules that rows have, each once.
    pub rules: Vec<UnwindRule>,
    /// How many rows were read, before equal neighbours became one.
    pub read: usize,
    /// How many functions have rows.
    pub functions: usize,
}

impl Table {
    /// How many pages of code the table has.
    pub fn pages(&self) -> u32 {
        (self.index.len().saturating_sub(1)) as u32
    }

    /// Words that the walker is given.
    pub fn words(&self) -> usize {
        self.index.len() + self.rows.len()
    }

    /// The words that the walker is given, with `numbers` for the rules: the number of each of `rules`, in order.
    pub fn numbered(&self, numbers: &[u32]) -> Vec<u32> {
        let first = self.index.len() as u32;
        let mask = (1 << profiler_ebpf::RULE_BITS) - 1;
        let mut words: Vec<u32> = self.index.iter().map(|at| at + first).collect();
        words.extend(self.rows.iter().map(|word| {
            let rule = numbers.get((word & mask) as usize).copied().unwrap_or(0);
            word & !mask | rule & mask
        }));
        words
    }

    /// The rule of an address of the file, as the walker finds it.
    pub fn rule(&self, address: u64) -> Option<UnwindRule> {
        let page = usize::try_from((address >> PAGE_SHIFT).checked_sub(self.page)?).ok()?;
        let rows = self.rows.get(*self.index.get(page)? as usize..*self.index.get(page + 1)? as usize)?;
        let offset = (address & 0xfff) as u32;
        let after = rows.partition_point(|word| word >> profiler_ebpf::RULE_BITS <= offset);
        let number = rows.get(after.checked_sub(1)?)? & ((1 << profiler_ebpf::RULE_BITS) - 1);
        self.rules.get(number as usize).copied()
    }
}

/// Puts rows that are known without unwind information in pages: addresses from which rules hold, in order.
///
/// # Errors
/// As [`Image::code`]. [`TableError::TooMuch`]: there are more pages of code or rows than the limits.
pub fn of_rows(image: &Image, rows: &[(u64, UnwindRule)]) -> Result<Table, TableError> {
    let mut paged = Paged::of(image.code()?)?;
    let mut rules = Rules::new();
    for (at, rule) in rows {
        paged.put(*at, u32::from(rules.number(*rule)));
        paged.within(MAX_WORDS)?;
    }
    paged.finish();
    let (page, read) = (paged.page, rows.len());
    Ok(Table { page, index: paged.index, rows: paged.rows, rules: rules.rules, read, functions: 0 })
}

/// Reads an image's rules and puts them in pages.
///
/// # Errors
/// As [`Image::code`]. [`TableError::TooMuch`]: there are more pages of code, functions, rows or instructions than the
/// limits. [`TableError::Nothing`]: no entry of the unwind information can be read.
pub fn build(image: &Image) -> Result<Table, TableError> {
    let code = image.code()?;
    let mut filling = Filling::of(code)?;
    let rules = rules::read(image, code, |function| filling.add(function))?;
    filling.finish(rules)
}

/// The table of some code in the making: functions come by address.
pub struct Filling {
    paged: Paged,
    low: u64,
    high: u64,
    /// Where the last function ends.
    end: u64,
}

impl Filling {
    /// Of the code between two addresses.
    ///
    /// # Errors
    /// [`TableError::TooMuch`]: there are more pages than the limit.
    pub fn of((low, high): (u64, u64)) -> Result<Self, TableError> {
        Ok(Self { paged: Paged::of((low, high))?, low, high, end: low })
    }

    /// Adds what of a function is in this code.
    ///
    /// # Errors
    /// [`TableError::TooMuch`]: there are more rows than the limit.
    pub fn add(&mut self, function: Function<'_>) -> Result<(), TableError> {
        if function.start.saturating_sub(self.end) >= PADDING {
            self.paged.put(self.end, u32::from(Rules::GAP));
        }
        let before = function.rows.partition_point(|(at, _)| *at <= self.low);
        let (before, rows) = function.rows.split_at(before);
        if let Some((_, rule)) = before.last().filter(|_| function.end.min(function.next) > self.low) {
            self.paged.put(self.low, u32::from(*rule));
        }
        for (at, rule) in rows.iter().take_while(|(at, _)| *at < function.next.min(self.high)) {
            self.paged.put(*at, u32::from(*rule));
        }
        self.end = function.end.min(function.next).clamp(self.low, self.high);
        self.paged.within(MAX_WORDS)
    }

    /// The table, when all functions are in it.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn finish(mut self, rules: Rules) -> Result<Table, TableError> {
        if self.end < self.high {
            self.paged.put(self.end, u32::from(Rules::GAP));
        }
        self.paged.finish();
        self.paged.within(MAX_WORDS)?;
        let Paged { page, index, rows, .. } = self.paged;
        Ok(Table { page, index, rows, rules: rules.rules, read: rules.read, functions: rules.functions })
    }
}

struct Paged {
    page: u64,
    pages: usize,
    index: Vec<u32>,
    rows: Vec<u32>,
    /// The rule that holds where the rows end so far.
    rule: u32,
}

impl Paged {
    /// No rule yet, for the code between two addresses.
    fn of((low, high): (u64, u64)) -> Result<Self, TableError> {
        let page = low >> PAGE_SHIFT;
        let pages = (high.div_ceil(1 << PAGE_SHIFT)).saturating_sub(page);
        if pages > MAX_PAGES {
            return Err(TableError::TooMuch("pages of code"));
        }
        let index = Vec::with_capacity(pages as usize + 1);
        Ok(Self { page, pages: pages as usize, index, rows: Vec::new(), rule: u32::from(Rules::GAP) })
    }

    /// From this address on, this rule holds.
    fn put(&mut self, address: u64, rule: u32) {
        if rule == self.rule {
            return;
        }
        let nth = (address >> PAGE_SHIFT).saturating_sub(self.page) as usize;
        let offset = (address & 0xfff) as u32;
        if nth >= self.pages {
            return;
        }
        // Pages before it, and its own start where the rule so far still holds there.
        while self.index.len() < nth {
            self.begin(self.rule);
        }
        if self.index.len() == nth {
            self.begin(if offset == 0 { rule } else { self.rule });
        }
        self.rule = rule;
        let start = self.index.last().copied().unwrap_or(0) as usize;
        match self.rows.get_mut(start..).unwrap_or_default().last_mut() {
            // Twice at one address: the later one.
            Some(last) if *last >> profiler_ebpf::RULE_BITS == offset => *last = row(offset, rule),
            _ => self.rows.push(row(offset, rule)),
        }
    }

    fn within(&self, words: usize) -> Result<(), TableError> {
        let all = self.rows.len() + self.index.len();
        if all > words { Err(TableError::TooMuch("rows")) } else { Ok(()) }
    }

    fn begin(&mut self, rule: u32) {
        self.index.push(self.rows.len() as u32);
        self.rows.push(row(0, rule));
    }

    fn finish(&mut self) {
        while self.index.len() < self.pages {
            self.begin(self.rule);
        }
        self.index.push(self.rows.len() as u32);
        self.rows.shrink_to_fit();
    }
}
