//! HotSpot's compressed numbers and what is written in them: scopes of debug info and tables of lines.
//!
//! UNSIGNED5 (compressedStream.hpp, unsigned5.hpp): up to five bytes, six bits from each but the last. From
//! JDK 20 on no byte is 0. Layouts: debugInfoRec.cpp, scopeDesc.cpp, constMethod.hpp, method.cpp (JDK 8 to
//! 25). In: bytes that were read from a JVM. Out: values, or None where the bytes end.

/// Scopes in a chain, at most: C2 inlines 9 deep by itself (MaxInlineLevel 15), more where it is forced.
pub const MAX_DEPTH: usize = 64;
/// Entries of a line table that are looked at: a method has at most 65,535 bytes of code.
const MAX_LINES: usize = 65_536;

/// Reads numbers one after the other.
pub struct Numbers<'a> {
    bytes: &'a [u8],
    /// Subtracted from each byte: 1 from JDK 20 on, else 0.
    excluded: u8,
}

impl<'a> Numbers<'a> {
    /// Numbers from the first of `bytes` on.
    pub fn new(bytes: &'a [u8], excluded: u8) -> Self {
        Self { bytes, excluded }
    }
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }
    /// The next number.
    pub fn unsigned(&mut self) -> Option<u32> {
        let mut sum = 0u32;
        for index in 0..5 {
            let byte = self.byte()?;
            sum = sum.wrapping_add(u32::from(byte.checked_sub(self.excluded)?) << (6 * index));
            if byte < 192 {
                break;
            }
        }
        Some(sum)
    }
    /// The next number, with a sign in its lowest bit.
    pub fn signed(&mut self) -> Option<i32> {
        self.unsigned().map(|n| (n >> 1) as i32 ^ -((n & 1) as i32))
    }
}

/// A method in a chain of inlining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Which of the nmethod's metadata, counted from 1.
    pub method: u32,
    /// Index of the bytecode; negative: before the first.
    pub bci: i32,
}

/// The chain that begins at `offset` of `scopes`, innermost first; None when it makes no sense.
pub fn chain(scopes: &[u8], offset: u32, excluded: u8) -> Option<Vec<Scope>> {
    let mut found = Vec::new();
    let mut at = offset;
    // Offset 0 stands for no scope.
    while at != 0 {
        let mut numbers = Numbers::new(scopes.get(at as usize..)?, excluded);
        let (sender, method, bci) = (numbers.unsigned()?, numbers.unsigned()?, numbers.unsigned()?);
        // What calls was written before what is called.
        if sender >= at || found.len() >= MAX_DEPTH {
            return None;
        }
        found.push(Scope { method, bci: (bci as i32).wrapping_sub(1) });
        at = sender;
    }
    (!found.is_empty()).then_some(found)
}

/// The line of the bytecode at `bci` by a compressed table; 0 when it does not tell.
pub fn line(table: &[u8], bci: u32, excluded: u8) -> u32 {
    let (mut best_at, mut best) = (0, 0);
    for (at, line) in Lines::of(table, excluded).take(MAX_LINES) {
        let Ok(at) = u32::try_from(at) else { continue };
        if at == bci {
            best = line;
            break;
        }
        if at < bci && at >= best_at {
            (best_at, best) = (at, line);
        }
    }
    u32::try_from(best).ok().filter(|line| *line < 65_536).unwrap_or(0)
}

/// Bytes of the table that `table` begins with: without what follows its end.
pub fn table_len(table: &[u8], excluded: u8) -> usize {
    let mut lines = Lines::of(table, excluded);
    lines.by_ref().take(MAX_LINES).for_each(drop);
    table.len() - lines.numbers.bytes.len()
}

/// Index of a bytecode and its line, in no order.
struct Lines<'a> {
    numbers: Numbers<'a>,
    at: i32,
    line: i32,
}

impl<'a> Lines<'a> {
    fn of(table: &'a [u8], excluded: u8) -> Self {
        Self { numbers: Numbers::new(table, excluded), at: 0, line: 0 }
    }
}

impl Iterator for Lines<'_> {
    type Item = (i32, i32);

    fn next(&mut self) -> Option<(i32, i32)> {
        let (bytes, lines) = match self.numbers.byte()? {
            0 => return None,
            0xff => (self.numbers.signed()?, self.numbers.signed()?),
            both => (i32::from(both >> 3), i32::from(both & 7)),
        };
        (self.at, self.line) = (self.at.wrapping_add(bytes), self.line.wrapping_add(lines));
        Some((self.at, self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As HotSpot writes it (unsigned5.hpp).
    fn write(mut number: u32, excluded: u8, out: &mut Vec<u8>) {
        let low = 192 - u32::from(excluded);
        for _ in 0..4 {
            if number < low {
                break;
            }
            number -= low;
            out.push((u32::from(excluded) + low + number % 64) as u8);
            number /= 64;
        }
        out.push((number + u32::from(excluded)) as u8);
    }

    #[test]
    fn chains_lead_outwards() {
        for excluded in [0, 1] {
            let mut bytes = vec![0xff];
            for number in [0, 1, 6] {
                write(number, excluded, &mut bytes);
            }
            let inner = bytes.len() as u32;
            for number in [1, 300, 0] {
                write(number, excluded, &mut bytes);
            }
            let outer = Scope { method: 1, bci: 5 };
            assert_eq!(chain(&bytes, 1, excluded), Some(vec![outer]));
            assert_eq!(chain(&bytes, inner, excluded), Some(vec![Scope { method: 300, bci: -1 }, outer]));
            assert_eq!(chain(&bytes, 0, excluded), None);
            assert_eq!(chain(&bytes, 1000, excluded), None);
            // A sender that does not fall.
            let mut endless = vec![0xff];
            for number in [1, 1, 1] {
                write(number, excluded, &mut endless);
            }
            assert_eq!(chain(&endless, 1, excluded), None);
        }
    }

    #[test]
    fn lines_of_a_table() {
        // Lines 10 at 0, 12 at 3, 700 at 8, then back to 11 at 5.
        for excluded in [0, 1] {
            let pair = |table: &mut Vec<u8>, bytes: i32, lines: i32| {
                table.push(0xff);
                for n in [bytes, lines] {
                    write(((n << 1) ^ (n >> 31)) as u32, excluded, table);
                }
            };
            let mut table = Vec::new();
            pair(&mut table, 0, 10);
            table.push(3 << 3 | 2);
            pair(&mut table, 5, 688);
            pair(&mut table, -3, -689);
            table.push(0);
            let lines = [0, 2, 3, 4, 5, 7, 8, 900].map(|bci| line(&table, bci, excluded));
            table.extend([1, 2, 3]);
            assert_eq!(table_len(&table, excluded), table.len() - 3);
            assert_eq!(lines, [10, 10, 12, 12, 11, 11, 700, 700], "{excluded}");
        }
        assert_eq!(line(&[3 << 3 | 2, 0], 5, 0), 2);
        assert_eq!(line(&[], 5, 0), 0);
    }

    proptest! {
        #[test]
        fn numbers_come_back(number: u32, excluded in 0..2u8) {
            let mut bytes = Vec::new();
            write(number, excluded, &mut bytes);
            prop_assert_eq!(Numbers::new(&bytes, excluded).unsigned(), Some(number));
        }
        #[test]
        fn anything_ends(bytes in proptest::collection::vec(any::<u8>(), 0..300), at: u16, excluded in 0..2u8) {
            let _ = chain(&bytes, u32::from(at), excluded);
            let _ = line(&bytes, u32::from(at), excluded);
        }
    }
}
