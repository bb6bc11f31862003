//! Runs a query off the async threads, few at a time, and sends its answer.
//!
//! In: a closure that asks the store and renders. Out: its response. At most [`MAX_QUERIES`] run or wait
//! to be read at once: a query keeps its place until its work is done and its answer is written, so that
//! slow readers cannot pile up large answers. One that finds no place within [`WAIT`] is 503; one that
//! takes longer than [`TIME`] is 504. A query whose client left, or whose time is up, is told so and ends at the next
//! block of the store; it keeps its place until then.

use super::error::ApiError;
use crate::model::Waits;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Queries at once.
pub const MAX_QUERIES: usize = 4;
/// Longest wait for a place.
pub const WAIT: Duration = Duration::from_secs(5);
/// Longest a query may take.
pub const TIME: Duration = Duration::from_secs(30);
/// What is handed to the connection at a time.
const CHUNK: usize = 64 * 1024;

/// A finished answer.
#[derive(Debug, Default)]
pub struct Rendered {
    /// Content type and what else is said in headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// The places.
#[derive(Clone, Debug)]
pub struct Queries {
    places: Arc<Semaphore>,
    wait: Duration,
    time: Duration,
}

impl Default for Queries {
    fn default() -> Self {
        Self::new(MAX_QUERIES, WAIT, TIME)
    }
}

impl Queries {
    /// With limits of one's own.
    pub fn new(places: usize, wait: Duration, time: Duration) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), wait, time }
    }

    /// Runs `work` on a thread that may block.
    pub async fn run<F>(&self, work: F) -> Response
    where
        F: FnOnce() -> Result<Rendered, ApiError> + Send + 'static,
    {
        match self.answer(work).await {
            Ok((rendered, place)) => {
                let mut response = Body::new(Answer { rest: rendered.body, _place: place }).into_response();
                response.headers_mut().extend(rendered.headers);
                response
            }
            Err(error) => error.into_response(),
        }
    }

    async fn answer<F>(&self, work: F) -> Result<(Rendered, OwnedSemaphorePermit), ApiError>
    where
        F: FnOnce() -> Result<Rendered, ApiError> + Send + 'static,
    {
        let place = tokio::time::timeout(self.wait, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            let message = "Too many queries are running: try again.";
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message));
        };
        // Goes with this future: when the client leaves, and when the time is up.
        let waits = Waits::default();
        let wanted = waits.wanted();
        let work = move || wanted.run(work).map(|rendered| (rendered, place));
        let task = tokio::task::spawn_blocking(work);
        match tokio::time::timeout(self.time, task).await {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => {
                tracing::error!(%error, "a query failed");
                Err(ApiError::internal("The query failed; the daemon's log says more."))
            }
            Err(_) => {
                let message = format!(
                    "The query took longer than {} s: narrow the time range or the selection.",
                    self.time.as_secs()
                );
                Err(ApiError::new(StatusCode::GATEWAY_TIMEOUT, "query_timeout", message))
            }
        }
    }
}

/// An answer on its way out, in pieces; holds its place until the last is taken.
struct Answer {
    rest: Bytes,
    _place: OwnedSemaphorePermit,
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
