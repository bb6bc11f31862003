//! Runs a query off the async threads, few at a time, and sends its answer.
//!
//! In: a closure that asks the store and renders. Out: its response. At most [`MAX_QUERIES`] run at once, two on a
//! machine of two CPUs, and of those that make a call tree half as many ([`Size::Tree`]): a query keeps its place until its
//! work is done and there is room for its answer among those that are not read yet ([`Unread`]). One that finds no place within [`WAIT`] is 503; one that takes longer than
//! [`TIME`] is 504. A query whose clients left, or whose time is up, is told so and ends at the next block of the
//! store; it keeps its place until then. Equal questions that wait at the same time are worked out once
//! ([`Together`]).

use super::error::ApiError;
use super::text::Text;
use super::together::{Key, Together};
use super::unread::{self, Held, Unread};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use emberscope_model::Waits;
use emberscope_supervise::faults;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Queries at once. Each may hold some 25 MB for a moment (a flame graph of a node's last minutes).
pub const MAX_QUERIES: usize = 4;
/// Longest wait for a place: 200 clients at once on a slow node wait some seconds each.
pub const WAIT: Duration = Duration::from_secs(20);
/// Longest a query may take.
pub const TIME: Duration = Duration::from_secs(30);

/// What a query needs memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Sums and lists: a megabyte or two.
    Sums,
    /// A call tree, of which one may have a million nodes, and its text: some ten megabytes, in turn with others.
    Tree,
}

/// An answer that is worked out and rendered.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// Content type and what else is said in headers.
    pub headers: HeaderMap,
    /// Body of the response.
    pub body: Text,
}

/// An answer that is worked out, and its part of the limit for answers that are not read yet.
pub type Ready = Result<(Rendered, Arc<Held>), ApiError>;

/// The places for queries, and the limits on them.
#[derive(Clone, Debug)]
pub struct Queries {
    places: Arc<Semaphore>,
    /// Of the places, those that a tree may take.
    trees: Arc<Semaphore>,
    pub(crate) unread: Unread,
    together: Together<Ready>,
    wait: Duration,
    time: Duration,
}

impl Default for Queries {
    fn default() -> Self {
        // More than the CPUs take longer together than one behind the other, and need their memory all that time. Two
        // at the least, so that one long answer does not keep a short one.
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Self::new(cpus.clamp(2, MAX_QUERIES), WAIT, TIME)
    }
}

impl Queries {
    /// Places with limits of one's own.
    pub fn new(places: usize, wait: Duration, time: Duration) -> Self {
        let trees = Arc::new(Semaphore::new(places.div_ceil(2)));
        let places = Arc::new(Semaphore::new(places));
        Self { places, trees, unread: Unread::shared(), together: Together::default(), wait, time }
    }

    /// Runs `work` on a thread that may block.
    pub async fn run<F>(&self, size: Size, work: F) -> Response
    where
        F: FnOnce() -> Result<Rendered, ApiError> + Send + 'static,
    {
        respond(self.answer(size, work).await)
    }

    /// As [`Self::run`], unless a query of this key is under way: then its answer is the answer.
    pub async fn run_once<F>(&self, key: Key, size: Size, work: F) -> Response
    where
        F: FnOnce() -> Result<Rendered, ApiError> + Send + 'static,
    {
        let queries = self.clone();
        respond(self.together.join(key, || async move { queries.answer(size, work).await }).await)
    }

    /// A place, and for a tree the turn that goes with it: while trees wait, a place is left for what is short.
    async fn place(&self, size: Size) -> Option<(Option<OwnedSemaphorePermit>, OwnedSemaphorePermit)> {
        let turn = match size {
            Size::Tree => Some(Arc::clone(&self.trees).acquire_owned().await.ok()?),
            Size::Sums => None,
        };
        Some((turn, Arc::clone(&self.places).acquire_owned().await.ok()?))
    }

    async fn answer<F>(&self, size: Size, work: F) -> Ready
    where
        F: FnOnce() -> Result<Rendered, ApiError> + Send + 'static,
    {
        let place = tokio::time::timeout(self.wait, self.place(size)).await;
        let busy = |message| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
        let Ok(Some(place)) = place else { return Err(busy("Too many queries are running: try again.")) };
        // Goes with this future: when the client leaves, and when the time is up.
        let waits = Waits::default();
        let wanted = waits.wanted();
        let work = move || {
            faults::point("query");
            wanted.run(work).map(|rendered| (rendered, place))
        };
        let task = tokio::task::spawn_blocking(work);
        match tokio::time::timeout(self.time, task).await {
            Ok(Ok(result)) => {
                let (rendered, _place) = result?;
                let room = self.unread.hold(rendered.body.held());
                match tokio::time::timeout(self.wait, room).await {
                    Ok(held) => Ok((rendered, Arc::new(held))),
                    Err(_) => Err(busy("Too many answers wait to be read: try again.")),
                }
            }
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

fn respond(ready: Ready) -> Response {
    match ready {
        Ok((rendered, held)) => {
            let mut response = unread::body(rendered.body, held).into_response();
            response.headers_mut().extend(rendered.headers);
            response
        }
        Err(error) => error.into_response(),
    }
}
