//! How a JVM stores references and object headers, for every collector: a field's address in, an object out.
//!
//! Objects move while we read and nothing is locked, so readers take an [`Epoch`] before and after, and read twice:
//! equal readings within one epoch are what was there. A stop-the-world collector raises `_total_collections` before it
//! moves anything. Shenandoah leaves a forwarding pointer in the old copy, which is followed. ZGC's references tell by
//! colour whether their object may have moved since: stale ones, which are believed only with another witness.

mod told;

use super::flags;
use super::problem::JvmProblem;
use super::vm_structs::VmStructs;
use emberscope_target::memory::{Memory, at};

/// How references are stored in fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// 4 bytes: `base + (n << shift)`.
    Narrow {
        /// The address that the numbers `n` count from.
        base: u64,
        shift: u8,
    },
    /// 8 bytes: the address.
    Wide,
    /// ZGC before generations (JDK 11 to 23): an address whose colour bits are mapped too.
    Mapped,
    /// Generational ZGC (JDK 21 on): the address above colour bits.
    Coloured,
}

/// How an object tells its class.
#[derive(Clone, Copy, Debug)]
enum ClassWord {
    Pointer {
        offset: u64,
    },
    Narrow {
        offset: u64,
        base: u64,
        shift: u8,
    },
    /// In the uppermost bits of the mark word (compact headers, JDK 24 on).
    InMark {
        from: u8,
        base: u64,
        shift: u8,
    },
}

/// A reference as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// Where the reference points; 0: nowhere.
    pub address: u64,
    /// The object may have moved away since the reference was written, and something else be there.
    pub stale: bool,
}

/// What the collector had done at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Threads are stopped and objects may be moving.
    pub active: bool,
    collections: u32,
    bad_colours: u64,
}

/// A JVM's heap.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    pub references: References,
    /// Bytes from an array's start to its length.
    pub array_length_offset: u32,
    class_word: ClassWord,
    collector: u64,
    active_offset: u64,
    collections_offset: u64,
    /// Address of the mask of colours that make a reference stale; 0 without ZGC.
    bad_mask: u64,
}

const FLAGS: [&str; 5] =
    ["UseCompressedOops", "UseCompressedClassPointers", "UseCompactObjectHeaders", "UseZGC", "ZGenerational"];
/// Where compressed references of a kind begin, and their shift: the first of these names that the JVM has.
fn base_and_shift<M: Memory>(
    memory: &M,
    vm: &VmStructs,
    bases: [&str; 3],
    shifts: [&str; 3],
) -> Result<(u64, u8), JvmProblem> {
    let first = |names: [&str; 3]| names.into_iter().find_map(|name| vm.address(name));
    let (Some(base), Some(shift)) = (first(bases), first(shifts)) else {
        return Err(JvmProblem::Missing("how references are compressed"));
    };
    let shift = memory.u32(shift)?;
    let narrow = u8::try_from(shift).ok().filter(|s| *s < 32);
    Ok((memory.u64(base)?, narrow.ok_or(JvmProblem::Nonsense("a reference's shift"))?))
}

impl References {
    fn read<M: Memory>(
        memory: &M,
        vm: &VmStructs,
        flag: impl Fn(&'static str) -> Option<bool>,
    ) -> Result<Self, JvmProblem> {
        if flag("UseZGC").unwrap_or(false) {
            let coloured = vm.offset("ZGlobalsForVMStructs::_ZPointerLoadBadMask").is_some();
            // The flag is there as long as there is a choice (21 to 23).
            let coloured = coloured && flag("ZGenerational").unwrap_or(true);
            return Ok(if coloured { Self::Coloured } else { Self::Mapped });
        }
        if !flag("UseCompressedOops").ok_or(JvmProblem::Missing("whether references are compressed"))? {
            return Ok(Self::Wide);
        }
        let (base, shift) = base_and_shift(
            memory,
            vm,
            ["CompressedOops::_base", "CompressedOops::_narrow_oop._base", "Universe::_narrow_oop._base"],
            ["CompressedOops::_shift", "CompressedOops::_narrow_oop._shift", "Universe::_narrow_oop._shift"],
        )?;
        Ok(Self::Narrow { base, shift })
    }
}

impl ClassWord {
    fn read<M: Memory>(
        memory: &M,
        vm: &VmStructs,
        flag: impl Fn(&'static str) -> Option<bool>,
    ) -> Result<Self, JvmProblem> {
        let missing = JvmProblem::Missing("where an object's class is");
        let compact = flag("UseCompactObjectHeaders").unwrap_or(false);
        // The flag goes once there is no choice any more.
        if !compact && !flag("UseCompressedClassPointers").unwrap_or(true) {
            let offset = vm.offset("oopDesc::_metadata._klass").ok_or(missing)?;
            return Ok(Self::Pointer { offset });
        }
        let (base, shift) = base_and_shift(
            memory,
            vm,
            [
                "CompressedKlassPointers::_base",
                "CompressedKlassPointers::_narrow_klass._base",
                "Universe::_narrow_klass._base",
            ],
            [
                "CompressedKlassPointers::_shift",
                "CompressedKlassPointers::_narrow_klass._shift",
                "Universe::_narrow_klass._shift",
            ],
        )?;
        if compact {
            let from = vm.constant("markWord::klass_shift").and_then(|s| u8::try_from(s).ok());
            let from = from.filter(|s| *s < 64).ok_or(missing)?;
            return Ok(Self::InMark { from, base, shift });
        }
        let offset = vm.offset("oopDesc::_metadata._compressed_klass").ok_or(missing)?;
        Ok(Self::Narrow { offset, base, shift })
    }
}

impl Heap {
    /// Reads how references and headers are stored, of a JVM that has loaded its first classes.
    /// # Errors
    /// What the tables do not tell, or not yet, and memory that cannot be read or makes no sense.
    pub fn read<M: Memory>(memory: &M, vm: &VmStructs) -> Result<Self, JvmProblem> {
        let flags = flags::read(memory, vm, &FLAGS)?;
        let flag = |name: &'static str| flags.get(name).copied();
        let references = References::read(memory, vm, flag)?;
        let class_word = ClassWord::read(memory, vm, flag)?;
        // Behind the header (arrayOop.hpp): no table tells, so it follows from what comes before.
        let array_length_offset = match class_word {
            ClassWord::InMark { .. } => 8,
            ClassWord::Narrow { offset, .. } => offset + 4,
            ClassWord::Pointer { offset } => offset + 8,
        };
        let active = vm.offset("CollectedHeap::_is_stw_gc_active");
        let active = active.or_else(|| vm.offset("CollectedHeap::_is_gc_active"));
        let (Some(pointer), Some(active_offset), Some(collections_offset)) =
            (vm.address("Universe::_collectedHeap"), active, vm.offset("CollectedHeap::_total_collections"))
        else {
            return Err(JvmProblem::Missing("when the collector is at work"));
        };
        let collector = memory.u64(pointer)?;
        if collector == 0 {
            return Err(JvmProblem::NotReady);
        }
        let bad_mask = match references {
            References::Narrow { .. } | References::Wide => 0,
            References::Mapped | References::Coloured => bad_mask(memory, vm, references)?,
        };
        Ok(Self {
            references,
            array_length_offset: u32::try_from(array_length_offset).unwrap_or(u32::MAX),
            class_word,
            collector,
            active_offset,
            collections_offset,
            bad_mask,
        })
    }
    /// What the collector has done so far.
    /// # Errors
    /// Memory cannot be read: [`JvmProblem::Gone`], [`JvmProblem::Denied`], [`JvmProblem::Nonsense`].
    pub fn epoch<M: Memory>(&self, memory: &M) -> Result<Epoch, JvmProblem> {
        let bad_colours = if self.bad_mask == 0 { 0 } else { memory.u64(self.bad_mask)? };
        Ok(Epoch {
            active: memory.u8(at(self.collector, self.active_offset)?)? != 0,
            collections: memory.u32(at(self.collector, self.collections_offset)?)?,
            bad_colours,
        })
    }
    /// The reference in a field at `address` of the heap.
    /// # Errors
    /// As [`Self::epoch`].
    pub fn field<M: Memory>(&self, memory: &M, address: u64, epoch: Epoch) -> Result<Reference, JvmProblem> {
        if let References::Narrow { base, shift } = self.references {
            let narrow = u64::from(memory.u32(address)?);
            let address = if narrow == 0 { 0 } else { at(base, narrow << shift)? };
            return Ok(Reference { address, stale: false });
        }
        self.root(memory, address, epoch)
    }
    /// The reference outside of the heap at `address`: these are never compressed.
    /// # Errors
    /// As [`Self::epoch`].
    pub fn root<M: Memory>(&self, memory: &M, address: u64, epoch: Epoch) -> Result<Reference, JvmProblem> {
        let word = memory.u64(address)?;
        let address = if self.references == References::Coloured { uncoloured(word) } else { word };
        Ok(Reference { address, stale: address != 0 && word & epoch.bad_colours != 0 })
    }
    /// The object that a reference leads to, where it is now, and the address of its class.
    /// # Errors
    /// As [`Self::epoch`].
    pub fn object<M: Memory>(&self, memory: &M, reference: Reference) -> Result<(u64, u64), JvmProblem> {
        let mut object = reference.address;
        let mut mark = memory.u64(object)?;
        // The two lowest bits: it was moved, the others say where to (markWord::marked_value).
        if self.bad_mask == 0 && mark & 3 == 3 {
            object = mark & !3;
            mark = memory.u64(object)?;
        }
        let class = match self.class_word {
            ClassWord::Pointer { offset } => memory.u64(at(object, offset)?)?,
            ClassWord::Narrow { offset, base, shift } => {
                at(base, u64::from(memory.u32(at(object, offset)?)?) << shift)?
            }
            ClassWord::InMark { from, base, shift } => {
                at(base, (mark >> from).checked_shl(u32::from(shift)).unwrap_or(0))?
            }
        };
        Ok((object, class))
    }
}

/// The address in a word of generational ZGC. On x86-64 it is above the lowest of four bits that is set,
/// and which one that is changes from phase to phase (zAddress.inline.hpp, zGlobals_x86.cpp, JDK 21 to 25);
/// on others above 16 bits.
fn uncoloured(word: u64) -> u64 {
    if cfg!(target_arch = "x86_64") {
        match (word >> 12 & 0xf).trailing_zeros() {
            bit @ 0..4 => word >> (13 + bit),
            _ => 0,
        }
    } else {
        word >> 16
    }
}
/// Where the mask of bad colours is: a table of pointers to such words is what vmStructs leads to.
fn bad_mask<M: Memory>(memory: &M, vm: &VmStructs, references: References) -> Result<u64, JvmProblem> {
    // In JDK 21 to 23 the one without generations is called X.
    let candidates = match references {
        References::Coloured => [("ZGlobalsForVMStructs", "_ZPointerLoadBadMask"); 2],
        _ => [("XGlobalsForVMStructs", "_XAddressBadMask"), ("ZGlobalsForVMStructs", "_ZAddressBadMask")],
    };
    for (globals, field) in candidates {
        let instance = vm.address(&format!("{globals}::_instance_p"));
        let field = vm.offset(&format!("{globals}::{field}"));
        if let (Some(instance), Some(field)) = (instance, field) {
            let mask = memory.u64(at(memory.u64(instance)?, field)?)?;
            return if mask == 0 { Err(JvmProblem::NotReady) } else { Ok(mask) };
        }
    }
    Err(JvmProblem::Missing("ZGC's colours"))
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests;
