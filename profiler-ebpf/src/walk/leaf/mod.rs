//! How far the interrupted method or stub of HotSpot has come with making or unmaking its frame, told by its code.
//!
//! In: the scratch's `blob` and the walk's pc. Out: a `Kind`. A file for each architecture, with the same functions; that
//! of arm64 also tells how far the interpreter is with a frame.
#![allow(unsafe_code)]

#[cfg(emberscope_arch = "aarch64")]
mod aarch64;
#[cfg(emberscope_arch = "x86_64")]
mod x86_64;

use crate::maps::Scratch;
use aya_ebpf::helpers::generated::bpf_probe_read_user;
use core::ffi::c_void;
use core::ptr::addr_of_mut;

#[cfg(emberscope_arch = "aarch64")]
pub use aarch64::*;
#[cfg(emberscope_arch = "x86_64")]
pub use x86_64::{at_exit, frame_words, of_nmethod, of_runtime, of_stub};

/// Reads code into the scratch.
#[inline(always)]
unsafe fn code(scratch: *mut Scratch, address: u64, bytes: u32) -> bool {
    // SAFETY: the buffer is CODE_BYTES long, and no caller reads more.
    unsafe {
        (*scratch).walk.reads += 1;
        let to = addr_of_mut!((*scratch).code).cast::<c_void>();
        bpf_probe_read_user(to, bytes, address as *const c_void) == 0
    }
}
