//! `POST /api/v1/login`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A link that logs a browser in, good once.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoginLink {
    /// How long it is good; null where no login is needed.
    pub expires_seconds: Option<u64>,
    /// Path and query of it.
    pub path: String,
    /// The same behind the address that the daemon knows as its own; null where it knows none.
    pub url: Option<String>,
}
