//! What a process of a runtime says of itself, for the status.

use serde_json::Value;

/// Names and values, in the order of [`super::Words::facts`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(pub Vec<(&'static str, Fact)>);

/// The value of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Whether something is so.
    Flag(bool),
    /// One of a few words that the runtime knows.
    Text(&'static str),
}

impl Facts {
    /// A fact by its name.
    pub fn get(&self, name: &str) -> Option<Fact> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, fact)| *fact)
    }
}

impl From<Fact> for Value {
    fn from(fact: Fact) -> Self {
        match fact {
            Fact::Flag(flag) => flag.into(),
            Fact::Text(text) => text.into(),
        }
    }
}
