//! Texts of one answer: many stages have the same name, status and description.

use std::collections::HashSet;
use std::sync::Arc;

/// One copy of each text.
#[derive(Default)]
pub struct Texts(HashSet<Arc<str>>);

impl Texts {
    /// The copy of a text.
    pub fn keep(&mut self, text: &str) -> Arc<str> {
        if let Some(kept) = self.0.get(text) {
            return kept.clone();
        }
        let kept: Arc<str> = text.into();
        self.0.insert(kept.clone());
        kept
    }
}
