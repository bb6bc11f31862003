//! serve

pub mod pyroscope;
pub mod selector;
pub mod time;
