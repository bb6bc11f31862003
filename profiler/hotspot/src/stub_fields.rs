//! Where a JVM keeps the addresses of its stubs: fields of the class `StubRoutines`, by the symbols of libjvm's .symtab
//! or by vmStructs.
//!
//! vmStructs list 50 to 60 of the fields up to JDK 22 and one from 23 on; .symtab has all (stubRoutines.hpp), also
//! tables of entries such as `_lookup_secondary_supers_table_stubs`. Fields that lead to data are left out by their
//! names; the rest is told from code when the addresses are read (`names::stubs`).

use super::vm_structs::VmStructs;
use emberscope_target::elf::Symbol;
use std::sync::Arc;

/// The class, as its members' symbols begin.
pub const CLASS: &str = "_ZN12StubRoutines";
/// Bytes of all names in one file: JDK 25 has 232 of 40 bytes.
pub const MAX_NAMES: usize = 16 << 10;
/// Entries of a table: `_lookup_secondary_supers_table_stubs` has 64.
const MAX_ENTRIES: u64 = 64;
/// The platform's own part (`StubRoutines::x86`) is data but for these.
const NESTED_CODE: [&str; 3] = ["_fixup", "_entry", "_barrier"];
/// Tables, places within stubs and blobs of stubs.
const NO_CODE: [&str; 7] = ["_addr", "_adr", "_address", "_mask", "_names", "_stubs_code", "_count"];

/// A field that has the address of a stub, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StubField {
    /// The stub's name, as the JVM prints it with `PrintStubCode`: the field's without what many have.
    pub name: Arc<str>,
    /// Where the address is, in the JVM's memory.
    pub address: u64,
    /// How many addresses there are, one behind the other.
    pub entries: u32,
}

impl StubField {
    /// The field of a symbol as C++ mangles it; None where it is no such field.
    pub fn of_symbol(mangled: &str, symbol: Symbol) -> Option<Self> {
        let entries = symbol.size / 8;
        if !symbol.size.is_multiple_of(8) || !(1..=MAX_ENTRIES).contains(&entries) {
            return None;
        }
        let (first, rest) = part(mangled.strip_prefix(CLASS)?)?;
        let field = match (rest, part(rest)) {
            ("E", _) => first,
            (_, Some((field, "E"))) if NESTED_CODE.iter().any(|end| field.ends_with(end)) => field,
            _ => return None,
        };
        Some(Self { name: stub(field)?, address: symbol.address, entries: entries as u32 })
    }

    /// The fields that vmStructs list.
    pub fn listed(vm: &VmStructs) -> Vec<Self> {
        let field = |(name, address)| Some(Self { name: stub(name)?, address, entries: 1 });
        vm.addresses_of("StubRoutines").filter_map(field).collect()
    }
}

/// A length and so many bytes, then the rest.
fn part(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (len, rest) = text.split_at_checked(digits)?;
    rest.split_at_checked(len.parse().ok()?)
}

/// A stub by its field's name; None: that leads to something else.
fn stub(field: &str) -> Option<Arc<str>> {
    if NO_CODE.iter().any(|end| field.ends_with(end)) {
        return None;
    }
    let name = field.strip_prefix('_').unwrap_or(field);
    let ends = ["_entry", "_stub"].into_iter().find_map(|end| name.strip_suffix(end));
    Some(ends.unwrap_or(name)).filter(|name| !name.is_empty()).map(Arc::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_code_are_told_from_others() {
        let name = |mangled, size| {
            let field = StubField::of_symbol(mangled, Symbol { address: 7, size })?;
            assert_eq!((field.address, u64::from(field.entries)), (7, size / 8));
            Some(field.name.to_string())
        };
        assert_eq!(name("_ZN12StubRoutines6_dcbrtE", 8).as_deref(), Some("dcbrt"));
        assert_eq!(name("_ZN12StubRoutines16_call_stub_entryE", 8).as_deref(), Some("call_stub"));
        assert_eq!(
            name("_ZN12StubRoutines21_string_indexof_arrayE", 32).as_deref(),
            Some("string_indexof_array")
        );
        assert_eq!(name("_ZN12StubRoutines18_cont_preempt_stubE", 8).as_deref(), Some("cont_preempt"));
        assert_eq!(name("_ZN12StubRoutines3x8610_d2i_fixupE", 8).as_deref(), Some("d2i_fixup"));
        for (other, size) in [
            ("_ZN12StubRoutines25_call_stub_return_addressE", 8),
            ("_ZN12StubRoutines17_verify_oop_countE", 4),
            ("_ZN12StubRoutines11_stub_namesE", 1456),
            ("_ZN12StubRoutines20_compiler_stubs_codeE", 8),
            ("_ZN12StubRoutines3x8615_shuffle_base64E", 8),
            ("_ZN12StubRoutines11initialize1Ev", 8),
            ("_ZN12StubRoutines99_dcbrtE", 8),
            ("_ZN12StubRoutines6_dcbrtE", 0),
            ("_ZN12StubRoutines1_E", 8),
            ("_ZN12StubRoutines", 8),
        ] {
            assert_eq!(name(other, size), None, "{other}");
        }
    }
}
