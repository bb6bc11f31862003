//! Blocks asked by Spark (deploy/spark) and by HTTP: the same question has the same numbers.
//!
//! Of the store that the first version wrote (tests/fixtures/store-1), of that with what Spark said, and of what a daemon
//! kept of a real Spark job; by the older Spark that is tested and by the newest, in one application each. The package is
//! installed by pip into a directory of the test, so it is also seen that it installs, and that executors do not need it.

mod asked;
mod fixture;
mod live;
mod words;

pub use asked::install;

use crate::held;
use anyhow::{Context as _, Result};
use emberscope_tests::Here;

/// Asks the Spark of `spark` of all blocks; the job was recorded on the machine's usual one.
fn says_the_same(here: &Here, spark: &Here) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let fixture = fixture::Fixture::prepare(&dir.path().join("fixture"))?;
    let live = live::Live::prepare(here, held::held(here)?, &dir.path().join("live"))?;
    let told = words::Told::prepare(&dir.path().join("told"))?;
    let said = asked::ask(spark, &dir.path().join("ask"), &[fixture.set(), told.set(), live.set()])?;
    fixture.judge(&said["fixture"]).context("the fixture")?;
    told.judge(&said["told"]).context("what Spark said")?;
    live.judge(&said["live"]).context("a real job")
}

#[test]
fn spark_says_the_same() -> Result<()> {
    let Some(here) = Here::or_skip("spark_says_the_same") else { return Ok(()) };
    says_the_same(&here, &here)
}

#[test]
fn the_newest_spark_says_the_same() -> Result<()> {
    const TEST: &str = "the_newest_spark_says_the_same";
    let Some(here) = Here::or_skip(TEST) else { return Ok(()) };
    let Some(newest) = here.clone().with_newest_spark(TEST) else { return Ok(()) };
    says_the_same(&here, &newest)
}
