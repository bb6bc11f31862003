//! What a thread of HotSpot has allocated, and its buffer (TLAB).
//!
//! `Thread::_allocated_bytes` has buffers that were given up, up to where they were used, and objects outside of them (retire in
//! threadLocalAllocBuffer.cpp, allocate_outside_tlab in memAllocator.cpp, JDK 11 to 25); of the buffer in use the thread
//! itself moves `_top`. It is current, so nothing of it changes meanwhile.
#![allow(unsafe_code)]

use super::maps::JVMS;
use super::references::word;

/// Bytes that a thread has allocated since it began, and bytes of its buffer in use; None: not known.
#[inline(always)]
pub fn allocated(pid: u32, thread: u64) -> Option<(u64, u64)> {
    let jvm = JVMS.get_ptr(pid)?;
    // SAFETY: an entry of the map.
    let at = unsafe { (*jvm).buffers };
    if at.allocated == 0 {
        return None;
    }
    let field = |offset: u16| word(thread.wrapping_add(u64::from(offset)));
    let (given_up, start) = (field(at.allocated)?, field(at.start)?);
    let (top, end) = (field(at.top)?, field(at.end)?);
    // Without a buffer all three are 0.
    Some((given_up.saturating_add(top.saturating_sub(start)), end.saturating_sub(start)))
}
