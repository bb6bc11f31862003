//! Routes of the usual kinds: what each of them says of itself is [`super`]'s.

use super::{Answers, Own, Route, Selects};
use crate::Answer;
use schemars::JsonSchema;

/// A route that selects nothing.
pub(super) const fn plain(
    path: &'static str,
    id: &'static str,
    says: &'static str,
    answers: Answers,
) -> Route {
    Route { path, id, says, selects: Selects::Nothing, own: &[], answers }
}

/// A route whose answer is text of this content type.
pub(super) const fn text(
    path: &'static str,
    id: &'static str,
    says: &'static str,
    kind: &'static str,
) -> Route {
    plain(path, id, says, Answers::Text(kind))
}

/// A route that selects samples, and answers in JSON.
pub(super) const fn samples<T: JsonSchema>(
    path: &'static str,
    id: &'static str,
    says: &'static str,
    own: &'static [Own],
) -> Route {
    Route { path, id, says, selects: Selects::Samples, own, answers: Answers::json::<Answer<T>>() }
}
