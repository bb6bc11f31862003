//! Deferred frames: sent by the kernel's walker as a runtime's, named from the process's own memory.
//!
//! [`Slots`] hold the place of a frame in stacks until its name is known; [`Symbolizer`](crate::Symbolizer) hands them to the readers of
//! [`emberscope_runtime`], so that nothing here waits for a target's memory, and takes in what came back.

mod slot;

pub use slot::{Slot, Slots, Wanted};
