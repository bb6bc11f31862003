//! Symbols in the order of their addresses, packed: some ten bytes each of a kernel's instead of 40.
//!
//! In: (address, name, a number more), ascending. Out: the last one that begins at or before an address. Blocks of
//! [`BLOCK`] symbols; each is its distance from the one before, how many bytes of the name are those of the name before
//! it, the rest of the name, the number; and the block is compressed (LZ4). A kernel with call padding has each function twice, as
//! `__pfx_name` and `name` (Linux 6.1, arch/x86): the prefix is a bit. Mangled names of C++ and Rust are long, and repeat their
//! neighbours' classes and modules, at the beginning and within.

/// Symbols of a block, which is read from its beginning.
const BLOCK: usize = 64;
/// Bytes after which a block ends all the same: as many are unpacked to find one symbol.
const BLOCK_BYTES: usize = 16 << 10;
const PREFIX: &str = "__pfx_";

/// The symbols, packed.
#[derive(Debug, Default)]
pub struct Packed {
    /// Each block is compressed, behind its size before that.
    blocks: Blocks,
    len: usize,
}

/// Blocks of symbols, in the order of their addresses.
#[derive(Debug, Default)]
pub struct Blocks {
    /// The first address of each, and where it begins in `bytes`.
    heads: Vec<(u64, u32)>,
    /// All of them, one behind the other.
    pub bytes: Vec<u8>,
}

/// Where an address is.
pub struct Found<'a> {
    /// The first address of the block.
    pub first: u64,
    /// The block.
    pub bytes: &'a [u8],
    /// The first address of the next block; the largest address where there is none.
    pub after: u64,
}

impl Blocks {
    /// What is put into `bytes` from now on is another block, whose first address this is.
    pub fn begin(&mut self, first: u64) {
        self.heads.push((first, self.bytes.len() as u32));
    }

    /// No more comes.
    pub fn end(&mut self) {
        self.heads.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }

    /// The block that begins last at or before an address.
    pub fn find(&self, address: u64) -> Option<Found<'_>> {
        let block = self.heads.partition_point(|(first, _)| *first <= address).checked_sub(1)?;
        let (first, at) = *self.heads.get(block)?;
        let (after, end) = self
            .heads
            .get(block + 1)
            .map_or((u64::MAX, self.bytes.len()), |(first, at)| (*first, *at as usize));
        Some(Found { first, bytes: self.bytes.get(at as usize..end)?, after })
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Bytes of memory that they take.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.heads.capacity() * size_of::<(u64, u32)>()
    }
}

/// A symbol, unpacked.
#[derive(Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Address of the function's first byte.
    pub start: u64,
    /// The name as it was given in.
    pub name: String,
    /// The number that was given in with it.
    pub more: u64,
    /// Where the next one begins; the largest address where there is none.
    pub next: u64,
}

/// Packs symbols in the order of their addresses, no two at one address.
#[derive(Default)]
pub struct Packer {
    packed: Packed,
    block: Block,
}

/// A block that is being filled.
#[derive(Default)]
struct Block {
    first: u64,
    bytes: Vec<u8>,
    len: usize,
    /// Address and name of the last one.
    before: (u64, String),
}

impl Packer {
    /// Adds one behind those that there are.
    pub fn push(&mut self, start: u64, name: &str, more: u64) {
        if self.block.len == BLOCK || self.block.bytes.len() >= BLOCK_BYTES {
            self.end_block();
        }
        let (prefix, stem) = name.strip_prefix(PREFIX).map_or((0, name), |stem| (1, stem));
        let Block { first, bytes, len, before } = &mut self.block;
        if *len == 0 {
            (*first, before.0) = (start, start);
            before.1.clear();
        }
        let mut shared = before.1.bytes().zip(stem.bytes()).take_while(|(a, b)| a == b).count();
        while !stem.is_char_boundary(shared) {
            shared -= 1;
        }
        let rest = stem.get(shared..).unwrap_or_default();
        put(bytes, start - before.0);
        put(bytes, (shared as u64) << 1 | prefix);
        put(bytes, rest.len() as u64);
        bytes.extend_from_slice(rest.as_bytes());
        put(bytes, more);
        before.0 = start;
        before.1.truncate(shared);
        before.1.push_str(rest);
        *len += 1;
    }

    fn end_block(&mut self) {
        let Block { first, bytes, len, .. } = &mut self.block;
        self.packed.blocks.begin(*first);
        self.packed.blocks.bytes.extend(lz4_flex::block::compress_prepend_size(bytes));
        self.packed.len += *len;
        bytes.clear();
        *len = 0;
    }

    /// Bytes of memory that they take so far.
    pub fn bytes(&self) -> usize {
        self.packed.bytes()
    }

    /// All of them.
    pub fn done(mut self) -> Packed {
        if self.block.len > 0 {
            self.end_block();
        }
        self.packed.blocks.end();
        self.packed
    }
}

impl Packed {
    /// Packs symbols in the order of their addresses, no two at one address.
    pub fn of<'a>(symbols: impl Iterator<Item = (u64, &'a str, u64)>) -> Self {
        let mut packer = Packer::default();
        symbols.for_each(|(start, name, more)| packer.push(start, name, more));
        packer.done()
    }

    /// The last symbol that begins at or before `address`.
    pub fn find(&self, address: u64) -> Option<Symbol> {
        let Found { first, bytes, after } = self.blocks.find(address)?;
        let unpacked = lz4_flex::block::decompress_size_prepended(bytes).ok()?;
        let mut rest = unpacked.as_slice();
        let (mut start, mut stem, mut found, mut next) = (first, Vec::new(), None, after);
        while !rest.is_empty() {
            start += take(&mut rest)?;
            if start > address {
                next = start;
                break;
            }
            let shared = take(&mut rest)?;
            stem.truncate((shared >> 1) as usize);
            let len = take(&mut rest)? as usize;
            let (more, after) = rest.split_at_checked(len)?;
            stem.extend_from_slice(more);
            rest = after;
            found = Some((start, shared & 1 == 1, take(&mut rest)?));
        }
        let (start, prefix, more) = found?;
        let stem = String::from_utf8(stem).ok()?;
        Some(Symbol { start, name: if prefix { format!("{PREFIX}{stem}") } else { stem }, more, next })
    }

    /// How many symbols there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> usize {
        self.blocks.memory()
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that there are more (LEB128).
pub fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// What was put there; None: it does not end.
pub fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            symbols in proptest::collection::btree_map(
                any::<u64>(), ("(__pfx_)?[a-cé]{0,6}(\\.[a-z]{1,300})?", any::<u64>()), 0..100),
            asked in any::<u64>(),
        ) {
            let symbols: BTreeMap<u64, (String, u64)> = symbols;
            let packed = Packed::of(symbols.iter().map(|(start, (name, more))| (*start, name.as_str(), *more)));
            prop_assert_eq!(packed.len(), symbols.len());
            let near = symbols.keys().flat_map(|start| [*start, start.saturating_sub(1), start.saturating_add(1)]);
            for address in near.chain([0, asked, u64::MAX]) {
                let next = address.checked_add(1).and_then(|above| symbols.range(above..).next());
                let expected = symbols.range(..=address).next_back().map(|(start, (name, more))| Symbol {
                    start: *start, name: name.clone(), more: *more, next: next.map_or(u64::MAX, |(next, _)| *next) });
                prop_assert_eq!(packed.find(address), expected);
            }
        }
    }

    #[test]
    fn padding_costs_little() {
        let names: Vec<String> = (0..1000).map(|i| format!("a_function_of_some_length_{i}")).collect();
        let padded: Vec<String> =
            names.iter().flat_map(|name| [format!("{PREFIX}{name}"), name.clone()]).collect();
        let bytes = |names: &[String]| {
            Packed::of(names.iter().enumerate().map(|(at, name)| (16 * at as u64, name.as_str(), 0))).bytes()
        };
        assert!(bytes(&padded) < bytes(&names) + 8 * names.len(), "{} {}", bytes(&padded), bytes(&names));
    }
}
