//! The stack oracle: Java programs that tell their own stacks (tests/jobs/oracle), run on real JVMs, and what the
//! daemon says of the same threads at the same time, compared frame by frame.
//!
//! [`program`] runs them, [`stack`] reads the daemon's answers, [`compare`] judges. `bench stacks` and the
//! end-to-end tests share it.

pub mod compare;
pub mod fold;
pub mod program;
pub mod python;
pub mod stack;

pub use compare::{Report, Truth};
pub use program::{Oracle, Ran, Told};
pub use stack::{Frame, Stack, stacks};
