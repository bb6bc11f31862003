//! Which tests took longest, by when their lines came: libtest prints `test NAME ... ok` when a test has ended, and one
//! runs at a time.

use std::time::Instant;

/// So many are kept.
const KEPT: usize = 20;

/// Tests by how long they took, the slowest first.
#[derive(Debug, Default)]
pub struct Slowest {
    tests: Vec<(f64, String)>,
    /// When the last one ended, or the first began.
    since: Option<Instant>,
}

impl Slowest {
    /// Takes in the next line of the output, which came just now.
    pub fn add_line(&mut self, line: &str) {
        self.add(line, Instant::now());
    }

    fn add(&mut self, line: &str, now: Instant) {
        if line.starts_with("running ") {
            self.since = Some(now);
            return;
        }
        let Some((test, _)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) else {
            return;
        };
        let Some(since) = self.since.replace(now) else { return };
        self.tests.push((now.duration_since(since).as_secs_f64(), test.to_owned()));
        self.tests.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.tests.truncate(KEPT);
    }

    /// Seconds and names.
    pub fn all(&self) -> &[(f64, String)] {
        &self.tests
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_test_took_what_lies_between_its_line_and_the_one_before() {
        let begun = Instant::now();
        let mut slowest = Slowest::default();
        for (second, line) in [
            (0, "     Running plain.rs"),
            (1, "running 3 tests"),
            (3, "test a::b ... ok"),
            (4, "SKIPPED c: no JDK"),
            (9, "test a::c ... FAILED"),
            (9, "test result: FAILED. 2 passed; 1 failed; finished in 8.00s"),
            (60, "running 1 test"),
            (61, "test d ... ignored, it is run by others"),
        ] {
            slowest.add(line, begun + Duration::from_secs(second));
        }
        let all = [(6.0, "a::c".to_owned()), (2.0, "a::b".to_owned()), (1.0, "d".to_owned())];
        assert_eq!(slowest.all(), all);
    }
}
