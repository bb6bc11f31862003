//! `ci`: what `.ci/run` does, which is `test` and nothing that differs from it.

use crate::test;
use anyhow::Result;

/// Runs it.
pub fn run() -> Result<()> {
    test::run(&test::Options::default())
}
