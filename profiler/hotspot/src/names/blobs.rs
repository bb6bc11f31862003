//! From an address to the code blob that it lies in: a JVM's memory in, a blob's head out.
//!
//! A code heap is cut in segments, and a map with a byte for each leads back to its block's first (heap.cpp,
//! JDK 8 to 25): 0 there, 255 free, else so many segments back at least. The map is read 256 bytes at once.

use super::Unnamed;
use super::layout::{CodeLayout, DebugInfo, Metadata};
use emberscope_target::memory::{Memory, at};

/// Three when the code cache is segmented, one when not; JDK 25 can have a fourth for what is archived.
const MAX_HEAPS: u32 = 8;
/// A code cache has at most 2 GB (`CODE_CACHE_SIZE_LIMIT`).
const MAX_RESERVED: u64 = 1 << 32;
/// Steps back through the map: each but the last goes 254 segments, so blobs up to 2 MB are found.
const MAX_STEPS: u32 = 64;
/// Bytes of the map that are read at once.
const PIECE: u64 = 256;

/// A code heap: addresses of its reserved memory and of its map, and the size of its segments as a power of 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heap {
    pub low: u64,
    pub high: u64,
    pub segmap: u64,
    pub shift: u32,
    /// One past the last byte that was in use when the heap was read.
    pub committed: u64,
}

/// The code heaps that there are; none before the JVM made them.
///
/// # Errors
/// [`Unnamed::Gone`]: the process ended. [`Unnamed::Unreadable`]: memory cannot be read. A heap that makes no sense is
/// left out.
pub fn heaps<M: Memory>(memory: &M, layout: &CodeLayout) -> Result<Vec<Heap>, Unnamed> {
    let first = memory.u64(layout.heaps)?;
    if first == 0 {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let Some((length, data)) = layout.array else {
        found.extend(heap(memory, layout, first)?);
        return Ok(found);
    };
    let (count, data) = (memory.u32(at(first, length)?)?, memory.u64(at(first, data)?)?);
    for index in 0..count.min(MAX_HEAPS) {
        let address = memory.u64(at(data, 8 * u64::from(index))?)?;
        found.extend(heap(memory, layout, address)?);
    }
    Ok(found)
}

fn heap<M: Memory>(memory: &M, layout: &CodeLayout, address: u64) -> Result<Option<Heap>, Unnamed> {
    let field = |offset| memory.u64(at(address, offset)?);
    let heap = Heap {
        low: field(layout.heap_low)?,
        high: field(layout.heap_high)?,
        segmap: field(layout.heap_segmap)?,
        committed: field(layout.heap_committed)?,
        shift: memory.u32(at(address, layout.heap_shift)?)?,
    };
    let sound =
        heap.low < heap.high && heap.high - heap.low <= MAX_RESERVED && (4..=16).contains(&heap.shift);
    Ok(sound.then_some(heap))
}

/// A blob's head, as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The blob's address: what its offsets count from.
    pub blob: u64,
    /// First instruction and one past the last.
    pub code: (u64, u64),
    /// The number of the compilation, of a blob that is an nmethod.
    pub compile_id: u32,
    /// The address of the `Method`, of a blob that is an nmethod.
    pub method: u64,
    /// Where the blob's name is.
    pub name: u64,
    /// The blob's first bytes, for where the debug info is.
    pub bytes: Vec<u8>,
}

/// The blob that `pc` lies in.
///
/// # Errors
/// [`Unnamed::NotJava`]: `pc` lies in no code heap. [`Unnamed::Unloaded`]: the segment is free, or its blob does not
/// have `pc`. [`Unnamed::Unreadable`]: memory cannot be read, or the map leads nowhere. [`Unnamed::Gone`]: the process
/// ended.
pub fn find<M: Memory>(memory: &M, layout: &CodeLayout, heaps: &[Heap], pc: u64) -> Result<Head, Unnamed> {
    let heap = heaps.iter().find(|heap| (heap.low..heap.high).contains(&pc)).ok_or(Unnamed::NotJava)?;
    let mut segment = (pc - heap.low) >> heap.shift;
    let mut piece = [0u8; PIECE as usize];
    // Which part of the map `piece` has.
    let mut from = u64::MAX;
    for _ in 0..MAX_STEPS {
        if segment < from {
            from = segment.saturating_sub(PIECE - 1);
            let wanted = piece.get_mut(..(segment - from + 1) as usize).ok_or(Unnamed::Unreadable)?;
            memory.read(at(heap.segmap, from)?, wanted)?;
        }
        match piece.get((segment - from) as usize).copied().map(u64::from) {
            Some(0) => {
                let block = at(heap.low, segment << heap.shift)?;
                let head = head(memory, layout, at(block, layout.block_header)?)?;
                let inside = (head.code.0..head.code.1).contains(&pc);
                return if inside { Ok(head) } else { Err(Unnamed::Unloaded) };
            }
            // Free: what was there is gone.
            Some(255) => return Err(Unnamed::Unloaded),
            Some(back) => segment = segment.checked_sub(back).ok_or(Unnamed::Unreadable)?,
            None => return Err(Unnamed::Unreadable),
        }
    }
    Err(Unnamed::Unreadable)
}

/// The head of the blob at `blob`.
///
/// # Errors
/// [`Unnamed::Unloaded`]: the blob's block is not in use. [`Unnamed::Unreadable`]: memory cannot be read, or the code
/// is not where a blob's can be. [`Unnamed::Gone`]: the process ended.
pub fn head<M: Memory>(memory: &M, layout: &CodeLayout, blob: u64) -> Result<Head, Unnamed> {
    let header = layout.block_header as usize;
    let mut bytes = vec![0; header + layout.head as usize];
    memory.read(blob.checked_sub(layout.block_header).ok_or(Unnamed::Unreadable)?, &mut bytes)?;
    if bytes.get(layout.block_used as usize) == Some(&0) {
        return Err(Unnamed::Unloaded);
    }
    let bytes = bytes.split_off(header);
    let parts = || {
        Some(Head {
            blob,
            code: (layout.begin.address(blob, &bytes)?, layout.end.address(blob, &bytes)?),
            compile_id: layout.compile_id.get(&bytes)? as u32,
            method: layout.method.pointer(&bytes)?,
            name: layout.name.pointer(&bytes)?,
            bytes: Vec::new(),
        })
    };
    let head = parts().ok_or(Unnamed::Unreadable)?;
    // Code lies behind the head, in the same heap.
    if head.code.0 < blob || head.code.0 > head.code.1 || head.code.1 - blob > MAX_RESERVED {
        return Err(Unnamed::Unreadable);
    }
    Ok(Head { bytes, ..head })
}

/// Where an nmethod's debug info is: first byte and length of each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sections {
    pub metadata: (u64, u64),
    pub scopes: (u64, u64),
    pub pcs: (u64, u64),
}

impl Head {
    /// Whether this is the same nmethod as `before`, with its debug info where it was.
    pub fn still(&self, before: &Self, layout: &CodeLayout) -> bool {
        let same = |head: &Self| (head.blob, head.code, head.compile_id, head.method, head.sections(layout));
        same(self) == same(before)
    }

    /// Where the debug info of the nmethod is; None where an end is before a beginning.
    pub fn sections(&self, layout: &CodeLayout) -> Option<Sections> {
        let (blob, head) = (self.blob, self.bytes.as_slice());
        let part = |from: u64, to: u64| Some((from, to.checked_sub(from)?));
        let behind = |base: u64, offset: super::layout::Number| base.checked_add(offset.size(head)?);
        match layout.debug {
            DebugInfo::Inside { metadata, scopes, pcs, pcs_end } => {
                let (pcs, scopes) = (behind(blob, pcs)?, scopes.address(blob, head)?);
                Some(Sections {
                    metadata: part(behind(blob, metadata)?, scopes)?,
                    scopes: part(scopes, pcs)?,
                    pcs: part(pcs, behind(blob, pcs_end)?)?,
                })
            }
            DebugInfo::Outside { metadata, memory, pcs, scopes, size } => {
                let metadata = match metadata {
                    Metadata::Data { data, offset, size } => {
                        part(behind(behind(blob, data)?, offset)?, behind(blob, size)?)?
                    }
                    Metadata::Mutable { memory, relocations, size } => {
                        let memory = memory.pointer(head)?;
                        part(behind(memory, relocations)?, behind(memory, size)?)?
                    }
                };
                let memory = memory.pointer(head)?;
                let (pcs, scopes) = (behind(memory, pcs)?, behind(memory, scopes)?);
                Some(Sections {
                    metadata,
                    scopes: part(scopes, behind(memory, size)?)?,
                    pcs: part(pcs, scopes)?,
                })
            }
        }
    }
}
