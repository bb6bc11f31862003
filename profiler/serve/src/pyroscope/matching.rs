//! From Pyroscope's selectors and times to the store's questions.
//!
//! In: PromQL selectors and milliseconds as a request gives them. Out: [`Matched`] (a [`Selection`]
//! and the profile types that fit) and [`TimeRange`]s. A label that no sample has compares as the
//! empty text, as in Pyroscope: it finds nothing or everything, and is no error.

use super::error::CallError;
use super::types::{self, Type};
use crate::selector::{self, SelectorError};
use emberscope_export::Shape;
use emberscope_model::{LabelKey, MatchOp, Matcher, Selection, TimeRange, WallTime};
use emberscope_store::Store;

/// Most selectors in one request: each is a question to the store.
pub const MAX_SELECTORS: usize = 16;

/// What a selector asks for.
#[derive(Clone, Debug)]
pub struct Matched {
    /// Conditions on the labels of the rows.
    pub selection: Selection,
    /// Profile types that fit; none: the selector finds nothing.
    pub types: Vec<&'static Type>,
    /// In which the tree is wanted ([`FOLD`], [`ONLY`]).
    pub shape: Shape,
}

/// A label of selectors that no sample has: `__fold__="1"`, for Grafana has no other place for a parameter.
pub const FOLD: &str = "__fold__";
/// Likewise: `__only__="com.acme."`.
pub const ONLY: &str = "__only__";

impl From<SelectorError> for CallError {
    fn from(error: SelectorError) -> Self {
        Self::invalid(format!("{error}; a selector looks like {{service_name=\"my app\", stage=~\"1|2\"}}"))
    }
}

/// Reads one selector.
///
/// # Errors
/// `invalid_argument`: the text is no selector, or an expression in it makes no sense.
pub fn matched(text: &str) -> Result<Matched, CallError> {
    let selector = selector::parse(text)?;
    let (selection, types) = (Selection::all(), types::ALL.iter().collect());
    let mut matched = Matched { selection, types, shape: Shape::default() };
    if !selector.metric.is_empty() {
        // Grafana's editor puts the type's id there; PromQL would have its name.
        matched.types.retain(|t| t.id() == selector.metric || t.parts()[0] == selector.metric);
    }
    for matcher in &selector.matchers {
        let op = matcher.compile()?;
        if matcher.name == FOLD {
            // Not `__fold__=""`, nor an "All" that is anything.
            matched.shape.fold = holds(&op, "1") && !holds(&op, "");
        } else if matcher.name == ONLY {
            // Of an expression no beginning can be told.
            let MatchOp::In(names) = &op else { continue };
            let names = Shape::beginnings(names.iter().map(String::as_str));
            matched.shape.only = names.map_err(|many| {
                CallError::invalid(format!(
                    "{ONLY}: at most {} beginnings of names, not {many}",
                    Shape::MAX_ONLY
                ))
            })?;
        } else if let Some(key) = LabelKey::from_name(&matcher.name) {
            matched.selection.matchers.push(Matcher { key, op });
        } else {
            matched.types.retain(|t| holds(&op, &t.label(&matcher.name).unwrap_or_default()));
        }
    }
    Ok(matched)
}

/// Reads a request's selectors, of which one must match; no selector at all means everything.
///
/// # Errors
/// As [`matched`], and where there are more than [`MAX_SELECTORS`].
pub fn any_matched(texts: &[String]) -> Result<Vec<Matched>, CallError> {
    if texts.len() > MAX_SELECTORS {
        return Err(CallError::invalid(format!("more than {MAX_SELECTORS} matchers")));
    }
    if texts.is_empty() {
        return Ok(vec![matched("{}")?]);
    }
    texts.iter().map(|text| matched(text)).collect()
}

fn holds(op: &MatchOp, value: &str) -> bool {
    match op {
        MatchOp::In(values) => values.iter().any(|v| v == value),
        MatchOp::NotIn(values) => values.iter().all(|v| v != value),
        MatchOp::Regex(re) => re.is_match(value),
        MatchOp::NotRegex(re) => !re.is_match(value),
    }
}

/// The time range of a query, which must have one.
///
/// # Errors
/// `invalid_argument`: both times are missing, one is negative, or the end is before the start.
pub fn range(start: i64, end: i64) -> Result<TimeRange, CallError> {
    match (u64::try_from(start), u64::try_from(end)) {
        (Ok(0), Ok(0)) => {
            Err(CallError::invalid("start and end are missing: milliseconds since the Unix epoch"))
        }
        (Ok(start), Ok(end)) if start <= end => {
            Ok(TimeRange { from: WallTime::from_millis(start), until: WallTime::from_millis(end) })
        }
        (Ok(_), Ok(_)) => Err(CallError::invalid(format!("end ({end} ms) is before start ({start} ms)"))),
        _ => Err(CallError::invalid(format!("start ({start}) and end ({end}) must not be negative"))),
    }
}

/// The time range of a question about labels: all that is kept when it has none. None: nothing is
/// kept.
///
/// # Errors
/// As [`range`], but for times that are missing.
pub fn range_or_all(store: &dyn Store, start: i64, end: i64) -> Result<Option<TimeRange>, CallError> {
    if (start, end) == (0, 0) { Ok(store.span()) } else { range(start, end).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_names(text: &str) -> Vec<&'static str> {
        matched(text).expect(text).types.iter().map(|t| t.parts()[1]).collect()
    }

    #[test]
    fn a_type_is_named_in_every_way_grafana_does() {
        for text in [
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds{}",
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            r#"{__profile_type__="process_cpu:cpu:nanoseconds:cpu:nanoseconds"}"#,
            r#"{__type__="cpu"}"#,
        ] {
            assert_eq!(type_names(text), ["cpu"], "{text}");
        }
        assert_eq!(type_names(r#"{__unit__=~"nano.*"}"#), ["cpu", "block_io", "off_cpu", "delay", "wall"]);
        for text in ["{}", ""] {
            assert_eq!(type_names(text).len(), types::ALL.len(), "{text}");
        }
        for text in ["process_cpu{}", r#"{__name__="process_cpu"}"#, r#"{__period_type__="cpu"}"#] {
            assert_eq!(type_names(text), ["cpu", "samples"], "{text}");
        }
        for text in ["memory:inuse_space:bytes:space:bytes{}", r#"{__profile_type__="memory"}"#] {
            assert!(type_names(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_fold_is_asked_for_and_selects_nothing() {
        for (text, fold) in [(r#"{__fold__="1"}"#, true), (r#"{__fold__=~".*"}"#, false), ("{}", false)] {
            let matched = matched(text).expect(text);
            assert_eq!((matched.shape.fold, matched.types.len()), (fold, types::ALL.len()), "{text}");
            assert!(matched.selection.matchers.is_empty());
        }
    }

    #[test]
    fn own_code_is_asked_for_and_selects_nothing() {
        for (text, only) in [
            (r#"{__only__="com.acme., org.acme."}"#, &["com.acme.", "org.acme."][..]),
            (r#"{__only__=""}"#, &[]),
            (r#"{__only__=~".*"}"#, &[]),
        ] {
            let matched = matched(text).expect(text);
            assert_eq!(matched.shape.only, only, "{text}");
            assert_eq!((matched.selection.matchers.len(), matched.types.len()), (0, types::ALL.len()));
        }
        let many = format!(r#"{{__only__="{}"}}"#, vec!["a"; Shape::MAX_ONLY + 1].join(","));
        assert!(matched(&many).is_err());
    }

    #[test]
    fn a_label_that_no_sample_has_is_empty() {
        for text in [r#"{pod="x"}"#, r#"{pod=~".+"}"#, r#"{pod!=""}"#] {
            assert!(type_names(text).is_empty(), "{text}");
        }
        for text in [r#"{pod!="x"}"#, r#"{pod=~".*"}"#, r#"{pod=""}"#, r#"{pod!~"x"}"#] {
            assert_eq!(type_names(text).len(), types::ALL.len(), "{text}");
        }
        let both = matched(r#"{app="a", pod="", stage=~"1|2"}"#).expect("both");
        let keys: Vec<_> = both.selection.matchers.iter().map(|m| m.key).collect();
        assert_eq!(keys, [LabelKey::App, LabelKey::Stage]);
    }

    #[test]
    fn wrong_selectors_and_times_are_the_clients_fault() {
        for text in ["{", "{app=}", r#"{app=~"("}"#, "process_cpu:cpu{} 1"] {
            assert_eq!(matched(text).expect_err(text).code.name(), "invalid_argument");
        }
        assert!(any_matched(&vec!["{}".to_owned(); MAX_SELECTORS + 1]).is_err());
        assert!(range(0, 0).is_err() && range(2, 1).is_err() && range(-1, 1).is_err());
        assert_eq!(range(1000, 4000).expect("valid").until, WallTime::from_millis(4000));
    }
}
