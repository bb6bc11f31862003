//! The walk of JVMs under the collectors, compilers and flags that `cargo xtask test` has no time for: the tests of
//! tests/walk.rs that it ignores. A row a JVM; what was seen of each is printed.

use super::Bench;
use crate::bench::row::Row;
use crate::setup::runtime::{MAJORS, Runtime};
use crate::test::{self, Programs};
use crate::{setup, step};
use anyhow::{Context as _, Result, bail};

/// Runs them.
pub fn rows(_: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    for major in MAJORS {
        if let Err(why) = Runtime::ensure(major) {
            skipped.push(format!("walk, Java {major}: {why:#}"));
        }
    }
    let mut tests = Programs::compile()?.command("kernel");
    tests.args(["walk::", "--ignored", "--nocapture", "--test-threads", "1"]);
    test::tell_machine(&mut tests, &setup::spark()?);
    let output = tests.output().with_context(|| format!("cannot start {}", step::shown(&tests)))?;
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    let rows: Vec<Row> = text.lines().filter_map(row).collect();
    if rows.is_empty() {
        bail!("{} ran no JVM: {}", step::shown(&tests), String::from_utf8_lossy(&output.stderr));
    }
    Ok(rows)
}

/// What a test printed of a JVM.
fn row(line: &str) -> Option<Row> {
    let (name, verdict) = line.strip_prefix("jvm ")?.split_once(": ")?;
    Some(Row::is(format!("walk: {name}"), verdict, "holds", verdict == "holds", 1))
}
