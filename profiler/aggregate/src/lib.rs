//! Counting: samples in, closed windows out.
//!
//! [`Windows`] sums samples by labels, stack and kind in windows of ten seconds of wall-clock time,
//! through a `ClockMap` that turns the kernel's monotonic stamps into wall time and survives steps of
//! the clock. [`Interner`] makes equal stacks share one allocation. All three are bounded, and say in
//! their counters what the bounds cost.

mod clock;
mod closed;
mod intern;
mod lines;
mod pauses;
mod rows;
mod stack_key;
mod windows;

pub use clock::ClockReading;
pub use closed::{ClosedWindow, CountedRow};
pub use intern::{InternLimits, InternStats, Interner};
pub use rows::Counts;
pub use windows::{WindowCounters, Windows, WindowsConfig};
