//! What a check found.

use serde::Serialize;

/// How good what was found is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Sampling works, with something left out.
    Limited,
    /// Sampling cannot work.
    Missing,
}

impl Status {
    /// As it is printed.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Missing => "missing",
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in a word or two.
    pub check: String,
    /// How good that is.
    pub status: Status,
    /// What is there, for people.
    pub found: String,
    /// What would make it better; None where all is as it should be.
    pub mend: Option<String>,
}

impl Finding {
    /// A finding that all is as it should be.
    pub fn ok(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self { check: check.into(), status: Status::Ok, found: found.into(), mend: None }
    }
    /// A finding that something is left out.
    pub fn limited(check: impl Into<String>, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { check: check.into(), status: Status::Limited, found: found.into(), mend: Some(mend.into()) }
    }
    /// A finding that sampling cannot work.
    pub fn missing(check: impl Into<String>, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { check: check.into(), status: Status::Missing, found: found.into(), mend: Some(mend.into()) }
    }
}
