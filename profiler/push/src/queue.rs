//! What waits to be sent, the oldest first, and what became of the rest.
//!
//! Limits: bytes, over which the oldest requests go; of them [`IN_MEMORY`] are in memory, the newest, the others in files
//! ([`Spool`]) where there is a directory for them.

use super::profiles::{Batch, Packed};
use super::spool::{Keep, Kept, Spool};
use emberscope_model::{WallTime, scrub};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of requests that wait in memory where there are files for more. A window is some tens of KiB: a server that takes
/// them at once costs no file.
const IN_MEMORY: u64 = 1 << 20;

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
    /// The daemon ended while the profile waited, and it could not be kept.
    Stopped,
    /// Packing it failed: a defect, of which the log says more.
    Failed,
    /// The disk did not take the profile, or did not give it back.
    Disk,
}

impl PushDrop {
    /// Every reason, in the order of [`PushState::dropped`].
    pub const ALL: &'static [Self] = &[
        Self::QueueFull,
        Self::TooOld,
        Self::TooLarge,
        Self::Refused,
        Self::Stopped,
        Self::Failed,
        Self::Disk,
    ];
    /// Stable short name, for metrics and the status.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::QueueFull => "queue full",
            Self::TooOld => "too old",
            Self::TooLarge => "too large",
            Self::Refused => "refused",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Disk => "disk",
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
    /// Bytes of their requests, in memory and in files.
    pub queued_bytes: u64,
    /// Profiles that the server took.
    pub sent_profiles: u64,
    /// Bytes of the requests that the server took, with labels.
    pub sent_bytes: u64,
    /// Requests that failed and were or will be tried again.
    pub retries: u64,
    /// Profiles that were not sent, by reason, in the order of [`PushDrop::ALL`]. A window that could not
    /// even be packed counts as one.
    pub dropped: [u64; 7],
    /// What is wrong now; None: nothing.
    pub failing: Option<String>,
    /// What the server said when it last refused a request.
    pub refused: Option<String>,
}

/// A request that waits.
#[derive(Debug)]
struct Waiting {
    kept: Kept,
    bytes: u64,
    /// None: it is in its file.
    request: Option<Arc<[u8]>>,
}

/// Requests that wait, the oldest first, and the counts of those that went.
pub struct Queue {
    /// Those in files stand before those in memory.
    waiting: VecDeque<Waiting>,
    limit: u64,
    /// Bytes in memory.
    here: u64,
    next: u64,
    spool: Option<Spool>,
    /// Why the disk does not take requests.
    refuses: Option<String>,
    state: PushState,
}

impl Queue {
    /// A queue for a server, with what an earlier one kept.
    pub fn new(url: &str, limit: u64, keep: Option<Keep>) -> Self {
        let state = PushState { url: scrub(url).into_owned(), ..PushState::default() };
        let spool = keep.map(Spool::new);
        let found = spool.as_ref().map(Spool::found).unwrap_or_default();
        let next = found.last().map_or(0, |(kept, _)| kept.number.wrapping_add(1));
        let mut queue = Self { waiting: VecDeque::new(), limit, here: 0, next, spool, refuses: None, state };
        for (kept, bytes) in found {
            queue.push(Waiting { kept, bytes, request: None });
        }
        queue.fit();
        queue
    }

    /// Takes what a window became.
    pub fn add(&mut self, packed: Packed) {
        self.count(PushDrop::TooLarge, packed.too_large);
        for Batch { request, profiles, until } in packed.batches {
            let kept = Kept { number: self.next, until, profiles };
            self.next = self.next.wrapping_add(1);
            let bytes = request.len() as u64;
            self.here += bytes;
            self.push(Waiting { kept, bytes, request: Some(request) });
        }
        while self.here > IN_MEMORY && self.spill(PushDrop::Disk) {}
        self.fit();
    }

    fn push(&mut self, waiting: Waiting) {
        self.state.queued_profiles += waiting.kept.profiles;
        self.state.queued_bytes += waiting.bytes;
        self.waiting.push_back(waiting);
    }

    /// The oldest go that are too many.
    fn fit(&mut self) {
        while self.state.queued_bytes > self.limit && self.drop_first(PushDrop::QueueFull) {}
    }

    /// The oldest in memory goes to its file; where the disk does not take it, it goes. False: there is none, or there are
    /// no files.
    fn spill(&mut self, or: PushDrop) -> bool {
        let at = self.waiting.partition_point(|waiting| waiting.request.is_none());
        let (Some(spool), Some(waiting)) = (&self.spool, self.waiting.get_mut(at)) else { return false };
        let Some(request) = waiting.request.take() else { return false };
        self.here = self.here.saturating_sub(waiting.bytes);
        match spool.keep(waiting.kept, &request) {
            Ok(()) => self.refuses = None,
            Err(error) => {
                let says = error.to_string();
                if self.refuses.as_ref() != Some(&says) {
                    tracing::warn!(url = self.state.url, says, "profiles that wait cannot be kept on disk");
                }
                self.refuses = Some(says);
                if let Some(waiting) = self.waiting.remove(at) {
                    self.forget(&waiting);
                    self.count(or, waiting.kept.profiles);
                }
            }
        }
        true
    }

    /// The oldest request. It stays in the queue until it is known what became of it.
    pub fn first(&mut self) -> Option<Arc<[u8]>> {
        loop {
            let waiting = self.waiting.front()?;
            if let Some(request) = &waiting.request {
                return Some(Arc::clone(request));
            }
            match self.spool.as_ref()?.read(waiting.kept) {
                Ok(request) => return Some(request),
                Err(error) => {
                    let says = error.to_string();
                    tracing::warn!(
                        url = self.state.url,
                        says,
                        "profiles that were kept on disk cannot be read"
                    );
                    self.drop_first(PushDrop::Disk);
                }
            }
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The server has the first request, but for so many of its profiles.
    fn sent(&mut self, refused: u64) {
        if self.state.failing.take().is_some() {
            tracing::info!(url = self.state.url, "pushing goes on");
        }
        let Some(waiting) = self.remove_first() else { return };
        let refused = refused.min(waiting.kept.profiles);
        self.state.sent_profiles += waiting.kept.profiles - refused;
        self.state.sent_bytes += waiting.bytes;
        self.count(PushDrop::Refused, refused);
    }

    /// The server has the first request.
    pub fn taken(&mut self) {
        self.sent(0);
    }

    /// The server has the first request but for some of its profiles.
    pub fn partly(&mut self, refused: u64, says: String) {
        self.sent(refused);
        self.says(says);
    }

    /// The server will never have the first request.
    pub fn refused(&mut self, says: String) {
        self.says(says);
        self.state.failing = None;
        self.drop_first(PushDrop::Refused);
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

    /// Lets requests go whose windows ended so long ago.
    pub fn drop_older(&mut self, age: Duration) {
        let oldest = WallTime::now().minus(age);
        while self.waiting.front().is_some_and(|waiting| waiting.kept.until < oldest) {
            self.drop_first(PushDrop::TooOld);
        }
    }

    /// The daemon ends: what waits goes to files, for the next start, or goes.
    pub fn end(&mut self) {
        while self.spill(PushDrop::Stopped) {}
        while self.here > 0 && self.drop_first(PushDrop::Stopped) {}
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
        let Some(waiting) = self.remove_first() else { return false };
        self.count(why, waiting.kept.profiles);
        true
    }

    fn remove_first(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        match (&waiting.request, &self.spool) {
            (Some(_), _) => self.here = self.here.saturating_sub(waiting.bytes),
            (None, Some(spool)) => spool.remove(waiting.kept),
            (None, None) => (),
        }
        self.forget(&waiting);
        Some(waiting)
    }

    fn forget(&mut self, waiting: &Waiting) {
        self.state.queued_profiles = self.state.queued_profiles.saturating_sub(waiting.kept.profiles);
        self.state.queued_bytes = self.state.queued_bytes.saturating_sub(waiting.bytes);
    }

    fn count(&mut self, why: PushDrop, profiles: u64) {
        if let Some(count) = self.state.dropped.get_mut(why as usize) {
            *count += profiles;
        }
    }
}
