//! The user's memory, as the walk reads it: the stack in pieces, everything else word by word.
//!
//! In: addresses. Out: words in the scratch's `fetched`. A read of user memory costs far more than a step, so that
//! the stack is fetched by up to a page and walked in there.
#![allow(unsafe_code)]

use crate::maps::{FETCH_BYTES, Scratch};
use aya_ebpf::helpers::generated::bpf_probe_read_user;
use core::arch::asm;
use core::ffi::c_void;
use core::ptr::addr_of_mut;
use profiler_ebpf::arch::USER_END;

/// Nothing is mapped in the first page (`vm.mmap_min_addr`).
const USER_START: u64 = 4096;
const PAGE: u64 = 4096;
/// What the first read takes.
pub const FIRST_FETCH_BYTES: u64 = 1024;
/// A saved frame pointer and a return address.
pub const PAIR: u64 = 16;
/// Where the last two words of `fetched` are.
pub const LAST_PAIR: u64 = FETCH_BYTES as u64 - PAIR;
/// No offset.
pub const NOWHERE: u64 = u64::MAX;

#[inline(always)]
pub fn is_user_address(address: u64) -> bool {
    address >= USER_START && address < USER_END
}

/// Keeps a checked index behind its check: the compiler would else compute the address first, and the
/// verifier refuses arithmetic on a pointer with a number that is not bounded yet.
#[inline(always)]
pub fn checked(mut index: u64) -> usize {
    // SAFETY: moves a register to itself. (Without any instruction two lines would share one, and the
    // kernel refuses such line information.)
    unsafe { asm!("{0} = {0}", inout(reg) index, options(nomem, nostack, preserves_flags)) };
    index as usize
}

/// Whether the `bytes` from `address` up are in what was fetched from `base` on.
#[inline(always)]
pub fn covered(base: u64, limit: u64, address: u64, bytes: u64) -> bool {
    let at = address.wrapping_sub(base);
    at <= limit && at + bytes <= limit + PAIR
}

/// A checked index again, for the verifier: `index`, or 0 where it is above `MAX`, which the caller has ruled out.
/// Where the compiler keeps the index on the program's stack, kernels before 6.8 check one copy and use another, of
/// which they know nothing (kernel/bpf/verifier.c: a spilled number got no id).
#[inline(always)]
pub fn at_most<const MAX: u64>(mut index: u64) -> usize {
    // SAFETY: compares a register, and may write that register.
    unsafe {
        asm!("if {0} <= {1} goto +1", "{0} = 0", inout(reg) index, const MAX, options(nomem, nostack));
    }
    index as usize
}

/// Where in `fetched` the `bytes` (16 to 1024) from `address` up are, after a fetch where needed; [`NOWHERE`]: they
/// cannot be read. The answer is bounded by the caller once more: the verifier does not follow it.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn offset_of(scratch: *mut Scratch, address: u64, bytes: u64) -> u64 {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let walk = &mut (*scratch).walk;
        if covered(walk.base, walk.limit, address, bytes) {
            return address.wrapping_sub(walk.base);
        }
        if fetch(scratch, address, bytes) { 0 } else { NOWHERE }
    }
}

/// The two words at `address`.
///
/// # Safety
/// As for [`offset_of`].
#[inline(always)]
pub unsafe fn pair(scratch: *mut Scratch, address: u64) -> Option<(u64, u64)> {
    // SAFETY: as above.
    unsafe {
        let at = offset_of(scratch, address, PAIR);
        (at <= LAST_PAIR).then(|| pair_at(scratch, at))
    }
}

/// The two words at an offset in `fetched`, which the caller has bounded.
///
/// # Safety
/// As for [`offset_of`].
#[inline(always)]
pub unsafe fn pair_at(scratch: *mut Scratch, at: u64) -> (u64, u64) {
    // SAFETY: as above; no further than the last pair.
    unsafe {
        let pair = addr_of_mut!((*scratch).fetched).cast::<u8>().add(at_most::<LAST_PAIR>(at)).cast::<u64>();
        (pair.read(), pair.add(1).read())
    }
}

/// Fetches the stack from `address` up: at least `least` bytes, and no further than the end of a page (a read that
/// touches a hole gives nothing at all and costs a fault). The first read is small and each next one
/// twice that: most of what a sample costs is cold memory, and many stacks are shallow. A JIT frame is 4 to 14 words.
///
/// # Safety
/// As for [`offset_of`].
#[inline(never)]
pub unsafe fn fetch(scratch: *mut Scratch, address: u64, least: u64) -> bool {
    // SAFETY: the buffer is FETCH_BYTES long and no read is longer.
    unsafe {
        let walk = &mut (*scratch).walk;
        let bytes = (PAGE - (address & (PAGE - 1))).min(walk.budget).max(least);
        walk.budget = FETCH_BYTES.min(walk.budget as usize * 2) as u64;
        walk.base = address;
        walk.limit = 0;
        walk.reads += 1;
        let len = checked(bytes);
        if len > FETCH_BYTES || len < PAIR as usize {
            return false;
        }
        let buffer = addr_of_mut!((*scratch).fetched).cast::<c_void>();
        let read = bpf_probe_read_user(buffer, checked(len as u64) as u32, address as *const c_void) == 0;
        // What was not read is in nobody's reach: the limit is 0 already. (Two zeros here would be a call of memset.)
        if read {
            walk.limit = bytes - PAIR;
        } else {
            walk.base = 0;
        }
        read
    }
}

/// Reads a value from anywhere.
///
/// # Safety
/// As for [`offset_of`]; any value of `T` is fine.
#[inline(always)]
pub unsafe fn read<T: Copy + Default>(scratch: *mut Scratch, address: u64) -> Option<T> {
    let mut value = T::default();
    // SAFETY: as large as the type; a read of user memory that cannot fault.
    unsafe {
        (*scratch).walk.reads += 1;
        let to = addr_of_mut!(value).cast::<c_void>();
        (bpf_probe_read_user(to, size_of::<T>() as u32, address as *const c_void) == 0).then_some(value)
    }
}
