//! Puts the node's heartbeat beside the copying, which may be at one block for minutes.

use super::super::catalog::start_of_block;
use super::super::heartbeat::{EVERY, Heartbeat, millis};
use super::super::layout;
use super::super::remote::{Remote, RemoteError};
use super::counts::Counts;
use super::{ArchiverConfig, lock};
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
    host: String,
    remote: Remote,
    counts: Arc<Mutex<Counts>>,
}

impl Heart {
    /// A node's, which tells `counts` how it goes and learns from there what waits.
    pub(super) fn new(config: &ArchiverConfig, remote: Remote, counts: Arc<Mutex<Counts>>) -> Self {
        Self { host: layout::part(&config.node), remote, counts }
    }

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
        let now_ms = millis(WallTime::now());
        let (waiting, oldest) = {
            let counts = lock(&self.counts);
            (counts.waiting, counts.oldest.clone())
        };
        let oldest_ms = oldest.as_deref().and_then(start_of_block).map_or(0, millis);
        let beat = Heartbeat { host: self.host.clone(), now_ms, waiting, oldest_ms, put_ms: 0 };
        let name = beat.name();
        // Some stores refuse objects without bytes.
        self.remote.put(&name, b"1".to_vec()).await?;
        let put_ms = self.clear(Some(&name)).await?;
        Ok(now_ms.saturating_sub(put_ms.unwrap_or(now_ms)))
    }

    /// Takes it away: the daemon stops because it was told to.
    pub async fn stop(&self) {
        // The archive may be away, and a stop waits for nobody.
        let _ = tokio::time::timeout(LAST_WORD, self.clear(None)).await;
    }

    /// Deletes the node's heartbeats, but for one: when that was put, if it is there.
    async fn clear(&self, but: Option<&str>) -> Result<Option<i64>, RemoteError> {
        let mut put_ms = None;
        for object in self.remote.list(&layout::heartbeats(&self.host), MOST).await? {
            match but == Some(object.name.as_str()) {
                true => put_ms = Some(object.put_ms),
                false => self.remote.delete(&object.name).await?,
            }
        }
        Ok(put_ms)
    }
}

/// The heart of a node, for tests.
#[cfg(test)]
pub fn of(config: &ArchiverConfig) -> Result<Heart, RemoteError> {
    let remote = Remote::open(&config.url, true)?;
    Ok(Heart::new(config, remote, Arc::new(Mutex::new(Counts::new()))))
}
