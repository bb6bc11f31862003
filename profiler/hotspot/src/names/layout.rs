//! Where things are in a JVM's code blobs: vmStructs in, offsets out.
//!
//! Three shapes of an nmethod's debug info are known (vmStructs.cpp, nmethod.hpp): inside the blob (JDK 8 to
//! 22), beside it but for the metadata (23 and 24), all beside it (25). Which one a JVM has is told by the
//! fields that it describes, never by its version.

use crate::problem::JvmProblem;
use crate::vm_structs::{Place, VmStructs};

/// Bytes of a blob's head that are read at once, at most.
pub const MAX_HEAD: u64 = 1024;

/// A number in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Bytes from the object's start.
    pub offset: u64,
    /// How many bytes the number has.
    width: u8,
    signed: bool,
}

impl Number {
    /// The field `name`, as wide as its type says.
    pub fn of(vm: &VmStructs, name: &str) -> Option<Self> {
        let field = vm.field(name)?;
        let Place::Offset(offset) = field.place else { return None };
        let (width, signed) = match &*field.type_name {
            kind if kind.ends_with('*') || kind == "address" || kind == "size_t" => (8, false),
            "u2" | "uint16_t" | "unsigned short" => (2, false),
            "int16_t" | "short" => (2, true),
            "u1" | "bool" | "CodeBlobKind" | "unsigned char" => (1, false),
            "u4" | "uint32_t" | "unsigned int" => (4, false),
            _ => (4, true),
        };
        Some(Self { offset, width, signed })
    }
    /// One past the number's last byte, from the object's start.
    pub fn end(self) -> u64 {
        self.offset + u64::from(self.width)
    }
    /// The value in an object whose first bytes these are.
    pub fn get(self, object: &[u8]) -> Option<i64> {
        let at = usize::try_from(self.offset).ok()?;
        let bytes = object.get(at..at.checked_add(usize::from(self.width))?)?;
        let mut all = [0u8; 8];
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let unused = 64 - 8 * u32::from(self.width);
        let value = i64::from_le_bytes(all);
        Some(if self.signed { value << unused >> unused } else { value })
    }
    /// As [`Self::get`], for what is never negative.
    pub fn size(self, object: &[u8]) -> Option<u64> {
        u64::try_from(self.get(object)?).ok()
    }
    /// As [`Self::get`], for a pointer.
    pub fn pointer(self, object: &[u8]) -> Option<u64> {
        self.get(object).map(|value| value as u64)
    }
}

/// A place in a blob: where a pointer leads, or so many bytes from the blob's start.
#[derive(Clone, Copy, Debug)]
pub enum Spot {
    /// The address in this pointer.
    Pointer(Number),
    /// So many bytes from the blob's start.
    Offset(Number),
}

impl Spot {
    fn of(vm: &VmStructs, pointer: &str, offset: &str) -> Option<Self> {
        Number::of(vm, pointer).map(Self::Pointer).or_else(|| Number::of(vm, offset).map(Self::Offset))
    }
    fn number(self) -> Number {
        match self {
            Self::Pointer(number) | Self::Offset(number) => number,
        }
    }
    /// The address, for a blob at `blob` whose first bytes are `head`.
    pub fn address(self, blob: u64, head: &[u8]) -> Option<u64> {
        match self {
            Self::Pointer(number) => number.pointer(head),
            Self::Offset(number) => blob.checked_add(number.size(head)?),
        }
    }
}

/// Where an nmethod's debug info is.
#[derive(Clone, Copy, Debug)]
pub enum DebugInfo {
    /// Metadata, scopes, pcs and dependencies follow each other in the blob.
    Inside { metadata: Number, scopes: Spot, pcs: Number, pcs_end: Number },
    /// Scopes and pcs are in memory of their own.
    Outside { metadata: Metadata, memory: Number, pcs: Number, scopes: Number, size: Number },
}

/// Where an nmethod's metadata is when its scopes are not in the blob.
#[derive(Clone, Copy, Debug)]
pub enum Metadata {
    /// In the blob's data, up to the blob's end.
    Data { data: Number, offset: Number, size: Number },
    /// Behind the relocations in memory of its own.
    Mutable { memory: Number, relocations: Number, size: Number },
}

/// Code blobs and the heaps that they are in.
#[derive(Clone, Copy, Debug)]
pub struct CodeLayout {
    /// Address of the pointer to the array of heaps, or to the one heap.
    pub heaps: u64,
    /// Offsets of the array's length and of the pointer to its elements; None where there is one heap.
    pub array: Option<(u64, u64)>,
    pub heap_low: u64,
    pub heap_high: u64,
    pub heap_committed: u64,
    pub heap_segmap: u64,
    pub heap_shift: u64,
    /// Bytes of a block's header, which stands before a blob, and which of them tells that the block is in use.
    pub block_header: u64,
    pub block_used: u64,
    /// Bytes from a blob's start that have all that follows.
    pub head: u64,
    pub name: Number,
    pub begin: Spot,
    pub end: Spot,
    pub compile_id: Number,
    pub method: Number,
    pub debug: DebugInfo,
    /// Subtracted from each byte of a compressed number.
    pub excluded: u8,
}

impl CodeLayout {
    /// Finds the layout in vmStructs; `major` is the JVM's version.
    ///
    /// # Errors
    /// [`JvmProblem::Missing`]: a field is not in the tables, or farther from a blob's start than [`MAX_HEAD`].
    pub fn of(vm: &VmStructs, major: Option<u32>) -> Result<Self, JvmProblem> {
        Self::find(vm, major).ok_or(JvmProblem::Missing("how it keeps compiled code"))
    }

    fn find(vm: &VmStructs, major: Option<u32>) -> Option<Self> {
        let number = |name: &str| Number::of(vm, name);
        let either = |a: &str, b: &str| number(a).or_else(|| number(b));
        let (memory, segmap) = (vm.offset("CodeHeap::_memory")?, vm.offset("CodeHeap::_segmap")?);
        let (low, high) =
            (vm.offset("VirtualSpace::_low_boundary")?, vm.offset("VirtualSpace::_high_boundary")?);
        let (heaps, array) = match vm.address("CodeCache::_heaps") {
            Some(heaps) => {
                let length = vm.offset("GrowableArrayBase::_len");
                let length = length.or_else(|| vm.offset("GenericGrowableArray::_len"))?;
                (heaps, Some((length, vm.offset("GrowableArray<int>::_data")?)))
            }
            None => (vm.address("CodeCache::_heap")?, None),
        };
        let debug = if let Some(memory) = number("nmethod::_immutable_data") {
            let metadata = if let Some(memory) = number("CodeBlob::_mutable_data") {
                let relocations = number("CodeBlob::_relocation_size")?;
                Metadata::Mutable { memory, relocations, size: number("CodeBlob::_mutable_data_size")? }
            } else {
                let data = number("CodeBlob::_data_offset")?;
                Metadata::Data {
                    data,
                    offset: number("nmethod::_metadata_offset")?,
                    size: number("CodeBlob::_size")?,
                }
            };
            let (pcs, scopes) =
                (number("nmethod::_scopes_pcs_offset")?, number("nmethod::_scopes_data_offset")?);
            DebugInfo::Outside {
                metadata,
                memory,
                pcs,
                scopes,
                size: number("nmethod::_immutable_data_size")?,
            }
        } else {
            DebugInfo::Inside {
                metadata: number("nmethod::_metadata_offset")?,
                scopes: Spot::of(vm, "CompiledMethod::_scopes_data_begin", "nmethod::_scopes_data_offset")?,
                pcs: number("nmethod::_scopes_pcs_offset")?,
                pcs_end: number("nmethod::_dependencies_offset")?,
            }
        };
        // The stream of fields came a release after the numbers that it is written in.
        let newer = vm.offset("InstanceKlass::_fieldinfo_stream").is_some();
        let all = Self {
            heaps,
            array,
            heap_low: memory + low,
            heap_high: memory + high,
            heap_committed: memory + vm.offset("VirtualSpace::_high")?,
            heap_segmap: segmap + low,
            heap_shift: vm.offset("CodeHeap::_log2_segment_size")?,
            block_header: vm.size("HeapBlock")?,
            block_used: vm.offset("HeapBlock::_header").unwrap_or(0)
                + vm.offset("HeapBlock::Header::_used")?,
            head: 0,
            name: number("CodeBlob::_name")?,
            begin: Spot::of(vm, "CodeBlob::_code_begin", "CodeBlob::_code_offset")?,
            end: Spot::of(vm, "CodeBlob::_code_end", "CodeBlob::_data_offset")?,
            compile_id: number("nmethod::_compile_id")?,
            method: either("nmethod::_method", "CompiledMethod::_method")?,
            debug,
            excluded: u8::from(newer || major.is_some_and(|major| major >= 20)),
        };
        let head = all.numbers().map(Number::end).max()?;
        (head <= MAX_HEAD && all.block_used < all.block_header && all.block_header <= 64)
            .then_some(Self { head, ..all })
    }

    fn numbers(&self) -> impl Iterator<Item = Number> {
        let debug = match self.debug {
            DebugInfo::Inside { metadata, scopes, pcs, pcs_end } => {
                [metadata, scopes.number(), pcs, pcs_end, pcs, pcs, pcs]
            }
            DebugInfo::Outside { metadata, memory, pcs, scopes, size } => {
                let [a, b, c] = match metadata {
                    Metadata::Data { data, offset, size } => [data, offset, size],
                    Metadata::Mutable { memory, relocations, size } => [memory, relocations, size],
                };
                [memory, pcs, scopes, size, a, b, c]
            }
        };
        let plain = [self.name, self.begin.number(), self.end.number(), self.compile_id, self.method];
        plain.into_iter().chain(debug)
    }
}
