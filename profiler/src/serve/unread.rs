//! Answers that are worked out and not read yet: how much memory they may take together.
//!
//! In: the bytes of an answer. Out: a body that holds its part of the limit until its last piece is taken. A query
//! keeps its place while it waits here, so that slow readers cannot pile up answers. When [`MOST`] bytes lie unread,
//! the answer of which nothing was taken for longest is given up, if that is [`PATIENCE`]: its memory is freed, and
//! its connection ends in an error. So those who do not read never stop those who do.

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes of answers that lie unread: three or four large flame graphs. The kernel's socket buffers come on top.
pub const MOST: usize = 16 << 20;
/// How long nothing may be taken of an answer while others wait.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// What is counted in.
const UNIT: usize = 1024;
/// What is handed to the connection at a time.
const CHUNK: usize = 64 * 1024;

/// The whole process's limit.
static ALL: LazyLock<Unread> = LazyLock::new(|| Unread::new(MOST));

/// A limit.
#[derive(Clone, Debug)]
pub struct Unread {
    free: Arc<Semaphore>,
    units: usize,
    all: Slots,
}

/// A part of the limit, given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    // None: the limit is gone, with the process.
    _room: Option<OwnedSemaphorePermit>,
    all: Slots,
}

/// Answers under way.
type Slots = Arc<Mutex<Vec<Weak<Slot>>>>;

/// An answer under way, which can be given up from outside.
#[derive(Debug)]
struct Slot(Mutex<Option<Rest>>);

#[derive(Debug)]
struct Rest {
    bytes: Bytes,
    taken: Instant,
    _held: Held,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Unread {
    /// With a limit of one's own.
    pub fn new(bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT).max(1);
        Self { free: Arc::new(Semaphore::new(units)), units, all: Slots::default() }
    }
    /// The process's.
    pub fn shared() -> Self {
        ALL.clone()
    }
    /// Waits until there is room for so many bytes; an answer larger than the limit waits for all of it.
    pub async fn hold(&self, bytes: usize) -> Held {
        let units = bytes.div_ceil(UNIT).clamp(1, self.units);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        loop {
            let room = Arc::clone(&self.free).acquire_many_owned(units);
            match tokio::time::timeout(PATIENCE / 2, room).await {
                Ok(room) => return Held { _room: room.ok(), all: Arc::clone(&self.all) },
                Err(_) => self.give_up_one(),
            }
        }
    }
    /// Frees the answer of which nothing was taken for longest.
    fn give_up_one(&self) {
        let mut all = locked(&self.all);
        all.retain(|slot| slot.strong_count() > 0);
        let slots: Vec<Arc<Slot>> = all.iter().filter_map(Weak::upgrade).collect();
        drop(all);
        let since = |slot: &Arc<Slot>| locked(&slot.0).as_ref().map(|rest| rest.taken);
        let stalest =
            slots.iter().filter_map(|slot| Some((since(slot)?, slot))).min_by_key(|(taken, _)| *taken);
        if let Some((taken, slot)) = stalest
            && taken.elapsed() >= PATIENCE
        {
            locked(&slot.0).take();
        }
    }
}

/// A body in pieces, which holds its part until the last is taken.
pub fn body(bytes: Bytes, held: Held) -> Body {
    let all = Arc::clone(&held.all);
    let length = bytes.len() as u64;
    let slot = Arc::new(Slot(Mutex::new(Some(Rest { bytes, taken: Instant::now(), _held: held }))));
    let mut all = locked(&all);
    // Bounded by the connections: those that ended are thrown out.
    all.retain(|slot| slot.strong_count() > 0);
    all.push(Arc::downgrade(&slot));
    drop(all);
    Body::new(Answer { slot, length })
}

struct Answer {
    slot: Arc<Slot>,
    /// What is still to come.
    length: u64,
}

/// Why a body ends early.
#[derive(Debug, thiserror::Error)]
#[error("the answer was not read for too long, and others waited")]
pub struct GivenUp;

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = GivenUp;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GivenUp>>> {
        if self.length == 0 {
            return Poll::Ready(None);
        }
        let piece = locked(&self.slot.0).as_mut().map(|rest| {
            rest.taken = Instant::now();
            rest.bytes.split_to(rest.bytes.len().min(CHUNK))
        });
        let Some(piece) = piece else { return Poll::Ready(Some(Err(GivenUp))) };
        self.length = self.length.saturating_sub(piece.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
    fn is_end_stream(&self) -> bool {
        self.length == 0
    }
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
