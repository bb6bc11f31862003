//! What waits to be sent, the oldest first, and what became of the rest.
//!
//! Limit: bytes; over it the oldest batches go.

use super::profiles::{Batch, Packed};
use emberscope_model::{WallTime, scrub};
use std::collections::VecDeque;
use std::time::Duration;

/// Why a profile was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushDrop {
    /// The server took too little for too long.
    QueueFull,
    /// The profile waited until the server would not take it any more.
    TooOld,
    /// The profile is larger than the server takes.
    TooLarge,
    /// The server refused the profile.
    Refused,
    /// The daemon ended while the profile waited.
    Stopped,
    /// Packing it failed: a defect, of which the log says more.
    Failed,
}

impl PushDrop {
    /// Every reason, in the order of [`PushState::dropped`].
    pub const ALL: &'static [Self] =
        &[Self::QueueFull, Self::TooOld, Self::TooLarge, Self::Refused, Self::Stopped, Self::Failed];
    /// Stable short name, for metrics and the status.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::QueueFull => "queue full",
            Self::TooOld => "too old",
            Self::TooLarge => "too large",
            Self::Refused => "refused",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// What waits, and what became of what was offered since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushState {
    /// URL of the server, without a password.
    pub url: String,
    /// Profiles that wait.
    pub queued_profiles: u64,
    /// Bytes of their requests.
    pub queued_bytes: u64,
    /// Profiles that the server took.
    pub sent_profiles: u64,
    /// Bytes of the requests that the server took, with labels.
    pub sent_bytes: u64,
    /// Requests that failed and were or will be tried again.
    pub retries: u64,
    /// Profiles that were not sent, by reason, in the order of [`PushDrop::ALL`]. A window that could not
    /// even be packed counts as one.
    pub dropped: [u64; 6],
    /// What is wrong now; None: nothing.
    pub failing: Option<String>,
    /// What the server said when it last refused a request.
    pub refused: Option<String>,
}

/// Batches that wait, the oldest first, and the counts of those that went.
#[derive(Debug)]
pub struct Queue {
    batches: VecDeque<Batch>,
    limit: usize,
    next: u64,
    state: PushState,
}

impl Queue {
    /// An empty queue for a server.
    pub fn new(url: &str, limit: usize) -> Self {
        let state = PushState { url: scrub(url).into_owned(), ..PushState::default() };
        Self { batches: VecDeque::new(), limit, next: 0, state }
    }

    /// Takes what a window became.
    pub fn add(&mut self, packed: Packed) {
        self.count(PushDrop::TooLarge, packed.too_large);
        for batch in packed.batches {
            self.state.queued_profiles += batch.profiles;
            self.state.queued_bytes += batch.request.len() as u64;
            self.batches.push_back(Batch { number: self.next, ..batch });
            self.next += 1;
        }
        while self.state.queued_bytes > self.limit as u64 && self.drop_first(PushDrop::QueueFull) {}
    }

    /// The oldest batch. It stays in the queue.
    pub fn first(&self) -> Option<Batch> {
        self.batches.front().cloned()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The server has the batch.
    pub fn taken(&mut self, batch: &Batch) {
        if self.state.failing.take().is_some() {
            tracing::info!(url = self.state.url, "pushing goes on");
        }
        self.state.sent_profiles += batch.profiles;
        self.state.sent_bytes += batch.request.len() as u64;
        self.remove(batch);
    }

    /// The server has the batch but for some of its profiles.
    pub fn partly(&mut self, batch: &Batch, refused: u64, says: String) {
        let refused = refused.min(batch.profiles);
        self.taken(batch);
        self.state.sent_profiles = self.state.sent_profiles.saturating_sub(refused);
        self.count(PushDrop::Refused, refused);
        self.says(says);
    }

    /// The server will never have the batch.
    pub fn refused(&mut self, batch: &Batch, says: String) {
        self.says(says);
        self.state.failing = None;
        if self.remove(batch) {
            self.count(PushDrop::Refused, batch.profiles);
        }
    }

    fn says(&mut self, says: String) {
        if self.state.refused.as_ref() != Some(&says) {
            tracing::warn!(url = self.state.url, says, "the server refuses profiles");
        }
        self.state.refused = Some(says);
    }

    /// The server cannot be reached, or asks for patience.
    pub fn failed(&mut self, says: String) {
        if self.state.failing.is_none() {
            tracing::warn!(url = self.state.url, says, "profiles cannot be pushed: they wait");
        }
        self.state.retries += 1;
        self.state.failing = Some(says);
    }

    /// Lets batches go whose windows ended so long ago.
    pub fn drop_older(&mut self, age: Duration) {
        let oldest = WallTime::now().minus(age);
        while self.batches.front().is_some_and(|batch| batch.until < oldest) {
            self.drop_first(PushDrop::TooOld);
        }
    }

    /// Lets all batches go.
    pub fn drop_all(&mut self, why: PushDrop) {
        while self.drop_first(why) {}
    }

    /// Counts something that never was in the queue.
    pub fn drop_one(&mut self, why: PushDrop) {
        self.count(why, 1);
    }

    /// What waits and what went until now.
    pub fn state(&self) -> PushState {
        self.state.clone()
    }

    fn drop_first(&mut self, why: PushDrop) -> bool {
        let Some(batch) = self.batches.front().cloned() else { return false };
        self.remove(&batch);
        self.count(why, batch.profiles);
        true
    }

    /// False: it went already, because the queue was full.
    fn remove(&mut self, batch: &Batch) -> bool {
        let is_first = self.batches.front().is_some_and(|first| first.number == batch.number);
        if is_first {
            self.batches.pop_front();
            self.state.queued_profiles = self.state.queued_profiles.saturating_sub(batch.profiles);
            self.state.queued_bytes = self.state.queued_bytes.saturating_sub(batch.request.len() as u64);
        }
        is_first
    }

    fn count(&mut self, why: PushDrop, profiles: u64) {
        if let Some(count) = self.state.dropped.get_mut(why as usize) {
            *count += profiles;
        }
    }
}
