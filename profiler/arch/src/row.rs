//! A row of unwind information as an architecture reads it, and the expressions that all have.

/// A row of unwind information: where a caller's registers are, from one address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Where the caller's stack pointer is.
    pub cfa: Cfa<'a>,
    /// Where the caller's frame pointer is.
    pub fp: Place<'a>,
    /// Where the return address is.
    pub return_address: Place<'a>,
}

/// Where the caller's stack pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cfa<'a> {
    /// The value of a register, and bytes to add.
    Register(u16, i64),
    /// What a DWARF expression computes: its bytes.
    Expression(&'a [u8]),
}

/// Where a register's value in the caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// The row does not tell: as the ABI has it.
    Untold,
    /// The value is still in the register.
    Same,
    /// There is no such value: the outermost frame has no caller.
    Undefined,
    /// In memory, so many bytes from the CFA.
    AtCfa(i64),
    /// In memory, at the address that a DWARF expression computes: its bytes.
    Expression(&'a [u8]),
    /// In a way in which the walker does not look for it.
    Other,
}

/// DWARF's operation `bregN` less N (DWARF 5, 7.7.1).
const BREG0: u8 = 0x70;
/// The operation `breg31`.
const BREG31: u8 = 0x8f;

/// `bregN offset`, and what follows.
pub(super) fn based(expression: &[u8]) -> Option<(u16, i64, &[u8])> {
    let (operation, rest) = expression.split_first()?;
    let register = (BREG0..=BREG31).contains(operation).then(|| u16::from(operation - BREG0))?;
    let (offset, rest) = sleb(rest)?;
    Some((register, offset, rest))
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
    fn registers_and_offsets_are_read() {
        assert_eq!(sleb(&[0x78, 9]), Some((-8, &[9][..])));
        assert_eq!(sleb(&[0xa0, 0x01]), Some((160, &[][..])));
        assert_eq!(sleb(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]), None);
        assert_eq!(based(&[0x76, 0]), Some((6, 0, &[][..])));
        assert_eq!(based(&[0x77, 0x08, 0x06]), Some((7, 8, &[0x06][..])));
        assert_eq!((based(&[0x30]), based(&[0x90, 0]), based(&[])), (None, None, None));
    }
}
