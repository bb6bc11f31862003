//! Which piece of HotSpot's code a pc is in, and how to step from there.
//!
//! In: a pc in the JVM's code heaps. Out: the scratch's `blob` and `rule`, or why there is none. The way is
//! HotSpot's own (`CodeHeap::find_start`, heap.cpp): a map with a byte for each segment leads back to the block's
//! first, behind whose header the blob begins. At most [`MAX_HOPS`] bytes of the map, the blob's head and eight
//! bytes of its name are read: once for a pc, then the cache has it.
#![allow(unsafe_code)]

use super::state::{Blob, HEAD_WORDS, Kind};
use crate::maps::Scratch;
use crate::walk::leaf;
use crate::walk::stack::{checked, read};
use crate::walk::state::Rule;
use aya_ebpf::helpers::generated::bpf_probe_read_user;
use core::ffi::c_void;
use core::ptr::addr_of_mut;
use profiler_ebpf::arch::LINK_REGISTER;
use profiler_ebpf::{Field, FieldKind, JavaFrameTag, JvmLayout, MAX_CODE_HEAPS, StackEnd};

/// Blobs that execute take up to 4 (measured on 17 and 25; a tag reaches 254 segments back).
const MAX_HOPS: usize = 16;
/// Marks a segment that is free (`CodeHeap::free_sentinel`).
const FREE: u8 = 0xff;

/// Names of blobs, whose first eight bytes tell the kinds apart (codeBlob.cpp, nmethod.cpp, interpreter.cpp,
/// stubRoutines.cpp: the same from JDK 8 to 25).
const NMETHOD: u64 = u64::from_le_bytes(*b"nmethod\0");
const NATIVE_NMETHOD: u64 = u64::from_le_bytes(*b"native n");
const INTERPRETER: u64 = u64::from_le_bytes(*b"Interpre");
const STUB_ROUTINES: u64 = u64::from_le_bytes(*b"StubRout");
const ADAPTERS: u64 = u64::from_le_bytes(*b"I2C/C2I ");
const METHOD_HANDLES: u64 = u64::from_le_bytes(*b"MethodHa");
const FLUSH_ICACHE: u64 = u64::from_le_bytes(*b"flush_ic");
const JNI_FAST: u64 = u64::from_le_bytes(*b"jni_fast");
const DEOPTIMIZATION: u64 = u64::from_le_bytes(*b"Deoptimi");
const UNCOMMON_TRAP: u64 = u64::from_le_bytes(*b"Uncommon");
const UPCALL: u64 = u64::from_le_bytes(*b"upcall_s");

/// Finds the rule for the walk's pc; false: `end` says why there is none.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(never)]
pub unsafe fn resolve(scratch: *mut Scratch, jvm: *const JvmLayout) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let end = find(scratch, jvm);
        if end != 0 {
            (*scratch).walk.end = end;
            return false;
        }
        fill(scratch, jvm);
        let blob = &(*scratch).blob;
        let walk = &(*scratch).walk;
        let leaf = walk.leaf != 0;
        let mut size = blob.frame_size;
        let mut in_frame = 0;
        let mut tag = JavaFrameTag::Stub;
        let kind = match blob.name {
            NMETHOD | NATIVE_NMETHOD => {
                tag = JavaFrameTag::Compiled;
                let handler = walk.pc == blob.deopt || walk.pc == blob.deopt_mh;
                if size == 0 {
                    // A method handle's intrinsic: it jumps on, and makes no frame.
                    Kind::ReturnOnTop as u64
                } else if leaf {
                    leaf::of_nmethod(scratch)
                } else if handler && blob.name == NMETHOD && blob.orig_pc != 0 {
                    in_frame = blob.orig_pc / 8 & 0xffff;
                    Kind::Deoptimized as u64
                } else {
                    size = leaf::frame_words(scratch, size);
                    Kind::Whole as u64
                }
            }
            INTERPRETER if leaf => Kind::InterpretedLeaf as u64,
            INTERPRETER => {
                tag = JavaFrameTag::Interpreted;
                Kind::Interpreted as u64
            }
            STUB_ROUTINES if walk.pc == (*jvm).call_stub_return => Kind::Entry as u64,
            STUB_ROUTINES if leaf => leaf::of_stub(scratch, (*jvm).call_stub_return),
            STUB_ROUTINES => Kind::Stub as u64,
            ADAPTERS | METHOD_HANDLES => Kind::Adapter as u64,
            // Where the link register is not saved otherwise, what they call by is a frame record.
            JNI_FAST if LINK_REGISTER && !leaf => Kind::Entry as u64,
            JNI_FAST | FLUSH_ICACHE => Kind::ReturnOnTopAny as u64,
            UPCALL => Kind::Entry as u64,
            _ if size == 0 => Kind::ReturnOnTop as u64,
            _ if size > 0xffff => Kind::Stub as u64,
            _ if leaf => leaf::of_runtime(scratch),
            DEOPTIMIZATION | UNCOMMON_TRAP => Kind::Rebuilding as u64,
            _ => Kind::Whole as u64,
        };
        let blob = &(*scratch).blob;
        let compiled = tag as u64 == JavaFrameTag::Compiled as u64;
        if compiled && size > 0xffff {
            (*scratch).walk.end = StackEnd::FrameNotUnderstood as u64;
            return false;
        }
        let id = if compiled { blob.compile_id & 0xffff_ffff } else { 0 };
        let size = if size > 0xffff { 0 } else { size };
        (*scratch).rule = Rule {
            what: blob.address | (tag as u64) << 48 | kind << 56,
            how: id | size << 32 | in_frame << 48,
        };
        true
    }
}

/// Where the interpreter's code is, if that was just resolved.
///
/// # Safety
/// As for [`resolve`].
#[inline(always)]
pub unsafe fn interpreter(scratch: *mut Scratch) -> Option<(u64, u64)> {
    // SAFETY: as above.
    unsafe {
        let blob = &(*scratch).blob;
        (blob.name == INTERPRETER).then_some((blob.begin, blob.end))
    }
}

/// Whether what was just resolved is a method that makes a frame.
///
/// # Safety
/// As for [`resolve`].
#[inline(always)]
pub unsafe fn makes_frame(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let blob = &(*scratch).blob;
        (blob.name == NMETHOD || blob.name == NATIVE_NMETHOD) && blob.frame_size != 0
    }
}

/// Whether there is a blob at the walk's pc.
///
/// # Safety
/// As for [`resolve`].
#[inline(always)]
pub unsafe fn is_there(scratch: *mut Scratch, jvm: *const JvmLayout) -> bool {
    // SAFETY: as above.
    unsafe { find(scratch, jvm) == 0 }
}

/// Finds the blob's head and reads it; 0, or the `StackEnd`.
#[inline(never)]
unsafe fn find(scratch: *mut Scratch, jvm: *const JvmLayout) -> u64 {
    // SAFETY: as above.
    unsafe {
        let pc = (*scratch).walk.pc;
        let (mut low, mut segmap) = (0, 0);
        for i in 0..MAX_CODE_HEAPS {
            let heap = &(*jvm).heaps[i];
            if pc >= heap.low && pc < heap.high {
                (low, segmap) = (heap.low, heap.segmap);
            }
        }
        if low == 0 {
            return StackEnd::NoCodeBlob as u64;
        }
        let shift = u64::from((*jvm).segment_shift & 31);
        let mut segment = (pc - low) >> shift;
        let mut end = StackEnd::CodeTableTooLong as u64;
        for _ in 0..MAX_HOPS {
            let Some(tag) = read::<u8>(scratch, segmap.wrapping_add(segment)) else {
                end = StackEnd::CodeHeapUnreadable as u64;
                break;
            };
            if tag == 0 {
                end = 0;
                break;
            }
            if tag == FREE || u64::from(tag) > segment {
                end = StackEnd::NoCodeBlob as u64;
                break;
            }
            segment -= u64::from(tag);
        }
        if end != 0 {
            return end;
        }
        let block = low.wrapping_add(segment << shift);
        let header = u64::from((*jvm).block_header & 31);
        (*scratch).blob.address = block + header & 0xffff_ffff_ffff;
        let bytes = checked(u64::from((*jvm).head_bytes) + header);
        if bytes > HEAD_WORDS * 8 - 8 || bytes == 0 {
            return StackEnd::CodeHeapUnreadable as u64;
        }
        (*scratch).walk.reads += 1;
        let to = addr_of_mut!((*scratch).head).cast::<c_void>();
        if bpf_probe_read_user(to, checked(bytes as u64) as u32, block as *const c_void) != 0 {
            return StackEnd::CodeHeapUnreadable as u64;
        }
        let used = checked(u64::from((*jvm).block_used & 31));
        if addr_of_mut!((*scratch).head).cast::<u8>().add(used).read() == 0 {
            return StackEnd::NoCodeBlob as u64;
        }
        0
    }
}

/// Takes the head apart.
#[inline(never)]
unsafe fn fill(scratch: *mut Scratch, jvm: *const JvmLayout) {
    // SAFETY: as above.
    unsafe {
        let header = u64::from((*jvm).block_header & 31);
        let blob: *mut Blob = addr_of_mut!((*scratch).blob);
        let address = (*blob).address;
        (*blob).begin = place(scratch, header, (*jvm).code_begin, address, 0);
        let begin = (*blob).begin;
        (*blob).end = place(scratch, header, (*jvm).code_end, address, begin);
        (*blob).frame_size = value(scratch, header, (*jvm).frame_size);
        (*blob).frame_complete = value(scratch, header, (*jvm).frame_complete);
        (*blob).compile_id = value(scratch, header, (*jvm).compile_id);
        (*blob).orig_pc = value(scratch, header, (*jvm).orig_pc);
        (*blob).deopt = place(scratch, header, (*jvm).deopt, address, begin);
        (*blob).deopt_mh = place(scratch, header, (*jvm).deopt_mh, address, begin);
        (*blob).verified_entry = place(scratch, header, (*jvm).verified_entry, address, begin);
        let name = value(scratch, header, (*jvm).name);
        (*blob).name = read::<u64>(scratch, name).unwrap_or(0);
    }
}

/// A field's value; 0 when there is none such.
#[inline(always)]
unsafe fn value(scratch: *mut Scratch, header: u64, field: Field) -> u64 {
    /// Bits of eight bytes that are not the field's, by kind.
    const SHIFTS: u64 = 56 << 40 | 48 << 32 | 48 << 24 | 32 << 16;
    let at = header + u64::from(field.offset);
    let kind = u64::from(field.kind);
    if at / 8 > HEAD_WORDS as u64 - 2 || kind == FieldKind::None as u64 || kind > FieldKind::U8 as u64 {
        return 0;
    }
    let shift = SHIFTS >> (kind * 8) & 63;
    // SAFETY: within the head: at most the last word but one. A field lies in one word: offsets are multiples of
    // its size.
    let word = unsafe { addr_of_mut!((*scratch).head).cast::<u64>().add(checked(at / 8)).read() };
    let raw = word >> (at % 8 * 8) << shift;
    if kind == FieldKind::I32 as u64 || kind == FieldKind::I16 as u64 {
        ((raw as i64) >> shift) as u64
    } else {
        raw >> shift
    }
}

/// A field that is a place in the blob.
#[inline(always)]
unsafe fn place(scratch: *mut Scratch, header: u64, field: Field, blob: u64, begin: u64) -> u64 {
    // SAFETY: as for `value`.
    let value = unsafe { value(scratch, header, field) };
    let from = if field.from_code != 0 { begin } else { blob };
    match field.kind {
        0 => 0,
        kind if kind == FieldKind::Pointer as u8 => value,
        _ => from.wrapping_add(value),
    }
}
