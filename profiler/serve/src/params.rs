//! The query string: strictly decoded pairs, and only of names that the route knows.
//!
//! In: the raw query. Out: [`Params`]. A broken percent-encoding or text that is not UTF-8 is an error,
//! not a guess; so is a name that is not known, with the nearest one that is. Limits: [`MAX_QUERY`]
//! bytes, [`MAX_PAIRS`] pairs. [`pairs`] is pure and never panics.

use super::error::{ApiError, shown};
use axum::http::StatusCode;
use emberscope_api::Word;
use emberscope_api::route::{Route, Selects, param};
use emberscope_model::LabelKey;

/// Longest query string, in bytes. Longer than the longest selector, percent-encoded.
pub const MAX_QUERY: usize = 32 * 1024;
/// Most `key=value` pairs of a query string.
pub const MAX_PAIRS: usize = 256;

/// Parameters of every route that answers about samples, beside the labels.
pub const SELECTION: &[&str] = &["from", "until", "type", "query", "run"];

/// What stands before a parameter that is for one side of a comparison.
pub const SIDES: [&str; 2] = ["left.", "right."];

fn selecting<'a>() -> impl Iterator<Item = &'a str> {
    LabelKey::ASKED.iter().map(|key| key.name()).chain(SELECTION.iter().copied())
}

/// Decoded pairs of known names, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Params(Vec<(String, String)>);

/// Why a query string could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryStringError {
    /// The query string has too many bytes.
    #[error("the query string is longer than {MAX_QUERY} bytes")]
    TooLong,
    /// The query string has too many pairs.
    #[error("the query string has more than {MAX_PAIRS} parameters")]
    TooMany,
    /// A `%` without two hexadecimal digits.
    #[error("a % in the query string is not followed by two hexadecimal digits")]
    Percent,
    /// The decoded bytes are no text.
    #[error("the query string is not UTF-8 once decoded")]
    NotUtf8,
}

/// Splits and decodes a query string (`application/x-www-form-urlencoded`: `+` is a space).
///
/// # Errors
/// [`QueryStringError`]: there are too many bytes or pairs, or the text cannot be decoded.
pub fn pairs(raw: &str) -> Result<Vec<(String, String)>, QueryStringError> {
    if raw.len() > MAX_QUERY {
        return Err(QueryStringError::TooLong);
    }
    let mut out = Vec::new();
    for pair in raw.split('&').filter(|p| !p.is_empty()) {
        if out.len() == MAX_PAIRS {
            return Err(QueryStringError::TooMany);
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        out.push((decode(name)?, decode(value)?));
    }
    Ok(out)
}

fn decode(text: &str) -> Result<String, QueryStringError> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit(), digit());
                let (Some(high), Some(low)) = (high, low) else { return Err(QueryStringError::Percent) };
                (high * 16 + low) as u8
            }
            other => other,
        });
    }
    String::from_utf8(out).map_err(|_| QueryStringError::NotUtf8)
}

impl Params {
    /// Decodes a query string in which only `names` may occur.
    /// # Errors
    /// 400 `bad_query_string`: as [`pairs`]. 400 `unknown_parameter`: a name is none of `names`.
    pub fn of(raw: Option<&str>, names: &[&str]) -> Result<Self, ApiError> {
        let pairs = pairs(raw.unwrap_or_default())
            .map_err(|e| ApiError::new(StatusCode::BAD_REQUEST, "bad_query_string", e.to_string()))?;
        match pairs.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            Some((name, _)) => Err(unknown(name, names)),
            None => Ok(Self(pairs)),
        }
    }
    /// Of a route: with the names that it has.
    ///
    /// # Errors
    /// 400 `bad_query_string`: as [`pairs`]. 400 `unknown_parameter`: the route does not take a name.
    pub fn of_route(raw: Option<&str>, route: &Route) -> Result<Self, ApiError> {
        let own: Vec<&str> = route.own.iter().map(|own| own.name).collect();
        match route.selects {
            Selects::Nothing => Self::of(raw, &own),
            Selects::Samples => Self::selecting(raw, &own),
            Selects::TwoSides => Self::comparing(raw, &own),
        }
    }
    /// Of a program that asks itself: pairs, of names that a route which selects and draws samples has.
    ///
    /// # Errors
    /// 400 `unknown_parameter`: such a route does not have the name.
    pub fn of_pairs(pairs: &[(&str, String)]) -> Result<Self, ApiError> {
        let names: Vec<&str> =
            selecting().chain([param::UNIT, param::ANNOTATE, param::LINES, param::GROUP]).collect();
        match pairs.iter().find(|(name, _)| !names.contains(name)) {
            Some((name, _)) => Err(unknown(name, &names)),
            None => Ok(Self(pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())),
        }
    }
    /// As [`Params::of`], for a route that selects samples: every label, `SELECTION`, and `more`.
    /// # Errors
    /// As [`Params::of`].
    pub fn selecting(raw: Option<&str>, more: &[&str]) -> Result<Self, ApiError> {
        let names: Vec<&str> = selecting().chain(more.iter().copied()).collect();
        Self::of(raw, &names)
    }
    /// As [`Params::selecting`], for a route that compares two selections: each of their parameters also as
    /// `left.NAME` and `right.NAME`, but for `type`.
    /// # Errors
    /// As [`Params::of`].
    pub fn comparing(raw: Option<&str>, more: &[&str]) -> Result<Self, ApiError> {
        let plain: Vec<&str> = selecting().collect();
        let sided: Vec<String> =
            SIDES.iter().flat_map(|side| plain.iter().map(move |name| format!("{side}{name}"))).collect();
        let sided = sided.iter().map(String::as_str).filter(|name| !name.ends_with(".type"));
        let names: Vec<&str> = plain.iter().copied().chain(more.iter().copied()).chain(sided).collect();
        Self::of(raw, &names)
    }
    /// One side's parameters by their plain names: its own, and those without a side that it has not.
    pub fn side(&self, side: &str) -> Self {
        let own: Vec<_> =
            self.0.iter().filter_map(|(name, value)| Some((name.strip_prefix(side)?, value))).collect();
        let is_own = |name: &str| own.iter().any(|(n, _)| *n == name);
        let shared = self.0.iter().map(|(name, value)| (name.as_str(), value));
        let shared = shared.filter(|(name, _)| !SIDES.iter().any(|side| name.starts_with(side)));
        let pairs = shared.filter(|(name, _)| !is_own(name)).chain(own.iter().copied());
        Self(pairs.map(|(name, value)| (name.to_owned(), value.clone())).collect())
    }
    /// The first parameter that is for one side only.
    pub fn sided(&self) -> Option<&str> {
        let mut names = self.0.iter().map(|(name, _)| name.as_str());
        names.find(|name| SIDES.iter().any(|side| name.starts_with(side)))
    }
    /// Whether a parameter is given.
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }
    /// The value of a parameter that may be given once.
    /// # Errors
    /// 400 `bad_parameter`: it is given more than once.
    pub fn one<'a>(&'a self, name: &'a str) -> Result<Option<&'a str>, ApiError> {
        let mut values = self.all(name);
        let first = values.next();
        match values.next() {
            Some(_) => Err(ApiError::bad(name, format!("`{name}` is given more than once"))),
            None => Ok(first),
        }
    }
    /// All values of a parameter, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, v)| v.as_str())
    }
    /// Values given as a list with commas, or several times, or both.
    pub fn list<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.all(name).flat_map(|v| v.split(',')).map(str::trim).filter(|v| !v.is_empty()).collect()
    }
    /// A whole number between two limits.
    /// # Errors
    /// As [`Params::one`], and where the text is no whole number or lies outside of the limits.
    pub fn number(&self, name: &str, least: usize, most: usize) -> Result<Option<usize>, ApiError> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        match text.parse() {
            Ok(n) if (least..=most).contains(&n) => Ok(Some(n)),
            _ => Err(ApiError::bad(
                name,
                format!("`{name}={}`: must be a whole number from {least} to {most}", shown(text)),
            )),
        }
    }
    /// A whole number up to the largest that the route takes: the given one, else the usual one, else no limit.
    ///
    /// # Errors
    /// As [`Params::number`].
    pub fn number_of(&self, route: &Route, name: &str) -> Result<usize, ApiError> {
        let (most, usual) = route.number(name).unwrap_or((u64::MAX, None));
        let given = self.number(name, 1, usize::try_from(most).unwrap_or(usize::MAX))?;
        Ok(given.or(usual.and_then(|usual| usual.try_into().ok())).unwrap_or(usize::MAX))
    }
    /// `1`, `true`, `0`, `false`; a name without a value is true.
    /// # Errors
    /// As [`Params::one`], and where the text is none of these.
    pub fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.one(name)? {
            None | Some("0" | "false") => Ok(false),
            Some("" | "1" | "true") => Ok(true),
            Some(text) => {
                Err(ApiError::bad(name, format!("`{name}={}`: must be 1, true, 0 or false", shown(text))))
            }
        }
    }
    /// One of the words of a type.
    ///
    /// # Errors
    /// As [`Params::choice`].
    pub fn word<T: Word>(&self, name: &str, default: T) -> Result<T, ApiError> {
        let words: Vec<_> = T::ALL.iter().map(|value| (value.word(), *value)).collect();
        self.choice(name, &words, default)
    }
    /// One of some words.
    ///
    /// # Errors
    /// As [`Params::one`], and where the text is none of the words.
    pub fn choice<T: Copy>(&self, name: &str, words: &[(&str, T)], default: T) -> Result<T, ApiError> {
        let Some(text) = self.one(name)? else { return Ok(default) };
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<String> = words.iter().map(|(word, _)| (*word).to_owned()).collect();
            let message = format!("`{name}={}`: must be one of {}", shown(text), known.join(", "));
            ApiError::bad(name, message).with_choices(known)
        })
    }
}

fn unknown(name: &str, names: &[&str]) -> ApiError {
    let hint = match nearest(name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "this route has none.".to_owned(),
        None => format!("there are: {}.", names.join(", ")),
    };
    let message = format!("Unknown parameter `{}`: {hint}", shown(name));
    ApiError { code: "unknown_parameter", ..ApiError::bad(shown(name), message) }
}

/// The name that differs least, when it differs little enough to be meant.
pub fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    // Distance is quadratic in length: names are short, what is typed need not be.
    let name: String = name.chars().take(64).collect();
    let scored = names.iter().map(|n| (strsim::damerau_levenshtein(&name, n), *n));
    let (distance, near) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + near.len() / 3).then_some(near)
}

#[cfg(test)]
#[path = "params_tests.rs"]
mod tests;
