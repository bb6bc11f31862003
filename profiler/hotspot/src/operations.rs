//! Operations for which HotSpot stops its threads: which one a virtual table belongs to.
//!
//! In: the symbols of libjvm's .symtab that begin as those of virtual tables do. Out: names by address. An operation is an
//! object of a class `VM_..` (vmOperations.hpp, JDK 8 to 25), whose first word is the address of the third word of its class's table
//! (the Itanium C++ ABI, 2.5.2); the JVM's log and JFR call it by the class's name without `VM_`.

use emberscope_target::elf::Symbol;
use std::sync::Arc;

/// Symbols of virtual tables, as they are mangled. Those of JDK 25 have 100 KB of names.
pub(super) const TABLES: &str = "_ZTV";
/// Bytes of all such names in one file.
pub(super) const MAX_NAMES: usize = 1 << 20;
/// Operations of one file: JDK 25 has 84.
const MOST: usize = 256;
/// Bytes of one name.
const MAX_NAME: usize = 64;
/// What stands before the functions in a table: an offset and the type.
const HEAD: u64 = 16;

/// Names of operations, by the addresses that their objects begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operations(Arc<[(u64, Arc<str>)]>);

impl Operations {
    /// The operations among these symbols.
    pub(super) fn of_symbols(symbols: &[(Box<str>, Symbol)]) -> Self {
        let one = |(mangled, symbol): &(Box<str>, Symbol)| {
            let rest = mangled.strip_prefix(TABLES)?;
            let name = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            let length: usize = rest.strip_suffix(name)?.parse().ok()?;
            let name = name.strip_prefix("VM_").filter(|short| short.len() + 3 == length)?;
            (1..=MAX_NAME).contains(&name.len()).then(|| (symbol.address.wrapping_add(HEAD), Arc::from(name)))
        };
        Self(symbols.iter().filter_map(one).take(MOST).collect())
    }

    /// The same in a process, which has the file's addresses with this added.
    pub(super) fn moved(&self, bias: u64) -> Self {
        Self(self.0.iter().map(|(address, name)| (address.wrapping_add(bias), name.clone())).collect())
    }

    /// Addresses and names.
    pub(super) fn by_address(&self) -> impl Iterator<Item = (u64, Arc<str>)> {
        self.0.iter().cloned()
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, name)| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_operations_are_told_from_others() {
        let symbol = |name: &str, address| (Box::from(name), Symbol { address, size: 80 });
        let all = [
            symbol("_ZTV25VM_G1CollectForAllocation", 0x1000),
            symbol("_ZTV8VM_Dummy", 0x2000),
            symbol("_ZTV9VM_Dummy", 0x3000),
            symbol("_ZTV17ConcurrentGCTimer", 0x4000),
            symbol("_ZTVN4Some8VM_DummyE", 0x5000),
            symbol("_ZTV3VM_", 0x6000),
        ];
        let found = Operations::of_symbols(&all).moved(0x10_0000);
        let found: Vec<_> = found.by_address().collect();
        let want = [(0x10_1010, "G1CollectForAllocation"), (0x10_2010, "Dummy")];
        assert_eq!(found, want.map(|(address, name)| (address, Arc::from(name))));
    }
}
