//! Texts and numbers that a driver of Spark writes, in its REST API and in its event log, as they are kept.

use crate::text::{clean, cut};
use emberscope_model::{WallTime, scrub};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

/// Bytes kept of a name, description, host or status.
pub const MAX_WORDS: usize = 256;
/// Bytes of a text that are looked through for secrets; far less is kept.
pub const MAX_SCRUBBED: usize = 4096;

/// Text on one line, at most [`MAX_WORDS`] bytes of it, without secrets: SQL statements and call sites have them. A statement
/// that dbt sends is called by its model.
#[derive(Clone, Debug, Default)]
pub struct Words(pub String);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Cut;
        impl Visitor<'_> for Cut {
            type Value = Words;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
                let full = text.trim();
                let text = cut(full, MAX_SCRUBBED);
                let name = dbt_node(full).map(|node| format!("dbt {node}"));
                Ok(Words(clean(on_one_line(&scrub(name.as_deref().unwrap_or(text))).as_bytes(), MAX_WORDS)))
            }
            fn visit_unit<E: Error>(self) -> Result<Words, E> {
                Ok(Words::default())
            }
        }
        from.deserialize_any(Cut)
    }
}

impl Words {
    /// The text; None where it is empty.
    pub fn some(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|text| !text.is_empty())
    }
    /// The instant of a text that is a time as Spark writes it, `2026-11-21T18:36:11.979GMT`. The epoch and before
    /// stand for "not yet".
    pub fn time(&self) -> Option<WallTime> {
        let text = self.0.strip_suffix("GMT")?;
        let time: jiff::Timestamp = format!("{text}Z").parse().ok()?;
        u64::try_from(time.as_millisecond()).ok().filter(|ms| *ms > 0).map(WallTime::from_millis)
    }
}

/// A text whose lines follow each other with a blank between: statements of SQL and descriptions of streaming queries have several.
fn on_one_line(text: &str) -> Cow<'_, str> {
    match text.contains(['\n', '\r', '\t']) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// What dbt calls the node that a statement is of, `model.shop.orders`: by the comment that it puts before or behind each statement
/// (`query-comment` of dbt's reference: `/* {"app": "dbt", "dbt_version": .., "node_id": ..} */`).
fn dbt_node(statement: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Comment {
        app: String,
        node_id: String,
    }
    let begins =
        statement.strip_prefix("/*").and_then(|rest| rest.split_once("*/")).map(|(comment, _)| comment);
    let ends =
        || statement.trim_end_matches(';').strip_suffix("*/")?.rsplit_once("/*").map(|(_, comment)| comment);
    let comment = begins.filter(|comment| comment.contains("\"dbt\"")).or_else(ends)?;
    let comment: Comment = serde_json::from_str(comment.trim()).ok()?;
    (comment.app == "dbt" && !comment.node_id.is_empty()).then_some(comment.node_id)
}

/// A number that Spark writes as -1 where it has none; 0 then.
///
/// # Errors
/// It is no number.
pub fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(from)?;
    Ok(number.and_then(|n| n.as_u64()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spark_s() {
        let time = |text: &str| Words(text.to_owned()).time().map(WallTime::as_millis);
        assert_eq!(time("2026-11-21T18:36:11.979GMT"), Some(1_795_286_171_979));
        for none in ["", "1969-12-31T23:59:59.999GMT", "1970-01-01T00:00:00.000GMT", "GMT", "soon"] {
            assert_eq!(time(none), None, "{none}");
        }
    }

    #[test]
    fn a_statement_of_dbt_is_called_by_its_model() {
        let said =
            |text: &str| serde_json::from_str::<Words>(&serde_json::to_string(text).unwrap()).unwrap().0;
        let comment = r#"/* {"app": "dbt", "dbt_version": "1.8.2", "profile_name": "shop", "target_name": "dev", "node_id": "model.shop.orders"} */"#;
        assert_eq!(
            said(&format!("{comment}\n\n  create or replace view default.orders as select 1")),
            "dbt model.shop.orders"
        );
        assert_eq!(said(&format!("select 1\n{comment};")), "dbt model.shop.orders");
        for other in [
            "/* {\"app\": \"other\", \"node_id\": \"x\"} */ select 1",
            "/* dbt */ select 1",
            "/* {\"app\": \"dbt\"} */ select 1",
            "/* {\"app\": \"dbt\", \"node_id\": \"\"} */ select 1",
            "select '*/'",
            "/*",
        ] {
            assert_eq!(said(other), other, "it is what it is");
        }
    }

    #[test]
    fn texts_are_bounded_and_on_one_line() {
        let words: Words =
            serde_json::from_str(&format!("\"a\\r\\n\\t b\\u0007{}\"", "x".repeat(1000))).unwrap();
        assert!(words.0.starts_with("a b\u{fffd}x") && words.0.len() <= MAX_WORDS);
        assert!(serde_json::from_str::<Words>("7").is_err());
    }
}
