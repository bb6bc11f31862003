//! Counts tests: libtest's "test result:" lines in, one sum out.
//!
//! A test that finds a feature missing returns early and libtest calls it passed, so it also writes a
//! line `name<TAB>reason` to the file named by EMBERSCOPE_SKIP_LOG; such a test counts as skipped. One that is ignored
//! because it is a program that another test starts, or a tool, says so ([`NO_TEST`]), and is not counted at all.

use std::collections::BTreeMap;

/// How the reason of an `#[ignore]` begins that claims nothing by itself.
pub const NO_TEST: &str = "no test of its own: ";

/// How many tests did what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ran and held.
    pub passed: u64,
    /// Did not hold, or a check that did not.
    pub failed: u64,
    /// Ignored, or could not run here.
    pub skipped: u64,
    /// Ignored since the last result line, and no test of its own: that line counts it among the ignored.
    pub no_tests: u64,
}

impl Tally {
    /// Adds what a line of libtest's output says, if it is a result line.
    pub fn add_line(&mut self, line: &str) {
        if line.split_once(" ... ignored, ").is_some_and(|(_, reason)| reason.starts_with(NO_TEST)) {
            self.no_tests += 1;
        }
        let Some(result) = line.trim().strip_prefix("test result: ") else { return };
        let count = |what: &str| {
            let part = result.split(['.', ';']).find_map(|part| part.trim().strip_suffix(what))?;
            part.trim().parse::<u64>().ok()
        };
        self.passed += count(" passed").unwrap_or(0);
        self.failed += count(" failed").unwrap_or(0);
        self.skipped += count(" ignored").unwrap_or(0).saturating_sub(std::mem::take(&mut self.no_tests));
    }

    /// Turns tests that said that they could not run from passed into skipped.
    pub fn apply_skips(&mut self, skips: &BTreeMap<String, String>) {
        let moved = self.passed.min(skips.len() as u64);
        self.passed -= moved;
        self.skipped += moved;
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Reads a skip log: test -> reason, each test once.
pub fn parse_skips(log: &str) -> BTreeMap<String, String> {
    log.lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(test, reason)| (test.to_owned(), reason.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_summed_and_others_ignored() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a ... ok",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 4 filtered out; finished in 1.5s",
            "my own 7 passed",
            "test b ... ignored, no test of its own: the test below starts it",
            "test c ... ignored, it is measured by a benchmark",
            "test result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            tally.add_line(line);
        }
        assert_eq!(tally, Tally { passed: 13, failed: 2, skipped: 2, no_tests: 0 });
        assert_eq!(tally.to_string(), "13 passed, 2 failed, 2 skipped");
    }

    #[test]
    fn a_test_that_skips_itself_twice_is_one_skip() {
        let skips = parse_skips("a\tno BTF\nb\tno JDK 25\na\tno root\nrubbish\n");
        assert_eq!(skips.len(), 2);
        let mut tally = Tally { passed: 3, failed: 1, skipped: 1, no_tests: 0 };
        tally.apply_skips(&skips);
        assert_eq!(tally, Tally { passed: 1, failed: 1, skipped: 3, no_tests: 0 });
    }
}
