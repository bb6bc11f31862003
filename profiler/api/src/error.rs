//! What the API answers when it cannot answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Refused, or failed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Error {
    /// What is wrong.
    pub error: ErrorBody,
}

/// What is wrong.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// Stable name, for programs.
    #[serde(default)]
    pub code: Cow<'static, str>,
    /// One sentence with the mend, for people.
    pub message: String,
    /// The parameter at fault.
    pub parameter: Option<String>,
    /// What could be given instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}
