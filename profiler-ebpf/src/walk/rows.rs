//! Looks up the unwind rule of an address: the range of the process that it lies in, the page's rows, the row.
//!
//! In: the walk's list and an address. Out: the scratch's rule, or why there is none. All three searches are bounded,
//! and no number of the maps is trusted.
#![allow(unsafe_code)]

use super::state::Rule;
use crate::maps::{RULES, SLABS, Scratch};
use core::ptr::{addr_of, addr_of_mut, read_volatile, write_volatile};
use profiler_ebpf::{
    CfaRule, CodeRange, GRANULE_WORDS, MAX_RANGES, NoTable, PAGE_SHIFT, RULE_BITS, SLAB_GRANULES, SLAB_WORDS,
    StackEnd, arch,
};

/// First word of a cached [`Rule`] that is a word of `UnwindRule`. No JVM's has this kind.
pub const NATIVE: u64 = 0x80 << 56;
/// Rows of a page, at most.
const MAX_ROWS: u32 = 1 << PAGE_SHIFT;

/// A word of the space.
#[inline(always)]
pub fn word(at: u32) -> Option<u32> {
    let granule = SLABS.get_value(at / SLAB_WORDS, &(at / GRANULE_WORDS % SLAB_GRANULES))?;
    granule.get((at % GRANULE_WORDS) as usize).copied()
}

/// The first page and the length of a range of the process.
#[inline(always)]
fn key(list: u32, index: u32) -> Option<u64> {
    let at = list.wrapping_add(index.wrapping_mul(CodeRange::WORDS));
    let granule = SLABS.get_value(at / SLAB_WORDS, &(at / GRANULE_WORDS % SLAB_GRANULES))?;
    let at = (at % GRANULE_WORDS & !1) as usize;
    Some(u64::from(*granule.get(at)?) | u64::from(*granule.get(at + 1)?) << 32)
}

/// The rule of an address, into the scratch's; 0, or the `StackEnd` that tells why there is none.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(never)]
pub unsafe fn find(scratch: *mut Scratch, address: u64) -> u64 {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let page = address >> PAGE_SHIFT;
        if let Some(rule) = arch::frameless(page) {
            (*scratch).rule = Rule { what: NATIVE, how: rule.word() };
            return 0;
        }
        let Some((table, nth)) = range(scratch, page) else { return StackEnd::TableNotReady as u64 };
        if table < GRANULE_WORDS {
            return if table == NoTable::Building as u32 {
                StackEnd::TableNotReady as u64
            } else if table == NoTable::None as u32 {
                StackEnd::NoTable as u64
            } else {
                StackEnd::TableRefused as u64
            };
        }
        let index = table.wrapping_add(nth);
        let (Some(from), Some(to)) = (word(index), word(index.wrapping_add(1))) else {
            return StackEnd::TableNotReady as u64;
        };
        let rows = to.wrapping_sub(from);
        let Some(row) = row(scratch, table.wrapping_add(from), rows, address as u32 % MAX_ROWS) else {
            return StackEnd::NoUnwindRow as u64;
        };
        let Some(rule) = RULES.get(row & ((1 << RULE_BITS) - 1)) else { return StackEnd::NoUnwindRow as u64 };
        let rule = *rule;
        if rule & 0xff == CfaRule::Gap as u64 {
            return StackEnd::NoUnwindRow as u64;
        }
        (*scratch).rule = Rule { what: NATIVE, how: rule };
        0
    }
}

/// Which page of the range with this key it is, if it is in there.
#[inline(always)]
fn nth(key: u64, page: u64) -> Option<u64> {
    let nth = page.wrapping_sub(key >> CodeRange::PAGES_BITS);
    (nth < key & CodeRange::MAX_PAGES).then_some(nth)
}

/// Searches the range with this page: its table, and which page of the file's code it is.
#[inline(always)]
unsafe fn range(scratch: *mut Scratch, page: u64) -> Option<(u32, u32)> {
    // SAFETY: as above.
    unsafe {
        let walk = addr_of!((*scratch).walk);
        let (list, ranges) = ((*walk).list as u32, (*walk).ranges as u32);
        let wanted = page << CodeRange::PAGES_BITS | CodeRange::MAX_PAGES;
        // The position is kept in the map, so that the two ways through a step meet again before the next: the
        // verifier would else look at all their combinations.
        let at = addr_of_mut!((*scratch).walk.at);
        // Mostly the one that was found last: that of the JVM's library.
        let last = (*walk).range;
        write_volatile(at, last);
        if last >= u64::from(ranges) || nth(key(list, last as u32)?, page).is_none() {
            write_volatile(at, 0);
            let mut half = MAX_RANGES / 2;
            while half > 0 {
                let next = read_volatile(at) as u32 + half;
                if next < ranges && key(list, next)? <= wanted {
                    write_volatile(at, u64::from(next));
                }
                half /= 2;
            }
        }
        let found = read_volatile(at) as u32;
        let nth = nth(key(list, found)?, page)?;
        (*scratch).walk.range = u64::from(found);
        let at = list.wrapping_add(found.wrapping_mul(CodeRange::WORDS));
        let (table, first) = (word(at.wrapping_add(2))?, word(at.wrapping_add(3))?);
        Some((table, first.wrapping_add(nth as u32)))
    }
}

/// Searches the row that holds at an offset in a page.
#[inline(always)]
unsafe fn row(scratch: *mut Scratch, rows: u32, count: u32, offset: u32) -> Option<u32> {
    if count == 0 || count > MAX_ROWS {
        return None;
    }
    // SAFETY: as above.
    unsafe {
        let at = addr_of_mut!((*scratch).walk.at);
        write_volatile(at, 0);
        let mut half = MAX_ROWS / 2;
        while half > 0 {
            let next = read_volatile(at) as u32 + half;
            if next < count && word(rows.wrapping_add(next))? >> RULE_BITS <= offset {
                write_volatile(at, u64::from(next));
            }
            half /= 2;
        }
        word(rows.wrapping_add(read_volatile(at) as u32))
    }
}
