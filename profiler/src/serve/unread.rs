//! Answers that are worked out and not read yet: how much memory they may take together.
//!
//! In: the bytes of an answer. Out: a body that holds its part of the limit until its last piece is taken. A query
//! keeps its place while it waits here, so that slow readers cannot pile up answers, and those who read are stopped
//! by those who do not only once [`MOST`] bytes lie unread; a client that reads nothing is cut off
//! (`connection::STALL`).

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes of answers that lie unread: three or four large flame graphs. The kernel's socket buffers come on top.
pub const MOST: usize = 16 << 20;
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
}

/// A part of the limit, given back when it is dropped. None: the limit is gone, with the process.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "held for its drop")] Option<OwnedSemaphorePermit>);

impl Unread {
    /// With a limit of one's own.
    pub fn new(bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT).max(1);
        Self { free: Arc::new(Semaphore::new(units)), units }
    }
    /// The process's.
    pub fn shared() -> Self {
        ALL.clone()
    }
    /// Waits until there is room for so many bytes; an answer larger than the limit waits for all of it.
    pub async fn hold(&self, bytes: usize) -> Held {
        let units = bytes.div_ceil(UNIT).clamp(1, self.units);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        Held(Arc::clone(&self.free).acquire_many_owned(units).await.ok())
    }
}

/// A body in pieces, which holds its part until the last is taken.
pub fn body(bytes: Bytes, held: Held) -> Body {
    Body::new(Answer { rest: bytes, _held: held })
}

struct Answer {
    rest: Bytes,
    _held: Held,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(CHUNK);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }
    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
