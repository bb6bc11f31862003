//! What the walker must know of a HotSpot JVM: vmStructs and memory in, a [`JvmLayout`] out.
//!
//! JDK 8 to 25, by the fields that are there: until 22 a blob has pointers to its code, before 9 and from 23 on
//! offsets; what an nmethod has was in CompiledMethod from 9 to 22. Nothing read is trusted: every number is bounded
//! here, and once more in the kernel. While the JVM starts, its code heaps or its call stub are missing:
//! [`JvmProblem::NotReady`]. The return barrier of virtual threads, the compiler's counter and where locks are come a moment later
//! (0 until then), so a layout of a JVM that has just started is to be read once more.

use super::libjvm::{CONT_ENTRY_RETURN, CONT_RETURN_BARRIER};
use super::slots::{BCP_SLOT, BCP_SLOT_JDK8};
use super::vm_structs::VmStructs;
use super::{Counters, Jvm, JvmProblem, View};
use emberscope_target::memory::{Memory, at};
use profiler_ebpf::arch::USER_END;
use profiler_ebpf::{
    BufferLayout, CodeHeap, Field, FieldKind, JvmLayout, MAX_BLOB_HEAD, MAX_CODE_HEAPS, RuntimeHead,
};

/// Largest code cache (`CODE_CACHE_SIZE_LIMIT`, globalDefinitions.hpp) and some.
const MAX_CODE_BYTES: u64 = 4 << 30;
/// HotSpot's segments have 64 to 4096 bytes (`CodeCacheSegmentSize`).
const SEGMENT_SHIFTS: std::ops::RangeInclusive<u32> = 4..=16;

/// The layout of a JVM. `incarnation` is a number that no other layout had, not 0.
///
/// # Errors
/// [`JvmProblem::NoTables`]: libjvm exports no tables. [`JvmProblem::NotReady`]: the JVM is starting.
/// [`JvmProblem::Missing`]: the tables do not tell what the walker needs. [`JvmProblem::Nonsense`]: heaps or offsets
/// are out of bounds, or a pointer leads nowhere. [`JvmProblem::Gone`], [`JvmProblem::Denied`]: memory cannot be read.
pub fn layout(jvm: &Jvm, incarnation: u32) -> Result<JvmLayout, JvmProblem> {
    let local = |symbol: &str| jvm.libjvm().local_address(symbol);
    jvm.with(|memory, vm| from_tables(memory, vm, &local, incarnation))
}

/// The layout, from a JVM's tables; `local` knows where symbols of libjvm's .symtab are.
///
/// # Errors
/// As [`layout`], but for the tables themselves, which are there.
pub fn from_tables<M: Memory>(
    memory: &M,
    vm: &VmStructs,
    local: &dyn Fn(&str) -> Option<u64>,
    incarnation: u32,
) -> Result<JvmLayout, JvmProblem> {
    let heaps = code_heaps(memory, vm)?;
    let shift = segment_shift(memory, vm)?;
    let used = heaps.iter().filter(|heap| heap.low != 0);
    let low = used.clone().map(|heap| heap.low).min().ok_or(JvmProblem::NotReady)?;
    let high = used.map(|heap| heap.high).max().ok_or(JvmProblem::NotReady)?;
    if high - low > MAX_CODE_BYTES {
        return Err(JvmProblem::Nonsense("code heaps of several gigabytes"));
    }
    let stub = vm.address("StubRoutines::_call_stub_return_address");
    let call_stub_return = memory.u64(stub.ok_or(JvmProblem::Missing("where its call stub returns"))?)?;
    if call_stub_return == 0 {
        return Err(JvmProblem::NotReady);
    }
    // Made after the call stub, before any virtual thread.
    let barrier = local(CONT_RETURN_BARRIER).map(|at| memory.u64(at)).transpose()?.unwrap_or(0);
    let entry_return = vm.address("ContinuationEntry::_return_pc").or_else(|| local(CONT_ENTRY_RETURN));
    let block_header = vm.size("HeapBlock").filter(|size| (1..=24).contains(size));
    let block_used = vm.offset("HeapBlock::Header::_used").filter(|offset| *offset < 24);
    let (Some(block_header), Some(block_used)) = (block_header, block_used) else {
        return Err(JvmProblem::Missing("the headers of its code"));
    };
    let fields = Fields(vm);
    let counters = Counters::find(memory, vm);
    let layout = JvmLayout {
        head: RuntimeHead { low, high, incarnation, pad: 0 },
        heaps,
        call_stub_return,
        cont_return_barrier: barrier,
        segment_shift: shift,
        block_header: block_header as u8,
        block_used: block_used as u8,
        // The array of heaps came with JDK 9.
        bcp_slot: if vm.address("CodeCache::_heap").is_some() { BCP_SLOT_JDK8 } else { BCP_SLOT },
        head_bytes: 0,
        pad: 0,
        name: fields.must("CodeBlob::_name")?,
        frame_size: fields.must("CodeBlob::_frame_size")?,
        frame_complete: fields.must("CodeBlob::_frame_complete_offset")?,
        code_begin: fields.either(&["CodeBlob::_code_begin", "CodeBlob::_code_offset"])?,
        code_end: fields.either(&["CodeBlob::_code_end", "CodeBlob::_data_offset"])?,
        compile_id: fields.must("nmethod::_compile_id")?,
        orig_pc: fields.must("nmethod::_orig_pc_offset")?,
        deopt: fields.either(&[
            "CompiledMethod::_deopt_handler_begin",
            "nmethod::_deopt_handler_offset",
            "nmethod::_deopt_handler_entry_offset",
            "nmethod::_deoptimize_offset",
        ])?,
        deopt_mh: fields
            .any(&["CompiledMethod::_deopt_mh_handler_begin", "nmethod::_deopt_mh_handler_offset"]),
        verified_entry: fields.entry()?,
        unloads: counters.unloads.unwrap_or(0),
        compiles: counters.compiles.unwrap_or(0),
        // The walker finds it.
        interpreter_low: 0,
        interpreter_high: 0,
        cont_entry_return: entry_return.unwrap_or(0),
        // Its classes come a moment later too, and a JVM of which this is not known is walked all the same.
        locks: View::of(memory, vm).map(|view| view.locks(vm)).unwrap_or_default(),
        buffers: buffers(vm).unwrap_or_default(),
    };
    let head_bytes = head_bytes(&layout)?;
    Ok(JvmLayout { head_bytes, ..layout })
}

/// Where threads keep what they allocated (thread.hpp, threadLocalAllocBuffer.hpp, JDK 8 to 25).
fn buffers(vm: &VmStructs) -> Option<BufferLayout> {
    let buffer = vm.offset("Thread::_tlab")?;
    let in_buffer = |name: &str| {
        let offset = vm.offset(&format!("ThreadLocalAllocBuffer::{name}"))?;
        u16::try_from(buffer.checked_add(offset)?).ok()
    };
    Some(BufferLayout {
        allocated: u16::try_from(vm.offset("Thread::_allocated_bytes")?).ok()?,
        start: in_buffer("_start")?,
        top: in_buffer("_top")?,
        end: in_buffer("_end")?,
    })
}

/// Bytes of a blob's head up to the end of the last field that the walker reads.
fn head_bytes(layout: &JvmLayout) -> Result<u16, JvmProblem> {
    let read = [
        layout.name,
        layout.frame_size,
        layout.frame_complete,
        layout.code_begin,
        layout.code_end,
        layout.compile_id,
        layout.orig_pc,
        layout.deopt,
        layout.deopt_mh,
        layout.verified_entry,
    ];
    let end = read.iter().map(|field| usize::from(field.offset) + 8).max().unwrap_or(0);
    if end > MAX_BLOB_HEAD {
        return Err(JvmProblem::Nonsense("a code blob's head of over 512 bytes"));
    }
    Ok(end as u16)
}

/// Reserved memory and segment maps; in the order of the JVM.
fn code_heaps<M: Memory>(memory: &M, vm: &VmStructs) -> Result<[CodeHeap; MAX_CODE_HEAPS], JvmProblem> {
    let missing = JvmProblem::Missing("its code heaps");
    let (Some(of_memory), Some(of_segmap)) = (vm.offset("CodeHeap::_memory"), vm.offset("CodeHeap::_segmap"))
    else {
        return Err(missing);
    };
    let (Some(low), Some(high)) =
        (vm.offset("VirtualSpace::_low_boundary"), vm.offset("VirtualSpace::_high_boundary"))
    else {
        return Err(missing);
    };
    let mut heaps = [CodeHeap::default(); MAX_CODE_HEAPS];
    for (heap, pointer) in heaps.iter_mut().zip(heap_pointers(memory, vm)?) {
        let space = at(pointer, of_memory)?;
        let found = CodeHeap {
            low: memory.u64(at(space, low)?)?,
            high: memory.u64(at(space, high)?)?,
            segmap: memory.u64(at(at(pointer, of_segmap)?, low)?)?,
        };
        if found.low == 0 || found.segmap == 0 {
            return Err(JvmProblem::NotReady);
        }
        let sound = found.low < found.high && found.high < USER_END && found.segmap < USER_END;
        if !sound {
            return Err(JvmProblem::Nonsense("bounds of a code heap"));
        }
        *heap = found;
    }
    Ok(heaps)
}

/// Addresses of the `CodeHeap`s.
fn heap_pointers<M: Memory>(memory: &M, vm: &VmStructs) -> Result<Vec<u64>, JvmProblem> {
    let told = |pointer: u64| if pointer == 0 { Err(JvmProblem::NotReady) } else { Ok(pointer) };
    if let Some(only) = vm.address("CodeCache::_heap") {
        return Ok(vec![told(memory.u64(only)?)?]);
    }
    let missing = JvmProblem::Missing("its code heaps");
    let array = vm.address("CodeCache::_heaps").ok_or(missing.clone())?;
    let array = told(memory.u64(array)?)?;
    let len = ["GrowableArrayBase::_len", "GenericGrowableArray::_len"];
    let len = len.into_iter().find_map(|name| vm.offset(name)).ok_or(missing.clone())?;
    // The same place whatever it holds.
    let data = vm.offset("GrowableArray<int>::_data").ok_or(missing)?;
    let count = u64::from(memory.u32(at(array, len)?)?);
    if count == 0 {
        return Err(JvmProblem::NotReady);
    }
    if count > MAX_CODE_HEAPS as u64 {
        return Err(JvmProblem::Nonsense("more code heaps than there can be"));
    }
    let data = told(memory.u64(at(array, data)?)?)?;
    (0..count).map(|index| told(memory.u64(at(data, 8 * index)?)?)).collect()
}

fn segment_shift<M: Memory>(memory: &M, vm: &VmStructs) -> Result<u8, JvmProblem> {
    let offset = vm.offset("CodeHeap::_log2_segment_size").ok_or(JvmProblem::Missing("its code segments"))?;
    let heap = heap_pointers(memory, vm)?.first().copied().ok_or(JvmProblem::NotReady)?;
    let shift = memory.u32(at(heap, offset)?)?;
    if !SEGMENT_SHIFTS.contains(&shift) {
        return Err(JvmProblem::Nonsense("the size of a code segment"));
    }
    Ok(shift as u8)
}

/// Looks up the fields of code blobs.
struct Fields<'a>(&'a VmStructs);

impl Fields<'_> {
    /// None: this JDK has no such field.
    fn one(&self, name: &str) -> Option<Field> {
        let offset = u16::try_from(self.0.offset(name)?).ok().filter(|o| usize::from(*o) < MAX_BLOB_HEAD)?;
        // Widths changed with releases; the tables tell.
        let kind = match &*self.0.field(name)?.type_name {
            "int" | "int32_t" | "CompLevel" => FieldKind::I32,
            "int16_t" | "short" => FieldKind::I16,
            "u2" | "uint16_t" => FieldKind::U16,
            "u1" | "uint8_t" | "bool" => FieldKind::U8,
            _ => FieldKind::Pointer,
        };
        let width = match kind {
            FieldKind::Pointer => 8,
            FieldKind::I32 => 4,
            FieldKind::I16 | FieldKind::U16 => 2,
            FieldKind::U8 | FieldKind::None => 1,
        };
        // The kernel reads whole words.
        (offset % width == 0).then_some(Field { offset, kind: kind as u8, from_code: 0 })
    }
    fn any(&self, names: &[&str]) -> Field {
        names.iter().find_map(|name| self.one(name)).unwrap_or(Field::NONE)
    }
    fn either(&self, names: &[&str]) -> Result<Field, JvmProblem> {
        let found = names.iter().find_map(|name| self.one(name));
        found.ok_or(JvmProblem::Missing("the layout of its code"))
    }
    fn must(&self, name: &str) -> Result<Field, JvmProblem> {
        self.either(&[name])
    }
    /// Where a method is entered. From 23 on it counts from the first instruction, all other places from the
    /// blob (nmethod.hpp).
    fn entry(&self) -> Result<Field, JvmProblem> {
        if let Some(pointer) = self.one("nmethod::_verified_entry_point") {
            return Ok(pointer);
        }
        Ok(Field { from_code: 1, ..self.must("nmethod::_verified_entry_offset")? })
    }
}

#[cfg(test)]
mod tests;
