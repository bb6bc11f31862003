//! Fields of Java classes: a class and a field's name and type in, its offset in an object out.
//!
//! `InstanceKlass::_fields` up to JDK 20 is an array of six u2 a field (fieldInfo.hpp); from 21 on
//! `_fieldinfo_stream` is a byte stream of numbers in UNSIGNED5 (fieldInfo.hpp, unsigned5.hpp). Names are
//! Symbols in the class's constant pool. Everything is bounded; only fields of the source are looked at.

use super::problem::JvmProblem;
use super::vm_structs::VmStructs;
use emberscope_target::memory::{Memory, at};

/// Fields of a class that are looked at: java.lang.Thread has some 40.
const MAX_FIELDS: u32 = 1024;
/// Longest name or type that is compared.
const MAX_SYMBOL: u16 = 256;
/// Largest offset of a field in an object that is believed.
const MAX_OFFSET: u32 = 1 << 16;

/// How a JVM keeps the fields of its classes.
#[derive(Clone, Copy, Debug)]
pub struct FieldTables {
    constants: u64,
    /// Bytes before the first entry of a ConstantPool.
    pool_header: u64,
    symbol_length: u64,
    /// The length is the upper half of 4 bytes (JDK 12 to 15).
    length_shared: bool,
    symbol_body: u64,
    encoding: Encoding,
}

#[derive(Clone, Copy, Debug)]
enum Encoding {
    Slots { fields: u64, java_fields: u64, data: u64 },
    Stream { stream: u64, data: u64, initialized: u64, generic: u64, contended: u64 },
}

impl FieldTables {
    /// Finds the tables in vmStructs; None where something is missing.
    pub fn of(vm: &VmStructs) -> Option<Self> {
        let offset = |name: &str| vm.offset(name);
        let flag =
            |name: &str| vm.constant(&format!("FieldInfo::FieldFlags::_ff_{name}")).filter(|bit| *bit < 32);
        let encoding = if let Some(stream) = offset("InstanceKlass::_fieldinfo_stream") {
            Encoding::Stream {
                stream,
                data: offset("Array<u1>::_data")?,
                initialized: flag("initialized")?,
                generic: flag("generic")?,
                contended: flag("contended")?,
            }
        } else {
            Encoding::Slots {
                fields: offset("InstanceKlass::_fields")?,
                java_fields: offset("InstanceKlass::_java_fields_count")?,
                data: offset("Array<u2>::_data")?,
            }
        };
        let own_length = offset("Symbol::_length");
        Some(Self {
            constants: offset("InstanceKlass::_constants")?,
            pool_header: vm.size("ConstantPool")?,
            symbol_length: own_length.or_else(|| offset("Symbol::_length_and_refcount"))?,
            length_shared: own_length.is_none(),
            symbol_body: offset("Symbol::_body").or_else(|| offset("Symbol::_body[0]"))?,
            encoding,
        })
    }

    /// The offset of the field `name` of type `signature` in objects of `class`; None when the class has no such
    /// field.
    ///
    /// # Errors
    /// [`JvmProblem::Nonsense`]: a pointer leads nowhere, or the class's stream of fields ends early.
    /// [`JvmProblem::Gone`], [`JvmProblem::Denied`]: memory cannot be read.
    pub fn offset<M: Memory>(
        &self,
        memory: &M,
        class: u64,
        name: &str,
        signature: &str,
    ) -> Result<Option<u32>, JvmProblem> {
        let pool = memory.u64(at(class, self.constants)?)?;
        let is = |index: u32, text: &str| -> Result<bool, JvmProblem> {
            let slot = at(pool, self.pool_header + 8 * u64::from(index & 0xffff))?;
            // The lowest bits mark pseudo strings.
            self.symbol_is(memory, memory.u64(slot)? & !3, text)
        };
        let mut found = None;
        self.each(memory, class, |name_index, signature_index, offset| {
            if is(name_index, name)? && is(signature_index, signature)? && offset < MAX_OFFSET {
                found = Some(offset);
            }
            Ok(found.is_none())
        })?;
        Ok(found)
    }

    /// Hands name index, type index and offset of each field to `field`, until that says no.
    fn each<M: Memory>(
        &self,
        memory: &M,
        class: u64,
        mut field: impl FnMut(u32, u32, u32) -> Result<bool, JvmProblem>,
    ) -> Result<(), JvmProblem> {
        match self.encoding {
            Encoding::Slots { fields, java_fields, data } => {
                let array = at(memory.u64(at(class, fields)?)?, data)?;
                let count = u32::from(memory.u16(at(class, java_fields)?)?).min(MAX_FIELDS);
                for index in 0..u64::from(count) {
                    // Flags, name, type, initial value, low and high half of the offset.
                    let slot: [u8; 12] = memory.bytes(at(array, 12 * index)?)?;
                    let half = |n: usize| slot.get(2 * n..2 * n + 2).and_then(|b| b.try_into().ok());
                    let half = |n: usize| u32::from(half(n).map_or(0, u16::from_le_bytes));
                    // The two lowest bits are a tag (FIELDINFO_TAG_SIZE).
                    if !field(half(1), half(2), (half(5) << 16 | half(4)) >> 2)? {
                        break;
                    }
                }
            }
            Encoding::Stream { stream, data, initialized, generic, contended } => {
                let mut numbers = Unsigned5 { memory, at: at(memory.u64(at(class, stream)?)?, data)? };
                let count = numbers.next()?.min(MAX_FIELDS);
                let _injected = numbers.next()?;
                for _ in 0..count {
                    let (name, signature, offset) = (numbers.next()?, numbers.next()?, numbers.next()?);
                    let (_access, flags) = (numbers.next()?, numbers.next()?);
                    for bit in [initialized, generic, contended] {
                        if flags >> bit & 1 != 0 {
                            numbers.next()?;
                        }
                    }
                    if !field(name, signature, offset)? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn symbol_is<M: Memory>(&self, memory: &M, symbol: u64, text: &str) -> Result<bool, JvmProblem> {
        let length = at(symbol, self.symbol_length + if self.length_shared { 2 } else { 0 })?;
        let length = memory.u16(length)?;
        if usize::from(length) != text.len() || length > MAX_SYMBOL {
            return Ok(false);
        }
        let mut body = vec![0; text.len()];
        memory.read(at(symbol, self.symbol_body)?, &mut body)?;
        Ok(body == text.as_bytes())
    }
}

/// Compressed numbers from JDK 20 on: bytes of 1 to 255, five at most.
struct Unsigned5<'a, M> {
    memory: &'a M,
    at: u64,
}

impl<M: Memory> Unsigned5<'_, M> {
    fn next(&mut self) -> Result<u32, JvmProblem> {
        let mut sum = 0u32;
        for index in 0..5 {
            let byte = u32::from(self.memory.u8(self.at)?);
            self.at = at(self.at, 1)?;
            let digit =
                byte.checked_sub(1).ok_or(JvmProblem::Nonsense("a stream of fields that ends early"))?;
            sum = sum.wrapping_add(digit << (6 * index));
            if byte < 192 {
                break;
            }
        }
        Ok(sum)
    }
}
