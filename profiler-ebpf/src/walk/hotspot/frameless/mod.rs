//! Steps from code that may have no frame of its own: stubs, adapters, and what was interrupted before it made one.
//!
//! In: the walk's registers. Out: the caller's, or an end. Where the return address is then, is the architecture's: a file for
//! each, with the same three functions.

#[cfg(emberscope_arch = "aarch64")]
mod aarch64;
#[cfg(emberscope_arch = "x86_64")]
mod x86_64;

#[cfg(emberscope_arch = "aarch64")]
pub use aarch64::{adapter, stub, top};
#[cfg(emberscope_arch = "x86_64")]
pub use x86_64::{adapter, stub, top};
