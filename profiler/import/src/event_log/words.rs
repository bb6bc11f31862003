//! Texts of an event log, as they are kept: on one line, bounded, without secrets.

use emberscope_model::scrub;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Bytes kept of a name, description, host or status: as of what Spark's REST API says.
pub const MAX_WORDS: usize = 256;
/// Bytes of a text that are looked through for secrets.
const MAX_SCRUBBED: usize = 4096;

/// Text on one line, at most [`MAX_WORDS`] bytes of it, without secrets: SQL statements and call sites have them.
#[derive(Clone, Debug, Default)]
pub struct Words(pub String);

impl Words {
    /// The text; None where it is empty.
    pub fn some(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|text| !text.is_empty())
    }
}

/// A text as it is kept.
fn kept(text: &str) -> String {
    let text = text.trim();
    let end = (0..=MAX_SCRUBBED.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    let scrubbed = scrub(text.get(..end.unwrap_or_default()).unwrap_or_default());
    let mut kept = String::new();
    for c in scrubbed.chars() {
        let c = if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        if kept.len() + c.len_utf8() > MAX_WORDS {
            break;
        }
        kept.push(c);
    }
    kept
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Cut;
        impl Visitor<'_> for Cut {
            type Value = Words;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
                Ok(Words(kept(text)))
            }
            fn visit_unit<E: Error>(self) -> Result<Words, E> {
                Ok(Words::default())
            }
        }
        from.deserialize_any(Cut)
    }
}
