//! CPython read from outside, without its help: an interpreter's process in, what the walker must know of it and names of
//! its frames out.
//!
//! Releases 3.8 to 3.14 with the global lock, by offsets that are compiled in and held against the running interpreter
//! before they are believed (`offsets`, `check`). Asks nothing of the interpreter, stops nothing, writes nothing. What
//! cannot be read is a [`PythonProblem`] or a frame with a reason, never a guess. Free-threaded builds, builds with the JIT
//! compiler and PyPy are refused by name. Reads may wait for the target's memory: on threads of [`emberscope_runtime`].

mod check;
mod code;
mod debug_offsets;
mod eval;
mod file;
mod file_name;
#[cfg(test)]
mod hostile_tests;
mod lines;
mod merge;
mod names;
mod offsets;
mod problem;
mod python;
mod runtime;
#[cfg(test)]
mod tests;
mod thread;

pub use check::check;
pub use code::{Code, Codes};
pub use debug_offsets::told;
pub use offsets::{LineTable, Offsets};
pub use problem::PythonProblem;
pub use python::Python;
pub use runtime::CPython;
pub use thread::Libraries;
