//! What unit tests of all rooms share: a fake /proc, the JDKs, Pythons and libraries of this machine, and how a test says that it cannot
//! run here. No product code depends on it.

mod fake_proc;
pub mod jdks;
pub mod pythons;
mod skipped;

pub use fake_proc::{FakeProc, FakeProcess, fixture, stat_line};
pub use skipped::skip;

/// Where Debian has a library for this machine.
pub fn library(name: &str) -> std::path::PathBuf {
    std::path::Path::new("/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH)).join(name)
}
