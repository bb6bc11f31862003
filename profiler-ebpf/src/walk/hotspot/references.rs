//! Words of a JVM's memory, and references to objects as its collectors store them.
#![allow(unsafe_code)]

use aya_ebpf::helpers::bpf_probe_read_user;

/// Low bits of a handle say what kind it is (JNIHandles::TypeTag, src/hotspot/share/runtime/jniHandles.hpp).
const HANDLE_TAG: u64 = 7;

/// What a handle refers to.
#[inline(always)]
pub fn object(handle: u64) -> Option<u64> {
    word(handle & !HANDLE_TAG)
}

/// The address in a reference of generational ZGC (`ZPointerLoadShift`, zAddress.inline.hpp): above the lowest of four bits that
/// is set; on arm64 above all of them, whichever that is (zGlobals_aarch64.cpp).
#[inline(always)]
pub fn uncoloured(reference: u64) -> u64 {
    if cfg!(emberscope_arch = "aarch64") {
        return reference >> 16;
    }
    let colour = reference >> 12;
    if colour & 1 != 0 {
        reference >> 13
    } else if colour & 2 != 0 {
        reference >> 14
    } else if colour & 4 != 0 {
        reference >> 15
    } else {
        reference >> 16
    }
}

#[inline(always)]
pub fn word(address: u64) -> Option<u64> {
    read::<u64>(address)
}

#[inline(always)]
pub fn read<T>(address: u64) -> Option<T> {
    // SAFETY: a read of user memory that cannot fault.
    unsafe { bpf_probe_read_user(address as *const T) }.ok()
}
