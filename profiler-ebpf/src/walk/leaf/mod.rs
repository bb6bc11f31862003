//! How far the interrupted method or stub of HotSpot has come with making or unmaking its frame, told by its code.
//!
//! In: the scratch's `blob` and the walk's pc. Out: a `Kind`. A file for each architecture, with the same functions; that
//! of arm64 also tells how far the interpreter is with a frame.

#[cfg(emberscope_arch = "aarch64")]
mod aarch64;
#[cfg(emberscope_arch = "x86_64")]
mod x86_64;

#[cfg(emberscope_arch = "aarch64")]
pub use aarch64::*;
#[cfg(emberscope_arch = "x86_64")]
pub use x86_64::{at_exit, frame_words, of_nmethod, of_runtime, of_stub};
