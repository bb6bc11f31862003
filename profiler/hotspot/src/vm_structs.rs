//! HotSpot's description of itself: tables of fields, types and constants that libjvm.so exports for the
//! Serviceability Agent (vmStructs.cpp, JDK 8 to 25). Memory and the addresses of the exported symbols in,
//! offsets, sizes and values by name out.
//!
//! The columns of a table are told by symbols too, so nothing about the layout is compiled in. Fields and
//! constants come and go with releases: callers look for what is there, not for a version. Nothing read is
//! trusted: numbers of entries and lengths of names are bounded, and an offset is at most 1 MiB.

use super::problem::JvmProblem;
use emberscope_target::memory::Memory;
use std::collections::HashMap;

/// The symbols that lead to the tables.
pub const SYMBOLS: [&str; 20] = [
    "gHotSpotVMStructs",
    "gHotSpotVMStructEntryArrayStride",
    "gHotSpotVMStructEntryTypeNameOffset",
    "gHotSpotVMStructEntryFieldNameOffset",
    "gHotSpotVMStructEntryTypeStringOffset",
    "gHotSpotVMStructEntryIsStaticOffset",
    "gHotSpotVMStructEntryOffsetOffset",
    "gHotSpotVMStructEntryAddressOffset",
    "gHotSpotVMTypes",
    "gHotSpotVMTypeEntryArrayStride",
    "gHotSpotVMTypeEntryTypeNameOffset",
    "gHotSpotVMTypeEntrySizeOffset",
    "gHotSpotVMIntConstants",
    "gHotSpotVMIntConstantEntryArrayStride",
    "gHotSpotVMIntConstantEntryNameOffset",
    "gHotSpotVMIntConstantEntryValueOffset",
    "gHotSpotVMLongConstants",
    "gHotSpotVMLongConstantEntryArrayStride",
    "gHotSpotVMLongConstantEntryNameOffset",
    "gHotSpotVMLongConstantEntryValueOffset",
];

/// JDK 25 has 585 to 788 fields, 768 types, 700 constants.
const MAX_ENTRIES: u64 = 8192;
/// Entries have 16 to 48 bytes.
const MAX_STRIDE: u64 = 256;
/// Names reach 90 bytes.
const MAX_NAME: usize = 256;
/// Largest offset of a field, and size of a type: a JavaThread has 2 KB, a ZHeap 16 KB.
const MAX_OFFSET: u64 = 1 << 20;

/// A field of a type of HotSpot's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's type as C++ spells it; empty where the JVM does not tell.
    pub type_name: Box<str>,
    /// Where the field is: in an object, or static.
    pub place: Place,
}

/// Where a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Bytes from the start of an object of the type.
    Offset(u64),
    /// Address of a static field.
    Address(u64),
}

/// The tables of one JVM.
#[derive(Debug, Default)]
pub struct VmStructs {
    fields: HashMap<String, Field>,
    sizes: HashMap<String, u64>,
    constants: HashMap<String, u64>,
}

impl VmStructs {
    /// Reads the tables; `address_of` knows where [`SYMBOLS`] are. Memory is read often in the same places, so it
    /// should be [`emberscope_target::memory::Pages`].
    ///
    /// # Errors
    /// [`JvmProblem::NoTables`]: one of the symbols is missing. [`JvmProblem::NotReady`]: the tables are not filled in
    /// yet. [`JvmProblem::Nonsense`]: a table has no end, its columns lie outside of its rows, or a pointer leads
    /// nowhere. [`JvmProblem::Gone`], [`JvmProblem::Denied`]: memory cannot be read.
    pub fn read<M: Memory>(memory: &M, address_of: &dyn Fn(&str) -> Option<u64>) -> Result<Self, JvmProblem> {
        let mut all = Self::default();
        let columns = ["TypeName", "FieldName", "TypeString", "IsStatic", "Offset", "Address"];
        let structs = Table::find(memory, address_of, "Struct", columns)?;
        structs.each(|entry, [type_at, field_at, type_string, is_static, offset, address]| {
            let type_name = memory.u64(entry + type_at)?;
            let Some(owner) = name(memory, type_name)? else { return Ok(type_name != 0) };
            let Some(field) = name(memory, memory.u64(entry + field_at)?)? else { return Ok(true) };
            let place = if memory.u32(entry + is_static)? != 0 {
                Place::Address(memory.u64(entry + address)?)
            } else {
                Place::Offset(memory.u64(entry + offset)?)
            };
            if !matches!(place, Place::Offset(at) if at > MAX_OFFSET) {
                let type_name = name(memory, memory.u64(entry + type_string)?)?.unwrap_or_default().into();
                all.fields.insert(format!("{owner}::{field}"), Field { type_name, place });
            }
            Ok(true)
        })?;
        let types = Table::find(memory, address_of, "Type", ["TypeName", "Size"])?;
        types.each(|entry, [name_at, size_at]| {
            let pointer = memory.u64(entry + name_at)?;
            let size = memory.u64(entry + size_at)?;
            if let Some(name) = name(memory, pointer)?.filter(|_| size <= MAX_OFFSET) {
                all.sizes.insert(name, size);
            }
            Ok(pointer != 0)
        })?;
        for (kind, wide) in [("IntConstant", false), ("LongConstant", true)] {
            let constants = Table::find(memory, address_of, kind, ["Name", "Value"])?;
            constants.each(|entry, [name_at, value_at]| {
                let pointer = memory.u64(entry + name_at)?;
                let at = entry + value_at;
                let value = if wide { memory.u64(at)? } else { i64::from(memory.u32(at)? as i32) as u64 };
                if let Some(name) = name(memory, pointer)? {
                    all.constants.insert(name, value);
                }
                Ok(pointer != 0)
            })?;
        }
        Ok(all)
    }

    /// Tables that are known without reading them: fields by `type::name`, sizes of types, constants.
    pub fn known(
        fields: impl IntoIterator<Item = (String, Field)>,
        sizes: impl IntoIterator<Item = (String, u64)>,
        constants: impl IntoIterator<Item = (String, u64)>,
    ) -> Self {
        let (fields, sizes) = (fields.into_iter().collect(), sizes.into_iter().collect());
        Self { fields, sizes, constants: constants.into_iter().collect() }
    }
    /// The field's type and place, by `type::name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(name)
    }
    /// The offset of the field `type::name`, when it is no static one.
    pub fn offset(&self, name: &str) -> Option<u64> {
        match self.fields.get(name)?.place {
            Place::Offset(offset) => Some(offset),
            Place::Address(_) => None,
        }
    }
    /// The address of the static field `type::name`.
    pub fn address(&self, name: &str) -> Option<u64> {
        match self.fields.get(name)?.place {
            Place::Address(address) => Some(address),
            Place::Offset(_) => None,
        }
    }
    /// The address of a static field whose name is an expression that changes with releases.
    pub fn address_ending(&self, end: &str) -> Option<u64> {
        self.fields.keys().filter(|name| name.ends_with(end)).find_map(|name| self.address(name))
    }
    /// Names and addresses of the static fields of a type.
    pub fn addresses_of(&self, type_name: &str) -> impl Iterator<Item = (&str, u64)> {
        self.fields.iter().filter_map(move |(name, field)| match field.place {
            Place::Address(address) => Some((name.strip_prefix(type_name)?.strip_prefix("::")?, address)),
            Place::Offset(_) => None,
        })
    }
    /// The size of a type, bytes.
    pub fn size(&self, type_name: &str) -> Option<u64> {
        self.sizes.get(type_name).copied()
    }
    /// The value of a constant; a negative one is extended to 64 bits.
    pub fn constant(&self, name: &str) -> Option<u64> {
        self.constants.get(name).copied()
    }
    /// Numbers of fields, types and constants.
    pub fn len(&self) -> [usize; 3] {
        [self.fields.len(), self.sizes.len(), self.constants.len()]
    }
}

/// One of the tables: its first entry, their size, and the offsets of columns.
struct Table<const N: usize> {
    first: u64,
    stride: u64,
    columns: [u64; N],
}

impl<const N: usize> Table<N> {
    fn find<M: Memory>(
        memory: &M,
        address_of: &dyn Fn(&str) -> Option<u64>,
        kind: &str,
        names: [&str; N],
    ) -> Result<Self, JvmProblem> {
        let symbol = |name: String| match address_of(&name) {
            Some(address) => Ok(memory.u64(address)?),
            None => Err(JvmProblem::NoTables("gHotSpotVM tables")),
        };
        let first = symbol(format!("gHotSpotVM{kind}s"))?;
        let stride = symbol(format!("gHotSpotVM{kind}EntryArrayStride"))?;
        // Filled in by the first static initialisers (vmStructs.cpp).
        if first == 0 || stride == 0 {
            return Err(JvmProblem::NotReady);
        }
        let mut columns = [0; N];
        for (column, name) in columns.iter_mut().zip(names) {
            *column = symbol(format!("gHotSpotVM{kind}Entry{name}Offset"))?;
        }
        let fits = |column: &u64| column.checked_add(8).is_some_and(|end| end <= stride);
        if stride > MAX_STRIDE || !columns.iter().all(fits) {
            return Err(JvmProblem::Nonsense("columns of vmStructs outside of their rows"));
        }
        if first.checked_add(MAX_ENTRIES * MAX_STRIDE).is_none() {
            return Err(JvmProblem::Nonsense("vmStructs beyond the end of memory"));
        }
        Ok(Self { first, stride, columns })
    }

    /// Hands the address of each entry to `row`, which says whether it was one: the last has no name.
    fn each(&self, mut row: impl FnMut(u64, [u64; N]) -> Result<bool, JvmProblem>) -> Result<(), JvmProblem> {
        for index in 0..MAX_ENTRIES {
            if !row(self.first + index * self.stride, self.columns)? {
                return Ok(());
            }
        }
        Err(JvmProblem::Nonsense("vmStructs without an end"))
    }
}

/// A name; None for a null pointer and for what is too long or no text.
fn name<M: Memory>(memory: &M, address: u64) -> Result<Option<String>, JvmProblem> {
    if address == 0 {
        return Ok(None);
    }
    Ok(memory.c_string(address, MAX_NAME)?.and_then(|bytes| String::from_utf8(bytes).ok()))
}
