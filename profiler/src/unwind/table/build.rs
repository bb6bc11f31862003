//! Compacts rules to a [`Table`]: rows of four bytes, by page.
//!
//! Functions are put in order; where two claim an address the later one has it. Between them is a gap, unless that is no
//! more than padding. Neighbours with one rule become one row, but each page begins with a row of its own, so that a
//! search stays in the page. Limits: pages and words.

use super::TableError;
use super::rules::{Entry, Rules};
use profiler_ebpf::{PAGE_SHIFT, UnwindRule, row};

/// Largest code: 1 GiB.
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
    /// Different rules.
    pub rules: Vec<UnwindRule>,
    /// Rows as they were read.
    pub read: usize,
    /// Functions.
    pub functions: usize,
}

impl Table {
    /// Pages of code.
    pub fn pages(&self) -> u32 {
        (self.index.len().saturating_sub(1)) as u32
    }

    /// Words that the walker is given.
    pub fn words(&self) -> usize {
        self.index.len() + self.rows.len()
    }

    /// These words, with `numbers` for the rules.
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

/// Puts rows in order and in pages.
pub fn build((low, high): (u64, u64), rules: Rules) -> Result<Table, TableError> {
    let page = low >> PAGE_SHIFT;
    let pages = (high.div_ceil(1 << PAGE_SHIFT)).saturating_sub(page);
    if pages > MAX_PAGES {
        return Err(TableError::TooMuch("pages of code"));
    }
    let mut numbers = rules.rules.clone();
    let gap = numbers.len() as u32;
    numbers.push(UnwindRule::GAP);
    let mut paged = Paged {
        page,
        pages: pages as usize,
        index: Vec::with_capacity(pages as usize + 1),
        rows: Vec::new(),
        rule: gap,
    };
    let mut entries = rules.entries;
    entries.sort_by_key(|entry| entry.start);
    let mut end = low;
    for (i, entry) in entries.iter().enumerate() {
        let next = entries.get(i + 1).map_or(u64::MAX, |next: &Entry| next.start);
        if entry.start >= high || entry.end <= low || next <= entry.start {
            continue;
        }
        if entry.start.saturating_sub(end) >= PADDING {
            paged.put(end, gap);
        }
        let rows = rules.rows.get(entry.row as usize..(entry.row + entry.rows) as usize).unwrap_or_default();
        for (at, rule) in rows {
            if *at < next {
                paged.put((*at).max(low), u32::from(*rule));
            }
        }
        end = entry.end.min(next).min(high);
        if paged.rows.len() > MAX_WORDS {
            return Err(TableError::TooMuch("rows"));
        }
    }
    if end < high {
        paged.put(end, gap);
    }
    paged.finish();
    if paged.rows.len() + paged.index.len() > MAX_WORDS {
        return Err(TableError::TooMuch("rows"));
    }
    Ok(Table {
        page,
        index: paged.index,
        rows: paged.rows,
        rules: numbers,
        read: rules.read,
        functions: entries.len(),
    })
}

struct Paged {
    page: u64,
    pages: usize,
    index: Vec<u32>,
    rows: Vec<u32>,
    /// The rule that holds.
    rule: u32,
}

impl Paged {
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
