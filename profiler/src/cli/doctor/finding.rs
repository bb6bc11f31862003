//! What a check found.

use serde::Serialize;

/// How good it is.
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

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: String,
    /// How good it is.
    pub status: Status,
    /// What is there.
    pub found: String,
    /// What would make it better.
    pub mend: Option<String>,
}

impl Finding {
    /// As it should be.
    pub fn ok(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self { check: check.into(), status: Status::Ok, found: found.into(), mend: None }
    }
    /// Something is left out.
    pub fn limited(check: impl Into<String>, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { check: check.into(), status: Status::Limited, found: found.into(), mend: Some(mend.into()) }
    }
    /// Sampling cannot work.
    pub fn missing(check: impl Into<String>, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { check: check.into(), status: Status::Missing, found: found.into(), mend: Some(mend.into()) }
    }
}
