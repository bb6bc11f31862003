//! Whose work a thread does: threads' names, forks and accounts in; labels and lines of the ledger out.
//!
//! [`Threads`] is the door. [`name`] reads Spark's names of the threads that run tasks, [`class`] knows all
//! others, `helper` which threads work for the task that made them, `python` which task a
//! PySpark worker works for, [`idle`] when a task is over by a
//! stack, and [`wait`] why it waited. Nothing here does I/O. Limits are in [`Limits`], what they turn away in [`ThreadCounters`].

mod book;
mod budget;
pub mod class;
mod counters;
mod helper;
pub mod idle;
mod keep;
mod label;
mod learn;
pub mod name;
mod python;
mod state;
mod table;
#[cfg(test)]
mod tests;
pub mod wait;

pub use book::Booking;
pub use class::class_of;
pub use counters::ThreadCounters;
pub use idle::{Occupation, occupation, without_task};
pub use label::{OTHER, UNKNOWN};
pub use name::{TaskId, TaskName};
pub use table::{Limits, Owner, OwnerKind, Threads};
pub use wait::wait_reason;
