//! `java.lang.String` from outside: an object's address in, its text and its layout out.
//!
//! Up to JDK 8 a String has a `char[]`; since 9 a `byte[]` and a coder, 0 for Latin-1 and 1 for UTF-16.
//! The text is taken only if the object is a String, its array one of that kind, and the length is one
//! that the coder allows.

use super::fields::FieldTables;
use super::heap::{Epoch, Heap, Reference, References};
use super::problem::JvmProblem;
use super::vm_structs::VmStructs;
use emberscope_model::StringLayout;
use emberscope_target::memory::{Memory, at};

/// T_CHAR and T_BYTE (jvm.h BasicType, globalDefinitions.hpp).
const T_CHAR: u32 = 5;
const T_BYTE: u32 = 8;

/// How this JVM lays out Strings.
#[derive(Clone, Copy, Debug)]
pub struct Strings {
    class: u64,
    value: u32,
    /// None: the array is of chars.
    coder: Option<u32>,
    layout_helper: u64,
}

/// A String's text, and where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// At most as long as was asked for, in UTF-8 bytes. Halves of surrogate pairs are U+FFFD.
    pub text: String,
    /// Addresses of the String and of its array.
    pub at: [u64; 2],
    /// Whether one of the references on the way is stale.
    pub stale: bool,
    /// Offset of an array's first element.
    data_offset: u32,
}

impl Strings {
    /// Reads the layout of a JVM that has loaded its first classes.
    ///
    /// # Errors
    /// [`JvmProblem::NotReady`]: the class String is not loaded. [`JvmProblem::Missing`]: the tables do not tell where
    /// it is, or its fields. [`JvmProblem::Nonsense`]: a pointer leads nowhere. [`JvmProblem::Gone`],
    /// [`JvmProblem::Denied`]: memory cannot be read.
    pub fn read<M: Memory>(memory: &M, vm: &VmStructs, fields: &FieldTables) -> Result<Self, JvmProblem> {
        let class =
            vm.address_ending("::String_klass_knum)]").or_else(|| vm.address_ending("::String_klass_knum]"));
        let class = memory.u64(class.ok_or(JvmProblem::Missing("the class String"))?)?;
        if class == 0 {
            return Err(JvmProblem::NotReady);
        }
        let missing = JvmProblem::Missing("the fields of String");
        let (value, coder) = match fields.offset(memory, class, "value", "[B")? {
            Some(value) => (value, Some(fields.offset(memory, class, "coder", "B")?.ok_or(missing)?)),
            None => (fields.offset(memory, class, "value", "[C")?.ok_or(missing)?, None),
        };
        let layout_helper = vm.offset("Klass::_layout_helper");
        let layout_helper = layout_helper.ok_or(JvmProblem::Missing("the layout of arrays"))?;
        Ok(Self { class, value, coder, layout_helper })
    }

    /// The text of the String that `reference` leads to, as far as `limit` bytes reach; None when that is
    /// no sound String.
    ///
    /// # Errors
    /// [`JvmProblem::Nonsense`]: a pointer leads nowhere. [`JvmProblem::Gone`], [`JvmProblem::Denied`]: memory cannot
    /// be read.
    pub fn text<M: Memory>(
        &self,
        memory: &M,
        heap: &Heap,
        reference: Reference,
        epoch: Epoch,
        limit: usize,
    ) -> Result<Option<Text>, JvmProblem> {
        let (string, class) = heap.object(memory, reference)?;
        if class != self.class {
            return Ok(None);
        }
        let value = heap.field(memory, at(string, u64::from(self.value))?, epoch)?;
        let utf16 = match self.coder {
            None => true,
            Some(coder) => match memory.u8(at(string, u64::from(coder))?)? {
                0 => false,
                1 => true,
                _ => return Ok(None),
            },
        };
        if value.address == 0 {
            return Ok(None);
        }
        let (array, class) = heap.object(memory, value)?;
        let Some(data_offset) = self.data_offset(memory, heap, class)? else { return Ok(None) };
        let length = memory.u32(at(array, u64::from(heap.array_length_offset))?)?;
        let Some(bytes) = (match self.coder {
            None => length.checked_mul(2),
            // Whole characters only.
            Some(_) => (!utf16 || length % 2 == 0).then_some(length),
        }) else {
            return Ok(None);
        };
        if bytes > i32::MAX as u32 {
            return Ok(None);
        }
        // A character takes at least a byte in UTF-8: what is beyond cannot be kept.
        let wanted = if utf16 { limit.saturating_mul(2) } else { limit };
        let mut data = vec![0; wanted.min(bytes as usize)];
        memory.read(at(array, u64::from(data_offset))?, &mut data)?;
        let text = if utf16 {
            let units = data.chunks_exact(2).filter_map(|unit| unit.try_into().ok()).map(u16::from_le_bytes);
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        } else {
            data.iter().map(|byte| char::from(*byte)).collect()
        };
        let stale = reference.stale || value.stale;
        Ok(Some(Text { text: cut(text, limit), at: [string, array], stale, data_offset }))
    }

    /// What another reader of Strings has to know; `text` is one that was read.
    pub fn layout(&self, heap: &Heap, text: &Text) -> StringLayout {
        let (base, shift, narrow) = heap.references.narrow();
        StringLayout {
            base,
            value_offset: self.value,
            coder_offset: self.coder.unwrap_or(StringLayout::NO_CODER),
            array_length_offset: heap.array_length_offset,
            array_data_offset: text.data_offset,
            narrow,
            shift,
            coloured: u8::from(heap.references == References::Coloured),
            pad: 0,
            eetop_offset: 0,
            pad2: 0,
        }
    }

    /// Where the elements of an array of this class begin; None if it is no array of the kind in Strings.
    /// The layout helper of an array class holds a tag, the header's size, the elements' type and the
    /// logarithm of their size (klass.hpp, `_lh_*`, JDK 8 to 25).
    fn data_offset<M: Memory>(&self, memory: &M, heap: &Heap, class: u64) -> Result<Option<u32>, JvmProblem> {
        let helper = memory.u32(at(class, self.layout_helper)?)?;
        let (tag, header) = (helper >> 30, helper >> 16 & 0xff);
        let element = (helper >> 8 & 0xff, helper & 0x3f);
        let expected = if self.coder.is_some() { (T_BYTE, 0) } else { (T_CHAR, 1) };
        let sound = tag == 3 && element == expected && header >= heap.array_length_offset.saturating_add(4);
        Ok(sound.then_some(header))
    }
}

/// `text` as far as `limit` bytes reach, in whole characters.
fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_between_characters() {
        assert_eq!(cut("abc".to_owned(), 3), "abc");
        assert_eq!(cut("abé".to_owned(), 3), "ab");
        assert_eq!(cut("€".to_owned(), 2), "");
    }
}
