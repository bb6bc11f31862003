//! Names of threads for a libjvm whose symbol table was stripped: read out of the String.
//!
//! A uprobe on the exported `JVM_SetNativeThreadName(JNIEnv*, jobject thread, jstring name)`, which Thread.setName calls (src/hotspot/share/prims/jvm.cpp, JDK 8 to 25). In: how this
//! JVM lays out Strings (`STRING_LAYOUTS`). Out: the same records as `threads`, with the String's own bytes.
//!
//! What can go wrong: the collector may move the String meanwhile, and then a name is the old copy's,
//! nothing, or (seldom) bytes that are no name; names that the JVM itself gives at a thread's start do not come
//! this way.
#![allow(unsafe_code)]

use super::locks::{JAVA_THREAD_BYTES, note};
use super::maps::STRING_LAYOUTS;
use super::references::{object, read, uncoloured, word};
use crate::output::Counts;
use crate::threads::{NamedRecord, forget, named};
use crate::walk::checked;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::helpers::generated::bpf_probe_read_user as read_bytes;
use aya_ebpf::macros::uprobe;
use aya_ebpf::programs::ProbeContext;
use core::ptr::addr_of_mut;
use profiler_ebpf::{DropReason, MAX_NAME, StringLayout, ThreadRecord};

const UTF16: u8 = 1;

#[uprobe]
pub fn thread_named_java(ctx: ProbeContext) -> u32 {
    let ids = bpf_get_current_pid_tgid();
    let (Some(env), Some(thread), Some(name)) = (ctx.arg::<u64>(0), ctx.arg::<u64>(1), ctx.arg::<u64>(2))
    else {
        return 0;
    };
    let Some(layout) = STRING_LAYOUTS.get_ptr((ids >> 32) as u32) else {
        // A JVM that the daemon has not read yet.
        forget(ids as u32);
        if let Some(counts) = Counts::of_this_cpu() {
            counts.lost(DropReason::NameUnreadable);
        }
        return 0;
    };
    // SAFETY: a value of the map; user space writes it before the first name and never again.
    let layout = unsafe { &*layout };
    if !names_itself(layout, env, thread) {
        return 0;
    }
    note((ids >> 32) as u32, ids as u32, env, thread);
    named(|record| string(layout, name, record));
    0
}

/// Only then does the JVM tell the kernel. Of what cannot be read, yes. A JavaThread that lies just below the current one can be
/// taken for it.
#[inline(always)]
fn names_itself(layout: &StringLayout, env: u64, thread: u64) -> bool {
    if layout.eetop_offset == 0 {
        return true;
    }
    let eetop = object(thread).and_then(|thread| word(thread + u64::from(layout.eetop_offset)));
    eetop.is_none_or(|eetop| env.wrapping_sub(eetop) < JAVA_THREAD_BYTES)
}

/// Puts the bytes of a String behind the record: how many, and flags.
#[inline(always)]
fn string(layout: &StringLayout, handle: u64, record: *mut NamedRecord) -> Option<(u32, u32)> {
    let string = object(handle)?;
    let array = array(layout, string + u64::from(layout.value_offset))?;
    let length = read::<u32>(array + u64::from(layout.array_length_offset))?;
    let (length, wide) = if layout.coder_offset == StringLayout::NO_CODER {
        (u64::from(length) * 2, true)
    } else {
        (u64::from(length), read::<u8>(string + u64::from(layout.coder_offset))? == UTF16)
    };
    let mut flags = if wide { ThreadRecord::FLAG_NAME_UTF16 } else { ThreadRecord::FLAG_NAME_LATIN1 };
    let mut bytes = length;
    if length > MAX_NAME as u64 {
        flags |= ThreadRecord::FLAG_NAME_CUT;
        bytes = MAX_NAME as u64;
    }
    let bytes = checked(bytes);
    if bytes > MAX_NAME {
        return None;
    }
    // SAFETY: the buffer is longer than MAX_NAME; a read of user memory that cannot fault.
    let failed = unsafe {
        let buffer = addr_of_mut!((*record).name);
        let from = array + u64::from(layout.array_data_offset);
        read_bytes(buffer.cast(), bytes as u32, from as *const _)
    };
    (failed == 0).then_some((bytes as u32, flags))
}

/// The array that a String's field refers to.
#[inline(always)]
fn array(layout: &StringLayout, field: u64) -> Option<u64> {
    if layout.narrow != 0 {
        let narrow = u64::from(read::<u32>(field)?);
        return Some(layout.base.wrapping_add(narrow << (layout.shift & 31)));
    }
    let wide = word(field)?;
    Some(if layout.coloured == 0 { wide } else { uncoloured(wide) })
}
