//! `--executors`: `*`, or numbers and ranges like `1,3-5`.
//!
//! Executor ids are numbers on every cluster manager; another word is taken as an id as it is.

use super::{KeepError, items};
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
enum ExecutorItem {
    Range(u64, u64),
    Id(String),
}

/// Executors by number: `*`, or `1,3-5`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutorFilter(Vec<ExecutorItem>);

impl FromStr for ExecutorFilter {
    type Err = KeepError;
    fn from_str(text: &str) -> Result<Self, KeepError> {
        let mut kept = Vec::new();
        let mut all = false;
        for item in items("--executors", text)? {
            if item == "*" {
                all = true;
            } else if let Ok(number) = item.parse() {
                kept.push(ExecutorItem::Range(number, number));
            } else if let Some((from, to)) = item.split_once('-') {
                let range = || KeepError::Range { item: item.to_owned() };
                let from = from.trim().parse().map_err(|_| range())?;
                let to = to.trim().parse().map_err(|_| range())?;
                if from > to {
                    return Err(range());
                }
                kept.push(ExecutorItem::Range(from, to));
            } else if item.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                kept.push(ExecutorItem::Id(item.to_owned()));
            } else {
                return Err(KeepError::Executor { item: item.to_owned() });
            }
        }
        Ok(Self(if all { Vec::new() } else { kept }))
    }
}

impl ExecutorFilter {
    pub(super) fn matches(&self, executor: &str) -> bool {
        let number = executor.parse::<u64>().ok();
        self.0.is_empty()
            || self.0.iter().any(|item| match item {
                ExecutorItem::Range(from, to) => number.is_some_and(|n| (*from..=*to).contains(&n)),
                ExecutorItem::Id(id) => id == executor,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_executors_are_read_back(ranges in prop::collection::vec((0u64..50, 0u64..10), 1..6), e in 0u64..70) {
            let text: Vec<String> = ranges.iter().map(|(a, n)| if *n == 0 { a.to_string() } else { format!("{a}-{}", a + n) }).collect();
            let filter: ExecutorFilter = text.join(", ").parse().unwrap();
            let inside = ranges.iter().any(|(a, n)| (*a..=a + n).contains(&e));
            prop_assert_eq!(filter.matches(&e.to_string()), inside);
        }
    }
}
