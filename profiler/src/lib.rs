//! Emberscope: an always-on profiler for machines that run Apache Spark.
//!
//! Data flows one way, and each room has one job:
//! [`capture`] -> [`process`] -> [`symbolize`] -> [`aggregate`] -> [`store`] -> [`serve`].
//! [`model`] is the data they share, [`arch`] what a processor architecture says in numbers of its own, [`target`] and [`hotspot`] read other processes for those rooms that
//! need it; [`import`] reads other profilers' files into a store; [`archive`] copies a store to an object store and
//! answers from there; [`push`] sends closed windows
//! elsewhere; [`pipeline`] alone knows every stage. [`supervise`] keeps their threads going, [`rights`] says which thread
//! may do what.

pub mod aggregate;
pub mod arch;
pub mod archive;
pub mod capture;
pub mod cli;
pub mod config;
pub mod cpython;
pub mod export;
pub mod hotspot;
pub mod import;
pub mod model;
pub mod pipeline;
pub mod process;
pub mod push;
pub mod rights;
pub mod runtime;
pub mod serve;
#[cfg(test)]
mod skipped;
pub mod store;
pub mod supervise;
pub mod symbolize;
pub mod target;
pub mod unwind;
