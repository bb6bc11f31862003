//! The two selections of `emberscope diff`, as `--left app=a,stage=3`.
//!
//! In: text. Out: parameters of the HTTP API, `left.stage=3`. Keys are those of the other commands'
//! flags: labels, `run`, `from`, `until`, and last of all `query`, which takes the rest of the text because
//! selectors hold commas. The daemon judges the values.

use crate::cli::values::{near, of};
use crate::cli::when::{When, range, when};
use emberscope_model::LabelKey;
use std::borrow::Cow;

/// Keys that are no labels.
const OTHERS: &[&str] = &["from", "until", "run", "query"];

/// Keys that are times.
const TIMES: [&str; 2] = ["from", "until"];

/// One selection: keys, as the API calls them, and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side(Vec<(&'static str, String)>);

impl Side {
    /// The selection as parameters of the API, `left.stage` or `right.stage`.
    pub fn params(&self, side: &str) -> impl Iterator<Item = (Cow<'static, str>, String)> {
        let time = |name: &str| -> Option<When> {
            let (_, value) = self.0.iter().find(|(key, _)| *key == name)?;
            when(value).ok()
        };
        let [from, until] = TIMES.map(time);
        let [from, until] = range(from.as_ref(), until.as_ref(), &jiff::Zoned::now());
        let others = self.0.iter().filter(|(key, _)| !TIMES.contains(key)).cloned();
        let times = TIMES.into_iter().zip([from, until]).filter_map(|(name, text)| Some((name, text?)));
        let all: Vec<_> = others.chain(times).collect();
        all.into_iter().map(move |(key, value)| (Cow::Owned(format!("{side}.{key}")), value))
    }
    /// The selection as words, for messages.
    pub fn describe(&self) -> String {
        let pairs = self.0.iter().map(|(key, value)| format!("{key}={value}"));
        pairs.collect::<Vec<_>>().join(" ")
    }
}

/// Reads `key=value,...`; a piece without a key is one more value of the key before it: `stage=3,4`.
///
/// # Errors
/// A sentence for clap: a key that is not known (with the nearest one), a piece without a key, or nothing at all.
pub fn side(text: &str) -> Result<Side, String> {
    let mut pairs: Vec<(&'static str, String)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_once(',').unwrap_or((rest, ""));
        match (piece.split_once('='), pairs.last()) {
            (Some((name, value)), _) => match key(name)? {
                "query" => {
                    let selector = rest.split_once('=').map_or("", |(_, selector)| selector);
                    pairs.push(("query", selector.to_owned()));
                    break;
                }
                key => {
                    if TIMES.contains(&key) {
                        when(value).map_err(|error| format!("{key}={value}: {error}"))?;
                    }
                    if let Some(values) = of(key) {
                        near(values)(value).map_err(|error| format!("{key}={value}: {error}"))?;
                    }
                    pairs.push((key, value.to_owned()));
                }
            },
            (None, Some(&(key, _))) if !piece.is_empty() && !OTHERS.contains(&key) => {
                pairs.push((key, piece.to_owned()))
            }
            (None, _) => return Err(format!("`{piece}` is no key=value such as stage=3")),
        }
        rest = after;
    }
    if pairs.is_empty() { Err("it selects nothing: write key=value,...".to_owned()) } else { Ok(Side(pairs)) }
}

/// A key's name in the API, for what was typed: `thread-class` and `thread_class`.
fn key(typed: &str) -> Result<&'static str, String> {
    let typed = typed.trim().replace('-', "_");
    let known = || LabelKey::ASKED.iter().map(|key| key.name()).chain(OTHERS.iter().copied());
    if let Some(name) = known().find(|name| *name == typed) {
        return Ok(name);
    }
    // Distance is quadratic in length, and no key is long.
    let short: String = typed.chars().take(64).collect();
    let nearest = known().map(|name| (strsim::damerau_levenshtein(&short, name), name)).min();
    match nearest {
        Some((distance, name)) if distance <= 1 + name.len() / 3 => {
            Err(format!("unknown key `{short}`: did you mean `{name}`?"))
        }
        _ => Err(format!("unknown key `{short}`: there are {}", known().collect::<Vec<_>>().join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &str) -> Vec<String> {
        side(text).unwrap().params("left").map(|(key, value)| format!("{key}={value}")).collect()
    }

    #[test]
    fn keys_values_and_several_values() {
        assert_eq!(pairs("app=etl,stage=3,4"), ["left.app=etl", "left.stage=3", "left.stage=4"]);
        assert_eq!(pairs("thread-class=gc,from=-1h"), ["left.thread_class=gc", "left.from=-1h"]);
        assert_eq!(pairs("executor="), ["left.executor="]);
        assert_eq!(pairs("run=-2,from=5m"), ["left.run=-2", "left.from=-5m"]);
        let selector = r#"{app="a=b",stage=~"3|4"}"#;
        assert_eq!(
            pairs(&format!("node=n,query={selector}")),
            ["left.node=n".to_owned(), format!("left.query={selector}")]
        );
        assert_eq!(side("app=a,b").unwrap().describe(), "app=a app=b");
    }

    #[test]
    fn mistakes_are_told_with_the_mend() {
        let mistake = |text| side(text).unwrap_err();
        assert_eq!(mistake("app=etl,stgae=3"), "unknown key `stgae`: did you mean `stage`?");
        assert!(mistake("colour=red").starts_with("unknown key `colour`: there are service_name, node,"));
        assert_eq!(mistake("3"), "`3` is no key=value such as stage=3");
        assert_eq!(mistake("from=1,2"), "`2` is no key=value such as stage=3");
        let role = mistake("role=exec");
        assert!(role.starts_with("role=exec: did you mean executor?"), "{role}");
        assert!(mistake("").contains("key=value"));
        assert!(
            mistake("from=soon").starts_with("from=soon: not a time: use 5m"),
            "{}",
            mistake("from=soon")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}|[a-z,=-]{0,40}") {
            if let Ok(side) = side(&text) {
                prop_assert!(!side.describe().is_empty());
            }
        }
    }
}
