//! What the daemon tells the programs of one process, in maps keyed by its pid.

/// How a JVM lays out a `java.lang.String` and its array, and what it stores as a reference: enough to
/// read one from outside. Differs between JVMs of one version, by heap size, collector and flags.
///
/// The address of the array is, of the value `v` of String's field `value`:
/// `narrow`: `base + (v << shift)` with a `v` of 4 bytes (`CompressedOops`); `coloured`: `v >> (1 + i)`, `i` being the
/// lowest of bits 12 to 15 that is set in `v` (generational ZGC, `ZPointerLoadShift`); else `v`, of 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StringLayout {
    /// What narrow references count from.
    pub base: u64,
    /// Of the field `value` in a String.
    pub value_offset: u32,
    /// Of the field `coder` in a String (0: Latin-1, 1: UTF-16); [`Self::NO_CODER`] before JDK 9, where the
    /// array is a `char[]` and its length counts characters.
    pub coder_offset: u32,
    /// Of the length, 4 bytes, in the array.
    pub array_length_offset: u32,
    /// Of the first element in the array.
    pub array_data_offset: u32,
    /// 1: references in the heap have 4 bytes.
    pub narrow: u8,
    /// Of narrow references, bits; below 32.
    pub shift: u8,
    /// 1: references in the heap are those of generational ZGC.
    pub coloured: u8,
    /// Zero.
    pub pad: u8,
    /// Of the field `eetop` in a `java.lang.Thread`, by which a thread that names itself is told from one
    /// that names another; 0: not known, and the latter would be taken for the former.
    pub eetop_offset: u16,
    /// Zero.
    pub pad2: u16,
}

impl StringLayout {
    /// `coder_offset` where a String has no such field.
    pub const NO_CODER: u32 = u32::MAX;
}

const _: () = assert!(size_of::<StringLayout>() == 32);
