//! serve

pub mod selector;
pub mod time;
