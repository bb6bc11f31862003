//! Java frames: recorded by the kernel's walker, named from the JVM's own memory.
//!
//! [`Slots`] hold the place of a frame in stacks until its name is known; [`Reader`] is the thread that reads
//! the names, so that nothing here waits for a target's memory.

mod reader;
mod slot;

pub use reader::{Answer, Named, Reader};
pub use slot::{Slot, Slots};
