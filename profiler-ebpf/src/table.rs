//! Unwind tables of native code, as the daemon writes them and the walker reads them.
//!
//! All tables of the node lie in one space of 32-bit words, addressed by word and backed by slabs that are made when
//! they are needed. A file's table is an index with a word for each 4 KiB page of its code (where the page's rows
//! begin, counted from the index) and one more, then the rows, ordered. A row holds from its offset in the page to
//! the next row's; the first row of a page has offset 0. What a row says is a number of a [`UnwindRule`]. A process
//! has a list of [`CodeRange`]s in the same space. The walker trusts none of it: every index is bounded where it is
//! used, every search in steps.

/// Words that are written and read at once: a cache line.
pub const GRANULE_WORDS: u32 = 16;
/// Granules of a slab: 256 KiB.
pub const SLAB_GRANULES: u32 = 4096;
/// Words of a slab.
pub const SLAB_WORDS: u32 = GRANULE_WORDS * SLAB_GRANULES;
/// Slabs at most: 64 MiB. The daemon keeps to less.
pub const MAX_SLABS: u32 = 256;
/// Different rules of all files, at most: 128 KiB. All of glibc has 304, libjvm 60.
pub const MAX_RULES: u32 = 16_384;
/// Processes with a list, at most. 330 KiB.
pub const MAX_TABLED: u32 = 4096;
/// Ranges of one process, at most; a power of two.
pub const MAX_RANGES: u32 = 1024;
/// Bytes of a page, as bits.
pub const PAGE_SHIFT: u32 = 12;
/// Bits of a row that are the rule's number.
pub const RULE_BITS: u32 = 20;

/// Where a process's list is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTables {
    /// Address of its first range.
    pub list: u32,
    /// How many; [`Self::INHERITED`].
    pub ranges: u32,
    /// A number that no other list had whose addresses meant other code; never 0, highest bit set.
    pub incarnation: u32,
    /// What the list's [`STAMP_WORDS`] begin with, as long as it is this list: a process that was forked has its
    /// parent's, which the daemon may have given up meanwhile.
    pub stamp: u32,
}

/// Words before a list's first range: its stamp, and zeros.
pub const STAMP_WORDS: u32 = 4;

/// A piece of a process's memory that holds code. Four words, of which the first two are the key, low half first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRange {
    /// Its first page.
    pub page: u64,
    /// How many.
    pub pages: u32,
    /// Address of the file's table, or a [`NoTable`].
    pub table: u32,
    /// Which page of the file's code the first one is.
    pub first: u32,
}

impl ProcessTables {
    /// In `ranges`: the list was made for the process that this one was forked from. It stays as it is when this
    /// one gets its own.
    pub const INHERITED: u32 = 1 << 31;
}

impl CodeRange {
    /// Words of one in a list.
    pub const WORDS: u32 = 4;
    /// Bits of the key that count pages.
    pub const PAGES_BITS: u32 = 28;
    /// Most pages of one: a tebibyte.
    pub const MAX_PAGES: u64 = (1 << Self::PAGES_BITS) - 1;

    /// As it lies in the list.
    pub const fn words(self) -> [u32; 4] {
        let key = self.page << Self::PAGES_BITS | self.pages as u64 & Self::MAX_PAGES;
        [key as u32, (key >> 32) as u32, self.table, self.first]
    }
}

/// Why a range has no table; no table is at such an address.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTable {
    /// It is being built.
    Building = 1,
    /// There is none to be had: memory without a file, or a file without unwind information.
    None = 2,
    /// The file's unwind information was refused, or there was no room for its table.
    Refused = 3,
}

/// How to get from a frame to its caller's: what .eh_frame says of it, as far as it occurs. The CFA is the caller's stack
/// pointer; sp and fp are the registers that the architecture has for stack and frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnwindRule {
    /// Where the CFA is.
    pub cfa: CfaRule,
    /// Bytes; see `cfa`.
    pub cfa_offset: i32,
    /// Where the caller's fp is.
    pub fp: FpRule,
    /// Bytes; see `fp` and `return_address`.
    pub fp_offset: i16,
    /// Where the return address is.
    pub return_address: ReturnRule,
}

/// Where the caller's stack pointer is.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CfaRule {
    /// No rule for this code.
    Gap = 0,
    /// sp and the offset.
    Sp = 1,
    /// fp and the offset.
    Fp = 2,
    /// The word at sp and the offset.
    AtSp = 3,
    /// The word at fp and the offset: a function that aligns its stack.
    AtFp = 4,
    /// sp and the offset; a word more where the address's low four bits are at least `fp_offset`: a table of jumps.
    Plt = 5,
    /// A signal's frame: the interrupted sp is kept at sp and the offset, the other registers around
    /// ([`crate::arch::interrupted`]).
    Signal = 6,
    /// The first frame of a thread.
    End = 7,
    /// A rule that needs what the walker does not follow.
    Unsupported = 8,
}

/// Where the caller's fp is.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FpRule {
    /// Still in the register.
    Same = 0,
    /// At the CFA and the offset.
    AtCfa = 1,
    /// At fp and the offset.
    AtFp = 2,
}

/// Where the return address is.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReturnRule {
    /// In the word below the CFA, where a call pushes it.
    BelowCfa = 0,
    /// In the link register: of a frame that was interrupted, no other.
    Link = 1,
    /// In the word above the caller's fp: a frame record.
    AboveFp = 2,
    /// At the CFA and `fp_offset`, while fp is still in the register.
    AtCfa = 3,
}

impl UnwindRule {
    /// No rule.
    pub const GAP: Self = Self::plain(CfaRule::Gap);
    /// See [`CfaRule::End`].
    pub const END: Self = Self::plain(CfaRule::End);
    /// See [`CfaRule::Unsupported`].
    pub const UNSUPPORTED: Self = Self::plain(CfaRule::Unsupported);

    const fn plain(cfa: CfaRule) -> Self {
        Self { cfa, cfa_offset: 0, fp: FpRule::Same, fp_offset: 0, return_address: ReturnRule::BelowCfa }
    }

    /// As the map has it: `cfa` in bits 0 to 7, `fp` in 8 to 11, `return_address` in 12 to 15, fp's offset in 16 to 31,
    /// that of `cfa` above.
    pub const fn word(self) -> u64 {
        self.cfa as u64
            | (self.fp as u64) << 8
            | (self.return_address as u64) << 12
            | (self.fp_offset as u16 as u64) << 16
            | (self.cfa_offset as u32 as u64) << 32
    }

    /// The rule of such a word, if it is one.
    pub const fn from_word(word: u64) -> Option<Self> {
        let cfa = match word as u8 {
            0 => CfaRule::Gap,
            1 => CfaRule::Sp,
            2 => CfaRule::Fp,
            3 => CfaRule::AtSp,
            4 => CfaRule::AtFp,
            5 => CfaRule::Plt,
            6 => CfaRule::Signal,
            7 => CfaRule::End,
            8 => CfaRule::Unsupported,
            _ => return None,
        };
        let fp = match word >> 8 & 0xf {
            0 => FpRule::Same,
            1 => FpRule::AtCfa,
            2 => FpRule::AtFp,
            _ => return None,
        };
        let return_address = match word >> 12 & 0xf {
            0 => ReturnRule::BelowCfa,
            1 => ReturnRule::Link,
            2 => ReturnRule::AboveFp,
            3 => ReturnRule::AtCfa,
            _ => return None,
        };
        Some(Self {
            cfa,
            cfa_offset: (word >> 32) as i32,
            fp,
            fp_offset: (word >> 16) as i16,
            return_address,
        })
    }
}

/// A row.
pub const fn row(offset_in_page: u32, rule: u32) -> u32 {
    offset_in_page << RULE_BITS | rule & ((1 << RULE_BITS) - 1)
}

const _: () = {
    assert!(size_of::<ProcessTables>() == 16);
    assert!(MAX_RULES <= 1 << RULE_BITS);
    assert!(GRANULE_WORDS.is_multiple_of(CodeRange::WORDS) && STAMP_WORDS.is_multiple_of(CodeRange::WORDS));
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rules_word_is_the_rule() {
        let pushed = UnwindRule {
            cfa: CfaRule::Sp,
            cfa_offset: 16,
            fp: FpRule::AtCfa,
            fp_offset: -16,
            return_address: ReturnRule::BelowCfa,
        };
        // As tables on disk have it.
        assert_eq!(pushed.word(), 0x10_fff0_0101);
        for return_address in [ReturnRule::Link, ReturnRule::AboveFp, ReturnRule::AtCfa] {
            let rule = UnwindRule { return_address, ..pushed };
            assert_eq!(UnwindRule::from_word(rule.word()), Some(rule));
        }
        assert_eq!(UnwindRule::from_word(pushed.word()), Some(pushed));
        assert_eq!(UnwindRule::from_word(0x0301), None);
        assert_eq!(UnwindRule::from_word(0x4001), None);
    }
}
