//! Reads PromQL label selectors: `name{key="value", other=~"a|b"}`.
//!
//! In: text from a query parameter or a Pyroscope request. Out: a [`Selector`], which
//! [`Selector::to_selection`] turns into the store's conditions. `{}`, the empty text, a leading metric
//! name and a trailing comma are allowed, as Grafana sends them. Strings are Go's: `"…"` and `'…'` with
//! escapes, `` `…` `` raw. As in Prometheus 3, a regular expression is anchored at both ends and `.`
//! matches a line break too. Limits: [`MAX_TEXT`] bytes, [`MAX_MATCHERS`] matchers, [`REGEX_BYTES`]
//! bytes a compiled expression. Pure: no I/O, no clock; never panics.

mod reader;

use emberscope_model::{LabelKey, MatchOp, Matcher, Selection};
use reader::Reader;
use regex::{Regex, RegexBuilder};

/// Longest selector that is read, in bytes.
pub const MAX_TEXT: usize = 8 * 1024;
/// Most matchers in one selector.
pub const MAX_MATCHERS: usize = 32;
/// Largest compiled regular expression, in bytes: enough for hundreds of alternatives, and 32 of them
/// stay below 4 MB.
pub const REGEX_BYTES: usize = 128 * 1024;
/// Deepest nesting of a regular expression: the parser's own work is bounded by it.
const REGEX_NEST: u32 = 32;

/// Why a selector could not be read. `at` is a byte offset into the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text has too many bytes.
    #[error("the selector is longer than {MAX_TEXT} bytes")]
    TooLong,
    /// There are too many conditions.
    #[error("the selector has more than {MAX_MATCHERS} matchers")]
    TooMany,
    /// Something else stood where this was needed.
    #[error("expected {wanted} at byte {at} of the selector")]
    Expected {
        /// What was needed.
        wanted: &'static str,
        /// Byte offset into the text.
        at: usize,
    },
    /// A backslash that means nothing.
    #[error("bad escape at byte {at} of the selector")]
    Escape {
        /// Byte offset into the text.
        at: usize,
    },
    /// The expression is not one, or is too large.
    #[error("bad regular expression for `{label}`: {reason}")]
    Regex {
        /// The label that the expression was for.
        label: String,
        /// What is wrong with the expression.
        reason: String,
    },
    /// There is no such label.
    #[error("there is no label `{label}`")]
    UnknownLabel {
        /// The name that was given.
        label: String,
    },
}

/// How a matcher compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Matches,
    /// `!~`
    NotMatches,
}

impl Comparison {
    /// The operator as it is written.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Matches => "=~",
            Self::NotMatches => "!~",
        }
    }
}

/// One `name op "value"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelMatcher {
    /// Label name as written; that need not be one of [`LabelKey`].
    pub name: String,
    /// How the label's value is compared.
    pub comparison: Comparison,
    /// The text or expression, escapes undone.
    pub value: String,
}

impl LabelMatcher {
    /// The condition as the store has it; compiles the expression.
    ///
    /// # Errors
    /// [`SelectorError::Regex`]: the expression is none, or compiled it is larger than [`REGEX_BYTES`].
    pub fn compile(&self) -> Result<MatchOp, SelectorError> {
        Ok(match self.comparison {
            Comparison::Equal => MatchOp::In(vec![self.value.clone()]),
            Comparison::NotEqual => MatchOp::NotIn(vec![self.value.clone()]),
            Comparison::Matches => MatchOp::Regex(anchored(&self.name, &self.value)?),
            Comparison::NotMatches => MatchOp::NotRegex(anchored(&self.name, &self.value)?),
        })
    }

    /// Whether the condition holds for a set without the label: absent is the empty text.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub fn holds_for_absent(&self) -> Result<bool, SelectorError> {
        Ok(match self.compile()? {
            MatchOp::In(values) => values.iter().any(String::is_empty),
            MatchOp::NotIn(values) => values.iter().all(|v| !v.is_empty()),
            MatchOp::Regex(re) => re.is_match(""),
            MatchOp::NotRegex(re) => !re.is_match(""),
        })
    }
}

/// What to do with a label name that is not in [`LabelKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownLabels {
    /// An error: the caller can name the nearest one.
    Refuse,
    /// As PromQL: no sample has it, so it compares as the empty text.
    AreEmpty,
}

/// A selector as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The name before the braces; empty when there is none.
    pub metric: String,
    /// The conditions, in order.
    pub matchers: Vec<LabelMatcher>,
}

impl Selector {
    /// The store's conditions. None: with [`UnknownLabels::AreEmpty`], a condition on a label that no
    /// sample has can not hold, so nothing is selected.
    ///
    /// # Errors
    /// [`SelectorError::UnknownLabel`], with [`UnknownLabels::Refuse`]: there is no such label.
    /// [`SelectorError::Regex`]: an expression is none, or too large.
    pub fn to_selection(&self, unknown: UnknownLabels) -> Result<Option<Selection>, SelectorError> {
        let mut matchers = Vec::with_capacity(self.matchers.len());
        for matcher in &self.matchers {
            match LabelKey::from_name(&matcher.name) {
                Some(key) => matchers.push(Matcher { key, op: matcher.compile()? }),
                None if unknown == UnknownLabels::Refuse => {
                    return Err(SelectorError::UnknownLabel { label: matcher.name.clone() });
                }
                None if matcher.holds_for_absent()? => {}
                None => return Ok(None),
            }
        }
        Ok(Some(Selection { matchers }))
    }
}

/// A regular expression that must match the whole text, with bounded size.
fn anchored(label: &str, pattern: &str) -> Result<Regex, SelectorError> {
    let build = |text: &str| {
        RegexBuilder::new(text)
            .size_limit(REGEX_BYTES)
            .dfa_size_limit(REGEX_BYTES)
            .nest_limit(REGEX_NEST)
            .build()
            .map_err(|e| SelectorError::Regex { label: label.to_owned(), reason: sentence(&e) })
    };
    // On its own first: `a)|(b` must not become two halves once it stands in the group.
    build(pattern)?;
    build(&format!(r"\A(?s:{pattern})\z"))
}

/// The last line of a regex error says what is wrong; those before it draw the expression.
fn sentence(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// Reads a selector.
///
/// # Errors
/// [`SelectorError::TooLong`], [`SelectorError::TooMany`]: the text has more bytes or matchers than may be.
/// [`SelectorError::Expected`], [`SelectorError::Escape`]: it is no selector.
pub fn parse(text: &str) -> Result<Selector, SelectorError> {
    if text.len() > MAX_TEXT {
        return Err(SelectorError::TooLong);
    }
    let mut reader = Reader { text, at: 0 };
    let mut selector = Selector::default();
    reader.skip_space();
    selector.metric = reader.word(true).to_owned();
    reader.skip_space();
    if reader.eat("{") {
        reader.matchers(&mut selector.matchers)?;
        reader.skip_space();
    }
    if reader.rest().is_empty() { Ok(selector) } else { Err(reader.expected("the end or `{`")) }
}

#[cfg(test)]
#[path = "selector_tests.rs"]
mod tests;
