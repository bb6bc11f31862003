//! What tells of an application's hour that was brought together: its manifest, and the blocks that it covers.

use super::remote::{Remote, RemoteError};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::time::Duration;

/// Length of the windows in an application's hour.
pub(super) const GRAIN: Duration = Duration::from_secs(60);
/// The version of what tells of an application's hour.
const FORMAT: u32 = 1;
/// Bytes of that: a thousand nodes are 60 KB.
const MAX_INDEX: u64 = 4 << 20;

/// Why what tells of an application's hour cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum IndexError {
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("{0}")]
    Bad(String),
}

/// What tells of an application's hour.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Index {
    format: u32,
    /// Node and name of each block that it covers.
    pub covers: HashSet<(String, String)>,
    /// The block's manifest, as it stands beside the files.
    pub manifest: String,
}

impl Index {
    /// Of a block with this manifest, in place of those that it covers.
    pub fn new(covers: HashSet<(String, String)>, manifest: String) -> Self {
        Self { format: FORMAT, covers, manifest }
    }

    /// Reads the object that tells of an application's hour. None: it is not there.
    ///
    /// # Errors
    /// `IndexError::Remote`: the archive does not give it, or it has more than [`MAX_INDEX`] bytes.
    /// `IndexError::Bad`: it is no JSON of this shape, or of another format.
    pub async fn read(remote: &Remote, name: &str) -> Result<Option<Self>, IndexError> {
        let Some(bytes) = remote.get(name, MAX_INDEX).await? else { return Ok(None) };
        let index: Self = serde_json::from_slice(&bytes)
            .map_err(|error| IndexError::Bad(format!("makes no sense: {error}")))?;
        match index.format {
            FORMAT => Ok(Some(index)),
            other => {
                Err(IndexError::Bad(format!("is of format {other}, and this program knows format {FORMAT}")))
            }
        }
    }
}
