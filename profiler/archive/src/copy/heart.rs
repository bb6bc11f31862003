//! Puts the node's heartbeat beside the copying, which may be at one block for minutes.

use super::super::catalog::start_of_block;
use super::super::heartbeat::{EVERY, Heartbeat};
use super::super::layout;
use super::super::remote::{Remote, RemoteError};
use super::counts::Counts;
use super::lock;
use emberscope_model::WallTime;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Heartbeats of a node: one, and what a broken off deletion left.
const MOST: usize = 1000;
/// How long the last word may take when the daemon stops.
const LAST_WORD: Duration = Duration::from_secs(2);

/// What it is put with.
#[derive(Clone, Debug)]
pub struct Heart {
    pub host: String,
    pub remote: Remote,
    pub(super) counts: Arc<Mutex<Counts>>,
}

impl Heart {
    /// For ever.
    pub async fn run(&self) {
        loop {
            match self.beat().await {
                Ok(ahead) => lock(&self.counts).beaten(ahead),
                Err(error) => lock(&self.counts).not_beaten(&error.to_string()),
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Puts one and deletes those before it: by how many milliseconds the node's clock is ahead of the object store's.
    ///
    /// # Errors
    /// The archive refuses, or does not answer. Whether the heartbeat is there is not known then.
    pub async fn beat(&self) -> Result<i64, RemoteError> {
        let now_ms = i64::try_from(WallTime::now().as_millis()).unwrap_or(i64::MAX);
        let (waiting, oldest) = {
            let counts = lock(&self.counts);
            (counts.waiting, counts.oldest.clone())
        };
        let oldest_ms = oldest.as_deref().and_then(start_of_block);
        let oldest_ms = oldest_ms.and_then(|start| i64::try_from(start.as_millis()).ok()).unwrap_or(0);
        let beat = Heartbeat { host: self.host.clone(), now_ms, waiting, oldest_ms, put_ms: 0 };
        let name = beat.name();
        // Some stores refuse objects without bytes.
        self.remote.put(&name, b"1".to_vec()).await?;
        let mut put_ms = now_ms;
        for object in self.remote.list(&layout::heartbeats(&self.host), MOST).await? {
            match object.name == name {
                true => put_ms = object.put_ms,
                false => self.remote.delete(&object.name).await?,
            }
        }
        Ok(now_ms.saturating_sub(put_ms))
    }

    /// Takes it away: the daemon stops because it was told to.
    pub async fn stop(&self) {
        let away = async {
            for object in self.remote.list(&layout::heartbeats(&self.host), MOST).await? {
                self.remote.delete(&object.name).await?;
            }
            Ok::<(), RemoteError>(())
        };
        // The archive may be away, and a stop waits for nobody.
        let _ = tokio::time::timeout(LAST_WORD, away).await;
    }
}

/// The heart of a node, for tests.
#[cfg(test)]
pub fn of(config: &super::ArchiverConfig) -> Result<Heart, RemoteError> {
    let remote = Remote::open(&config.url, true)?;
    Ok(Heart { host: layout::part(&config.node), remote, counts: Arc::new(Mutex::new(Counts::new())) })
}
