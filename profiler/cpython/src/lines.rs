//! Lines of instructions: a code object's table in, a line out.
//!
//! Up to 3.9 `co_lnotab` (`Objects/lnotab_notes.txt`), in 3.10 `co_linetable` (PEP 626), from 3.11 on locations
//! (`Objects/locations.md`). Instructions have two bytes each. A table that ends early tells nothing.

use super::offsets::LineTable;

/// The line of an instruction; None where the table does not tell.
pub fn line(kind: LineTable, table: &[u8], first: u32, unit: u64) -> Option<u32> {
    let offset = unit.checked_mul(2)?;
    let line = match kind {
        LineTable::Pairs => pairs(table, first.into(), offset),
        LineTable::Ranges => ranges(table, first.into(), offset),
        LineTable::Locations => locations(table, first.into(), offset),
    };
    line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line <= i32::MAX as u32)
}

/// Pairs of bytes: how far the address goes on, and by how much the line changes then.
fn pairs(table: &[u8], mut line: i64, offset: u64) -> Option<i64> {
    let mut at = 0u64;
    for pair in table.chunks_exact(2) {
        let [bytes, lines] = *pair else { break };
        at += u64::from(bytes);
        if at > offset {
            break;
        }
        line += i64::from(lines as i8);
    }
    Some(line)
}

/// Pairs of bytes: how long a range is, and by how much its line differs from that before; -128: it has none.
fn ranges(table: &[u8], mut line: i64, offset: u64) -> Option<i64> {
    let mut end = 0u64;
    for pair in table.chunks_exact(2) {
        let [bytes, lines] = *pair else { break };
        let none = lines as i8 == i8::MIN;
        line += if none { 0 } else { i64::from(lines as i8) };
        end += u64::from(bytes);
        if offset < end {
            return (!none).then_some(line);
        }
    }
    None
}

/// Entries of some bytes, the first of which has bit 7: what follows, and for how many instructions it holds.
fn locations(table: &[u8], mut line: i64, offset: u64) -> Option<i64> {
    let (mut end, mut rest) = (0u64, table);
    while let Some((first, mut tail)) = rest.split_first() {
        if first & 0x80 == 0 {
            return None;
        }
        let kind = first >> 3 & 0xf;
        match kind {
            0..=9 | 15 => {}
            10..=12 => line += i64::from(kind) - 10,
            _ => line += signed(&mut tail)?,
        }
        end += u64::from((first & 7) + 1) * 2;
        if offset < end {
            return (kind != 15).then_some(line);
        }
        let next = tail.iter().position(|byte| byte & 0x80 != 0)?;
        rest = tail.get(next..)?;
    }
    None
}

/// A number of six bits a byte, low ones first; bit 6: more follow. Its lowest bit is the sign.
fn signed(bytes: &mut &[u8]) -> Option<i64> {
    let (mut value, mut shift) = (0u64, 0u32);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x3f).checked_shl(shift)?;
        shift += 6;
        if byte & 0x40 == 0 {
            break;
        }
        if shift > 36 {
            return None;
        }
    }
    let size = (value >> 1) as i64;
    Some(if value & 1 == 0 { size } else { -size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairs_of_3_8() {
        // Of lnotab_notes.txt: lines 1, 2 at 6, 7 at 50, 207 at 350, 208 at 361.
        let table = [6, 1, 44, 5, 255, 0, 45, 127, 0, 73, 11, 1];
        for (offset, expected) in [(0, 1), (4, 1), (6, 2), (48, 2), (50, 7), (348, 7), (350, 207), (362, 208)]
        {
            assert_eq!(line(LineTable::Pairs, &table, 1, offset / 2), Some(expected), "{offset}");
        }
    }

    #[test]
    fn ranges_of_3_10() {
        let table = [6, 1, 4, 0x80, 8, 0xff];
        let lines = |unit| line(LineTable::Ranges, &table, 10, unit);
        assert_eq!(
            [lines(0), lines(2), lines(3), lines(5), lines(9)],
            [Some(11), Some(11), None, Some(10), None]
        );
    }

    #[test]
    fn locations_of_3_11() {
        // A short form, one line further, a long form five lines back, none.
        let table = [0x80, 0x00, 0x80 | 11 << 3 | 1, 0, 0, 0x80 | 14 << 3, 11, 1, 1, 1, 0x80 | 15 << 3];
        let lines = |unit| line(LineTable::Locations, &table, 10, unit);
        assert_eq!(
            [lines(0), lines(1), lines(2), lines(3), lines(4), lines(5)],
            [Some(10), Some(11), Some(11), Some(6), None, None]
        );
    }

    proptest! {
        #[test]
        fn takes_any_bytes(table in proptest::collection::vec(any::<u8>(), 0..200), first: u32, unit: u64) {
            for kind in [LineTable::Pairs, LineTable::Ranges, LineTable::Locations] {
                line(kind, &table, first, unit);
            }
        }
    }
}
