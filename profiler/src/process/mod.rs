//! Who a process is: /proc, cgroups, environments in; labels out.

pub mod keep;
mod text;

pub use keep::{AppFilter, ExecutorFilter, Fraction, Keep, KeepError};
