//! Which lock a thread is about to wait for, and who holds it.
//!
//! In: the thread's `JavaThread*`, which it told when it named itself ([`java_names_itself`]), and how its JVM keeps locks
//! (`profiler_ebpf::LockLayout`). Out: one or two frames at the leaf's side of its stack, [`JavaFrameTag::Class`] and
//! [`JavaFrameTag::Owner`], which the daemon names.
//!
//! The thread stands still while it is read, but the collector may run: an object that it moved may be read where it was, and
//! is still of its class there until the memory is used again. Stale references of ZGC are not followed. Who holds a lock of
//! java.util.concurrent is believed only if that thread's own `JavaThread` leads back to it.
#![allow(unsafe_code)]

use super::maps::{JVMS, NAMING};
use super::references::{object, read, uncoloured, word};
use crate::maps::Scratch;
use crate::walk::{mix, push};
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::macros::uprobe;
use aya_ebpf::programs::ProbeContext;
use core::ptr::{read_volatile, write_volatile};
use profiler_ebpf::{ClassWordKind, EPOCH_NS, JavaFrameTag, LockLayout, OWNER_ID_BITS};

/// A JNIEnv is a part of its JavaThread, which is smaller than this (1.4 to 2.2 KB in JDK 8 to 25).
pub const JAVA_THREAD_BYTES: u64 = 4096;
/// Owners of monitors that are none: nobody, somebody whom the JVM has not looked for yet, who deflates the monitor (objectMonitor.hpp).
const NO_OWNERS: u64 = 2;
/// The second of these.
const ANONYMOUS_OWNER: u64 = 1;
/// Both lowest bits of a mark: the object was moved (markWord.hpp).
const MOVED: u64 = 3;

/// A lock, by its object's class.
struct Lock {
    class: u64,
    /// As the JVM has it; up to [`NO_OWNERS`]: nobody who is known.
    owner: u64,
    /// The monitor; 0: it is none.
    monitor: u64,
}

/// `JVM_SetNativeThreadName(JNIEnv*, jobject thread, jstring name)` (jvm.cpp, JDK 8 to 25), on its way to the function that tells
/// the name: whose `JavaThread` the current thread is.
#[uprobe]
pub fn java_names_itself(ctx: ProbeContext) -> u32 {
    let ids = bpf_get_current_pid_tgid();
    if let (Some(env), Some(thread)) = (ctx.arg::<u64>(0), ctx.arg::<u64>(1)) {
        note((ids >> 32) as u32, ids as u32, env, thread);
    }
    0
}

/// Remembers for a moment which `JavaThread` the current thread has, if it names itself.
#[inline(always)]
pub fn note(pid: u32, tid: u32, env: u64, thread: u64) {
    let Some(jvm) = JVMS.get_ptr(pid) else { return };
    // SAFETY: an entry of the map.
    let eetop = unsafe { (*jvm).locks.eetop };
    if eetop == 0 {
        return;
    }
    let Some(java) = object(thread).and_then(|thread| word(thread + u64::from(eetop))) else { return };
    if env.wrapping_sub(java) < JAVA_THREAD_BYTES
        && let Some(naming) = NAMING.get_ptr_mut(0)
    {
        // SAFETY: this CPU's. Another thread may come between the two words: then they do not fit each other.
        unsafe {
            write_volatile(&raw mut (*naming)[0], u64::from(tid));
            write_volatile(&raw mut (*naming)[1], java ^ mix(0, u64::from(tid)));
        }
    }
}

/// The current thread's `JavaThread`, if it was noted just now on this CPU; else 0.
#[inline(always)]
pub fn noted(tid: u32) -> u64 {
    let Some(naming) = NAMING.get_ptr(0) else { return 0 };
    // SAFETY: as in `note`.
    unsafe {
        if read_volatile(&raw const (*naming)[0]) != u64::from(tid) {
            return 0;
        }
        read_volatile(&raw const (*naming)[1]) ^ mix(0, u64::from(tid))
    }
}

/// Adds the frames of the lock for which the current thread is about to wait, if it is for one.
///
/// # Safety
/// `scratch` is this CPU's scratch, before the first step of its walk.
#[inline(never)]
pub unsafe fn tell(scratch: *mut Scratch, pid: u32, java: u64) -> u64 {
    let Some(jvm) = JVMS.get_ptr(pid) else { return 0 };
    // SAFETY: an entry of the map, and this CPU's scratch.
    unsafe {
        if scratch.is_null() {
            return 0;
        }
        let Some(lock) = lock(&(*jvm).locks, java) else { return 0 };
        push(scratch, lock.class, JavaFrameTag::Class.word());
        if lock.owner > NO_OWNERS {
            let (tag, id) = match thread_id(&(*jvm).locks, lock.owner) {
                0 => (JavaFrameTag::OwnerElsewhere, mix(0, lock.monitor)),
                id => (JavaFrameTag::Owner, id),
            };
            push(scratch, lock.owner, tag.word() | cookie(scratch, id));
        } else if lock.owner == ANONYMOUS_OWNER && lock.monitor != 0 {
            push(scratch, lock.monitor, JavaFrameTag::OwnerUnknown.word() | cookie(scratch, 0));
        }
    }
    0
}

#[inline(always)]
fn lock(layout: &LockLayout, java: u64) -> Option<Lock> {
    if layout.thread_object == 0 || java == 0 {
        return None;
    }
    let thread = thread_of(layout, java)?;
    let monitor = word(java + u64::from(layout.pending_monitor))?;
    let (object, owner) = if monitor != 0 {
        let object = referred(layout, monitor + u64::from(layout.monitor_object))?;
        (object, word(monitor + u64::from(layout.monitor_owner))?)
    } else {
        let blocker = field(layout, thread + u64::from(layout.park_blocker))?;
        if blocker == 0 {
            return None;
        }
        let owner = exclusive_owner(layout, blocker).unwrap_or(0);
        (blocker, if owner == java { 0 } else { owner })
    };
    Some(Lock { class: class(layout, object)?, owner, monitor })
}

/// The `java.lang.Thread` of a `JavaThread`, which must lead back to it.
#[inline(always)]
fn thread_of(layout: &LockLayout, java: u64) -> Option<u64> {
    let thread = referred(layout, java + u64::from(layout.thread_object))?;
    (word(thread + u64::from(layout.eetop))? == java).then_some(thread)
}

/// Who holds a lock of java.util.concurrent: that thread's `JavaThread`.
#[inline(always)]
fn exclusive_owner(layout: &LockLayout, lock: u64) -> Option<u64> {
    let owner = field(layout, lock + u64::from(layout.exclusive_owner))?;
    if owner == 0 {
        return None;
    }
    let java = word(owner + u64::from(layout.eetop))?;
    (thread_of(layout, java)? == owner).then_some(java)
}

/// What makes the name of a frame for an owner hold for this thread and this epoch alone.
#[inline(always)]
unsafe fn cookie(scratch: *mut Scratch, id: u64) -> u64 {
    // SAFETY: this CPU's scratch.
    let epoch = unsafe { (*scratch).walk.taken_ns } / EPOCH_NS;
    (epoch << OWNER_ID_BITS | id & ((1 << OWNER_ID_BITS) - 1)) & 0xffff_ffff
}

/// The thread's id as the JVM has it; 0 of what is no `JavaThread`: an address in the owner's stack, or its number.
#[inline(always)]
fn thread_id(layout: &LockLayout, java: u64) -> u64 {
    if thread_of(layout, java).is_none() {
        return 0;
    }
    let os_thread = word(java + u64::from(layout.os_thread)).unwrap_or(0);
    read::<u32>(os_thread + u64::from(layout.thread_id)).map_or(0, u64::from)
}

/// The object of a reference outside of the heap, or of a handle to one.
#[inline(always)]
fn referred(layout: &LockLayout, at: u64) -> Option<u64> {
    let at = if layout.by_handle != 0 { word(at)? } else { at };
    wide(layout, at).filter(|object| *object != 0)
}

/// The object that a field refers to; 0: none.
#[inline(always)]
fn field(layout: &LockLayout, at: u64) -> Option<u64> {
    if layout.narrow == 0 {
        return wide(layout, at);
    }
    let narrow = u64::from(read::<u32>(at)?);
    Some(if narrow == 0 { 0 } else { layout.base.wrapping_add(narrow << (layout.shift & 31)) })
}

/// A reference of eight bytes, if it is not stale.
#[inline(always)]
fn wide(layout: &LockLayout, at: u64) -> Option<u64> {
    let reference = word(at)?;
    if layout.bad_mask != 0 && reference & word(layout.bad_mask)? != 0 {
        return None;
    }
    Some(if layout.coloured != 0 { uncoloured(reference) } else { reference })
}

/// The `Klass*` of an object.
#[inline(always)]
fn class(layout: &LockLayout, object: u64) -> Option<u64> {
    let at = object + u64::from(layout.class_word);
    let narrow = |n: u64| layout.class_base.wrapping_add(n << (layout.class_shift & 31));
    if layout.class_kind == ClassWordKind::Narrow as u8 {
        return read::<u32>(at).map(|n| narrow(u64::from(n)));
    }
    let whole = word(at)?;
    if layout.class_kind == ClassWordKind::Pointer as u8 {
        return Some(whole);
    }
    (whole & MOVED != MOVED).then(|| narrow(whole >> (layout.class_from & 63)))
}
