//! A `Method*` made into a name: a JVM's memory in, class, method, signature, file and lines out.
//!
//! Method -> ConstMethod -> ConstantPool -> holder (InstanceKlass) -> name; the pool's entries behind its
//! header are Symbols (method.hpp, constMethod.hpp, constantPool.hpp, JDK 8 to 25). That the holder points
//! back at the same pool is what tells a method from memory that was used again. No compressed pointer is
//! on that way. A method is kept with what it was read from, and believed again only while that is the same.

use super::Unnamed;
use super::java_text;
use super::method_layout::MethodLayout;
use super::numbers;
use super::texts::{Text, Texts};
use emberscope_target::memory::{Memory, at};
use emberscope_target::text::MAX_NAME;
use std::sync::Arc;

/// Bytes of a ConstMethod's tables that are kept: lines of the largest methods (64 KB of code) take 20 KB.
const MAX_LINES: u64 = 16 << 10;
/// Bytes of a Symbol that are read at first: nearly all are shorter.
const SHORT: usize = 96;
/// Longest Symbol that is read: names are cut at [`MAX_NAME`], a descriptor may need more to be one.
const MAX_SYMBOL: usize = 4 * MAX_NAME;

/// A method, with what it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The method's name, signature and lines.
    pub text: Arc<Text>,
    /// Address of the first bytecode, and how many bytes there are; 0 where the method is native or abstract.
    pub code: (u64, u32),
    excluded: u8,
    read_from: Origin,
}

/// What tells a method from another one that lies in the same place later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    const_method: u64,
    constants: u64,
    indexes: (i64, i64),
    code_size: u32,
    holder: u64,
    holder_name: u64,
    holder_pool: u64,
}

impl Method {
    /// The line of the bytecode at `bci` (negative: before the first); 0 when it is not known.
    pub fn line(&self, bci: i32) -> u32 {
        numbers::line(&self.text.lines, bci.max(0) as u32, self.excluded)
    }
    /// Bytes of memory that the method takes, about. What others share costs nothing.
    pub fn bytes(&self) -> usize {
        224 + if Arc::strong_count(&self.text) == 1 { self.text.bytes() } else { 0 }
    }
    /// The index of the bytecode at an address of which only the lower half is known.
    pub fn bci(&self, low: u32) -> Option<u32> {
        let (code, size) = self.code;
        Some(low.wrapping_sub(code as u32)).filter(|bci| *bci < size)
    }

    /// Reads the method at `address`. Nothing tells whether it was the same all the while.
    ///
    /// # Errors
    /// [`Unnamed::Unreadable`]: memory cannot be read, or what is there is no method. [`Unnamed::Gone`]: the process
    /// ended.
    pub fn read<M: Memory>(
        memory: &M,
        layout: &MethodLayout,
        excluded: u8,
        texts: &Texts,
        address: u64,
    ) -> Result<Self, Unnamed> {
        let (origin, words, flags) = origin(memory, layout, address)?;
        let entry = |pool: u64, index: i64| -> Result<Vec<u8>, Unnamed> {
            let slot = at(pool, layout.pool_size + 8 * (index & 0xffff) as u64)?;
            // The lowest bits mark pseudo strings.
            symbol(memory, layout, memory.u64(slot)? & !3)
        };
        let class = text(symbol(memory, layout, origin.holder_name)?)?;
        let own = text(entry(origin.constants, origin.indexes.0)?)?;
        let descriptor = text(entry(origin.constants, origin.indexes.1)?)?;
        if !descriptor.starts_with(b"(") {
            return Err(Unnamed::Unreadable);
        }
        let name = format!("{}.{}", java_text::class(&class), java_text::plain(&own));
        let signature = java_text::signature(&descriptor);
        let first = at(origin.const_method, layout.const_method_size)?;
        let code_size = origin.code_size;
        let mut lines = Vec::new();
        if flags & layout.has_lines != 0 {
            let (from, to) = (at(first, u64::from(code_size))?, at(origin.const_method, 8 * words)?);
            lines.resize(to.checked_sub(from).ok_or(Unnamed::Unreadable)?.min(MAX_LINES) as usize, 0);
            memory.read(from, &mut lines)?;
            lines.truncate(numbers::table_len(&lines, excluded));
        }
        Ok(Self {
            text: texts.shared(Text {
                name: name.into(),
                signature: signature.map(Into::into),
                lines: lines.into(),
            }),
            code: (first, code_size),
            excluded,
            read_from: origin,
        })
    }

    /// Whether the method at `address` is this one: three reads.
    pub fn is_still_at<M: Memory>(&self, memory: &M, layout: &MethodLayout, address: u64) -> bool {
        let before = &self.read_from;
        let same = || {
            let const_method = memory.u64(at(address, layout.const_method)?)?;
            if const_method != before.const_method {
                return Err(Unnamed::Unloaded);
            }
            let (constants, indexes, code_size, ..) = const_part(memory, layout, const_method)?;
            let same =
                (constants, indexes, code_size) == (before.constants, before.indexes, before.code_size);
            Ok(same && class_part(memory, layout, before.holder)? == (before.holder_name, before.holder_pool))
        };
        matches!(same(), Ok::<bool, Unnamed>(true))
    }
}

/// The name of the class whose `Klass` is at an address, as Java writes it: `byte[]`, `java.lang.String[]`. Nothing
/// tells whether that class was there before.
///
/// # Errors
/// As [`Method::read`], where what is there is no class.
pub fn class_name<M: Memory>(memory: &M, layout: &MethodLayout, class: u64) -> Result<String, Unnamed> {
    if class == 0 || !class.is_multiple_of(8) {
        return Err(Unnamed::Unreadable);
    }
    let name = memory.u64(at(class, layout.class_name.offset)?)?;
    let name = text(symbol(memory, layout, name)?)?;
    if !name.starts_with(b"[") {
        return Ok(java_text::class(&name));
    }
    java_text::array(&name).ok_or(Unnamed::Unreadable)
}

fn origin<M: Memory>(memory: &M, layout: &MethodLayout, method: u64) -> Result<(Origin, u64, i64), Unnamed> {
    // Metaspace is aligned to words.
    if method == 0 || !method.is_multiple_of(8) {
        return Err(Unnamed::Unreadable);
    }
    let const_method = memory.u64(at(method, layout.const_method)?)?;
    let (constants, indexes, code_size, words, flags) = const_part(memory, layout, const_method)?;
    let holder = memory.u64(at(constants, layout.pool_holder.offset)?)?;
    let (holder_name, pool) = class_part(memory, layout, holder)?;
    // The methods that stand for `MethodHandle.linkTo*` have a pool of their own: there the class's one must
    // lead back to it.
    if pool != constants && memory.u64(at(pool, layout.pool_holder.offset)?)? != holder {
        return Err(Unnamed::Unreadable);
    }
    let origin =
        Origin { const_method, constants, indexes, code_size, holder, holder_name, holder_pool: pool };
    Ok((origin, words, flags))
}

type ConstPart = (u64, (i64, i64), u32, u64, i64);

/// Pool, indexes of name and signature, bytes of code, words, flags.
fn const_part<M: Memory>(memory: &M, layout: &MethodLayout, const_method: u64) -> Result<ConstPart, Unnamed> {
    if const_method == 0 || !const_method.is_multiple_of(8) {
        return Err(Unnamed::Unreadable);
    }
    let mut bytes = [0u8; 512];
    let bytes = bytes.get_mut(..layout.const_method_size as usize).ok_or(Unnamed::Unreadable)?;
    memory.read(const_method, bytes)?;
    let part = || {
        Some((
            layout.constants.pointer(bytes)?,
            (layout.name_index.get(bytes)?, layout.signature_index.get(bytes)?),
            u32::try_from(layout.code_size.get(bytes)?).ok()?,
            layout.words.size(bytes)?,
            layout.flags.get(bytes)?,
        ))
    };
    part().ok_or(Unnamed::Unreadable)
}

/// Name and pool of a class.
fn class_part<M: Memory>(memory: &M, layout: &MethodLayout, class: u64) -> Result<(u64, u64), Unnamed> {
    let (name, pool) = (layout.class_name, layout.class_constants);
    let first = name.offset.min(pool.offset);
    let mut bytes = [0u8; 512];
    match bytes.get_mut(..(name.end().max(pool.end()) - first) as usize) {
        Some(bytes) => {
            memory.read(at(class, first)?, bytes)?;
            let word = |offset: u64| {
                let at = (offset - first) as usize;
                bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes)
            };
            Ok((word(name.offset).ok_or(Unnamed::Unreadable)?, word(pool.offset).ok_or(Unnamed::Unreadable)?))
        }
        None => Ok((memory.u64(at(class, name.offset)?)?, memory.u64(at(class, pool.offset)?)?)),
    }
}

/// What can be a name: memory that was freed and used for something else is none for long.
fn text(bytes: Vec<u8>) -> Result<Vec<u8>, Unnamed> {
    let sound = !bytes.is_empty() && bytes.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
    if sound { Ok(bytes) } else { Err(Unnamed::Unreadable) }
}

/// A Symbol's text, as far as [`MAX_SYMBOL`] bytes of it.
fn symbol<M: Memory>(memory: &M, layout: &MethodLayout, address: u64) -> Result<Vec<u8>, Unnamed> {
    let (body, length_at) = (layout.symbol_body as usize, layout.symbol_length as usize);
    let length = |bytes: &[u8]| {
        let two = bytes.get(length_at..length_at + 2).and_then(|b| b.try_into().ok());
        two.map(|b| usize::from(u16::from_le_bytes(b)).min(MAX_SYMBOL)).ok_or(Unnamed::Unreadable)
    };
    if address == 0 {
        return Err(Unnamed::Unreadable);
    }
    let mut bytes = vec![0; body.max(length_at + 2) + SHORT];
    if memory.read(address, &mut bytes).is_err() {
        // At the end of what is mapped.
        bytes.truncate(body.max(length_at + 2));
        memory.read(address, &mut bytes)?;
    }
    let end = body + length(&bytes)?;
    if end > bytes.len() {
        let have = bytes.len();
        bytes.resize(end, 0);
        let rest = bytes.get_mut(have..).ok_or(Unnamed::Unreadable)?;
        memory.read(at(address, have as u64)?, rest)?;
    }
    bytes.truncate(end);
    Ok(bytes.split_off(body.min(bytes.len())))
}
