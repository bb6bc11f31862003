//! `--apps`: applications by id or name, `*` and `?` wild.
//!
//! In: words separated by commas, or a list of patterns. An application whose name is not known yet is not
//! excluded by a pattern that may be a name.

use super::{KeepError, items};
use std::str::FromStr;

/// Applications by id or name; `*` and `?` are wild.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppFilter(Vec<String>);

impl FromStr for AppFilter {
    type Err = KeepError;
    fn from_str(text: &str) -> Result<Self, KeepError> {
        let items = items("--apps", text)?;
        Ok(Self(if items.contains(&"*") {
            Vec::new()
        } else {
            items.into_iter().map(str::to_owned).collect()
        }))
    }
}

impl AppFilter {
    pub(super) fn matches(&self, app: Option<&str>, name: Option<&str>) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let hit = |text: Option<&str>| {
            text.is_some_and(|t| self.0.iter().any(|p| glob(p.as_bytes(), t.as_bytes())))
        };
        // An application whose id or name is not known yet may still turn out to be one of these.
        hit(app) || hit(name) || app.is_none() || name.is_none() && !self.0.iter().all(|p| is_id(p))
    }
}

/// A pattern that can only be an id, whose answer needs no name.
fn is_id(pattern: &str) -> bool {
    ["app-", "application_", "local-", "spark-"].iter().any(|prefix| {
        pattern.strip_prefix(prefix).is_some_and(|rest| rest.bytes().any(|b| b.is_ascii_digit()))
    })
}

/// `*` any run, `?` any one byte; the rest as it is. Linear space, no recursion.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == b'?' || c == byte => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    p = after;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|b| *b == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slow_glob(p: &[u8], t: &[u8]) -> bool {
        match (p.split_first(), t.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => {
                slow_glob(rest, t) || t.split_first().is_some_and(|(_, t)| slow_glob(p, t))
            }
            (Some((c, p)), Some((b, t))) if *c == b'?' || c == b => slow_glob(p, t),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn globs_agree_with_their_definition(p in "[ab*?]{0,8}", t in "[ab]{0,10}") {
            prop_assert_eq!(glob(p.as_bytes(), t.as_bytes()), slow_glob(p.as_bytes(), t.as_bytes()));
        }
    }
}
