//! Which Spark applications and executors are kept: `--apps`, `--executors`, `--fraction`.
//!
//! Pure. The fraction is decided by a hash of application and executor id alone, so that every node
//! chooses the same executors, and a larger fraction holds all of a smaller one. What is no Spark
//! application's process is always kept: it is the row of neighbours. Drivers (with their user's Python)
//! follow `--apps` only.

mod apps;
mod executors;
mod fraction;

pub use apps::AppFilter;
pub use executors::ExecutorFilter;
pub use fraction::Fraction;

/// Longest pattern, in bytes; matching is quadratic at worst.
const MAX_PATTERN: usize = 256;

/// What is wrong with a filter's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeepError {
    /// Nothing between two commas, or nothing at all.
    #[error("empty item in {option} '{text}': write ids separated by commas, or '*' for all")]
    Empty {
        /// Name of the option, with its dashes.
        option: &'static str,
        /// What was written, cut.
        text: String,
    },
    /// A range of executors that is none: `5-3`.
    #[error("bad range '{item}' in --executors: write two numbers, the smaller first, like 3-5")]
    Range {
        /// The item between two commas.
        item: String,
    },
    /// Characters that no id has.
    #[error("bad item '{item}' in --executors: write a number, a range like 3-5, or '*'")]
    Executor {
        /// The item between two commas.
        item: String,
    },
    /// A pattern of more bytes than are matched.
    #[error("an item of {option} is longer than {MAX_PATTERN} bytes")]
    TooLong {
        /// Name of the option, with its dashes.
        option: &'static str,
    },
    /// No number from 0 to 1.
    #[error("bad --fraction '{text}': write a number from 0 to 1, like 0.2")]
    Fraction {
        /// What was written, cut.
        text: String,
    },
}

/// The whole filter; by default everything is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keep {
    /// Which applications are kept.
    pub apps: AppFilter,
    /// Which of their executors are kept.
    pub executors: ExecutorFilter,
    /// Which share of those executors is kept.
    pub fraction: Fraction,
}

impl Keep {
    /// Whether the samples of a process of a Spark application are kept. `executor` is None for what
    /// belongs to none. A name or id that is not known yet does not exclude.
    pub fn matches(&self, app: Option<&str>, name: Option<&str>, executor: Option<&str>) -> bool {
        if !self.apps.matches(app, name) {
            return false;
        }
        let Some(executor) = executor.filter(|e| *e != "driver") else { return true };
        self.executors.matches(executor) && self.fraction.matches(app.unwrap_or_default(), executor)
    }
}

fn items<'a>(option: &'static str, text: &'a str) -> Result<Vec<&'a str>, KeepError> {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    if items.iter().any(|i| i.is_empty()) {
        return Err(KeepError::Empty { option, text: cut_for_message(text) });
    }
    items.iter().try_for_each(|i| check_length(option, i))?;
    Ok(items)
}

fn check_length(option: &'static str, item: &str) -> Result<(), KeepError> {
    if item.len() > MAX_PATTERN { Err(KeepError::TooLong { option }) } else { Ok(()) }
}

fn cut_for_message(text: &str) -> String {
    super::text::cut(text, 80).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keep(apps: &str, executors: &str, fraction: &str) -> Keep {
        Keep {
            apps: apps.parse().unwrap(),
            executors: executors.parse().unwrap(),
            fraction: fraction.parse().unwrap(),
        }
    }

    #[test]
    fn everything_by_default() {
        let all = Keep::default();
        assert!(all.matches(Some("app-1"), None, Some("7")) && all.matches(None, None, None));
        assert_eq!(keep("*", "*", "1"), all);
    }

    #[test]
    fn applications_by_id_name_and_glob() {
        let some = keep("app-2026*-0001, daily*", "*", "1");
        assert!(some.matches(Some("app-20261121183613-0001"), Some("x"), Some("1")));
        assert!(some.matches(Some("app-9"), Some("daily sales"), Some("1")));
        assert!(!some.matches(Some("app-9"), Some("hourly"), Some("1")));
        assert!(some.matches(Some("app-9"), None, Some("1")), "its name may still match");
        assert!(some.matches(None, None, None), "a driver whose id is not known yet");
        let by_id = keep("application_1_2", "*", "1");
        assert!(!by_id.matches(Some("application_1_3"), None, Some("1")), "an id needs no name");
    }

    #[test]
    fn executors_by_number_and_range() {
        let some = keep("*", "1,3-5", "1");
        let kept: Vec<u32> = (0..8).filter(|e| some.matches(Some("a"), None, Some(&e.to_string()))).collect();
        assert_eq!(kept, [1, 3, 4, 5]);
        assert!(some.matches(Some("a"), None, None), "drivers follow --apps only");
        assert!(some.matches(Some("a"), None, Some("driver")), "and so does a local one");
    }

    #[test]
    fn errors_name_the_thing_and_the_mend() {
        let executors = |t: &str| t.parse::<ExecutorFilter>().unwrap_err().to_string();
        assert_eq!(
            executors("5-3"),
            "bad range '5-3' in --executors: write two numbers, the smaller first, like 3-5"
        );
        assert!(executors("1,,2").contains("empty item in --executors '1,,2'"));
        assert!(executors("a-b").contains("bad range 'a-b'"));
        assert!(executors("a.b").contains("bad item 'a.b'"));
        assert!("".parse::<AppFilter>().unwrap_err().to_string().contains("--apps"));
        for bad in ["2", "-0.1", "NaN", "x", "", "20%"] {
            let error = bad.parse::<Fraction>().unwrap_err().to_string();
            assert!(error.contains("from 0 to 1"), "{error}");
        }
    }

    #[test]
    fn a_fraction_is_about_that_share_and_the_same_everywhere() {
        let ids: Vec<String> = (0..4000).map(|e| e.to_string()).collect();
        let share = |f: &str| {
            let keep = keep("*", "*", f);
            ids.iter().filter(|e| keep.matches(Some("app-20261121183613-0001"), None, Some(e))).count() as f64
                / 4000.0
        };
        for (text, f) in [("0", 0.0), ("0.2", 0.2), ("0.5", 0.5), ("1", 1.0)] {
            // Four standard deviations of a share of 4000.
            assert!((share(text) - f).abs() <= 0.032, "{text}: {}", share(text));
        }
        assert_eq!(share("0"), 0.0);
        assert_eq!(share("1"), 1.0);
        // Pinned: a change here changes which executors users see.
        assert_eq!(fraction::hash("app-20261121183613-0001", "3"), 0x2000_eec1_5203_2d2c);
        assert_ne!(fraction::hash("a", "bc"), fraction::hash("ab", "c"));
    }

    proptest! {
        #[test]
        fn parsers_never_panic(text in ".*") {
            let _ = text.parse::<AppFilter>();
            let _ = text.parse::<ExecutorFilter>();
            let _ = text.parse::<Fraction>();
        }

    }
}
