//! What failed tests said, kept to be shown once more at the end of a long run.
//!
//! In: libtest's output, line by line: `---- NAME stdout ----`, what the test printed, and so on until the list
//! of names or the result line. Out: a heading and the last lines of each. Bounded: the message of an assertion
//! or an error comes last, after what the test printed before it.

use std::collections::VecDeque;

/// Lines kept of a test.
const LINES: usize = 30;
/// Characters kept of a line.
const WIDTH: usize = 1_000;
/// Tests whose words are kept.
const TESTS: usize = 50;

/// Failed tests and their last words.
#[derive(Debug, Default)]
pub struct Said {
    tests: Vec<(String, VecDeque<String>)>,
    /// The lines that come are the last test's.
    open: bool,
}

impl Said {
    /// Takes in the next line of the output.
    pub fn add_line(&mut self, line: &str) {
        let heading = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(test) = heading {
            self.open = self.tests.len() < TESTS;
            if self.open {
                self.tests.push((test.to_owned(), VecDeque::new()));
            }
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.open = false;
        } else if self.open
            && !line.trim().is_empty()
            && let Some((_, lines)) = self.tests.last_mut()
        {
            lines.push_back(line.chars().take(WIDTH).collect());
            if lines.len() > LINES {
                lines.pop_front();
            }
        }
    }

    /// Names of the failed tests.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tests.iter().map(|(test, _)| test.as_str())
    }

    /// Takes in what was said in another run.
    pub fn append(&mut self, other: Self) {
        self.tests.extend(other.tests);
        self.tests.truncate(TESTS);
    }

    /// All of it, to be printed.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.tests.iter().flat_map(|(test, lines)| {
            std::iter::once(format!("{test} said:")).chain(lines.iter().map(|line| format!("    {line}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // As libtest of Rust 1.95 prints it, some lines of output apart.
    const OUTPUT: &str = "
running 2 tests
test good ... ok
test bad ... FAILED

failures:

---- bad stdout ----
620 samples in the tasks' methods
Error: the ledger: not in the ledger
the tax: 3 s of 4 s

---- worse stdout ----

thread 'worse' panicked at tests/a.rs:1:1:
left == right


failures:
    bad
    worse

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 129.25s
";

    #[test]
    fn each_failed_test_is_told_with_its_words() {
        let mut said = Said::default();
        OUTPUT.lines().for_each(|line| said.add_line(line));
        let lines: Vec<String> = said.lines().collect();
        assert_eq!(
            lines,
            [
                "bad said:",
                "    620 samples in the tasks' methods",
                "    Error: the ledger: not in the ledger",
                "    the tax: 3 s of 4 s",
                "worse said:",
                "    thread 'worse' panicked at tests/a.rs:1:1:",
                "    left == right",
            ]
        );
    }

    #[test]
    fn the_last_lines_are_kept_and_long_ones_cut() {
        let mut said = Said::default();
        said.add_line("---- chatty stdout ----");
        (0..100).for_each(|n| said.add_line(&format!("{n}{}", "x".repeat(2 * WIDTH))));
        let lines: Vec<String> = said.lines().collect();
        assert_eq!(lines.len(), 1 + LINES);
        assert!(lines[LINES].starts_with("    99x") && lines[LINES].len() == WIDTH + 4);
    }
}
