//! Functions of ELF files, by the names of their symbols, of either table. For files that are sound: it panics else.

use std::ops::Range;
use std::path::Path;

/// A function.
pub struct Function {
    /// Its addresses, as linked.
    pub linked: Range<u64>,
    /// Where its first instruction is in the file.
    pub offset: u64,
}

/// The function of this name; None where the file has no such symbol.
pub fn function(file: &Path, symbol: &str) -> Option<Function> {
    let bytes = std::fs::read(file).expect("readable");
    let int = |at: usize, len: usize| -> u64 {
        let mut word = [0; 8];
        word[..len].copy_from_slice(&bytes[at..at + len]);
        u64::from_le_bytes(word)
    };
    let (headers, count) = (int(0x28, 8) as usize, int(0x3c, 2) as usize);
    let section = |i: usize| headers + i * 64;
    for table in (0..count).map(section).filter(|at| [2, 11].contains(&int(at + 4, 4))) {
        let (from, len) = (int(table + 24, 8) as usize, int(table + 32, 8) as usize);
        let names = int(section(int(table + 40, 4) as usize) + 24, 8) as usize;
        for at in (from..from + len).step_by(24) {
            let name = &bytes[names + int(at, 4) as usize..];
            if name.starts_with(symbol.as_bytes()) && name.get(symbol.len()) == Some(&0) {
                let (address, size) = (int(at + 8, 8), int(at + 16, 8));
                let code = section(int(at + 6, 2) as usize);
                let offset = address - int(code + 16, 8) + int(code + 24, 8);
                return Some(Function { linked: address..address + size, offset });
            }
        }
    }
    None
}
