//! How many connections there are, of whom, and which gives way.
//!
//! In: who connects. Out: a [`Place`], or none. Over [`MAX_CONNECTIONS`] together, or over its own limit for one
//! [`Who`], the connection that has been idle longest gives way to the new one: of all, or of his own. Where none is idle,
//! the oldest gives way that has shown no right to ask: what anybody may have (the page's files, /healthz) can be asked for
//! again and again and read slowly. So nobody is kept out by connections that ask nothing, or nothing that wants a right; where
//! there are no others the new one is closed at once. Both are counted.

use super::metrics::Metrics;
use super::peer::Who;
use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Connections at once. A page and a dashboard use some ten each; an idle one takes some 10 KiB.
pub const MAX_CONNECTIONS: usize = 288;
/// Connections of this machine over TCP: all its users together, so that some are left for other machines and for the
/// Unix socket.
pub const MAX_LOOPBACK: usize = 256;
/// Connections of one other machine, or of one user of the Unix socket: a browser and a Grafana side by side have
/// some 30.
pub const MAX_PEER: usize = 64;

/// What a connection is doing.
#[derive(Debug)]
pub struct Activity {
    /// Requests that are not answered to their last byte; pipelining makes it more than one.
    busy: AtomicUsize,
    /// When the last request began or ended.
    since: Mutex<Instant>,
    /// A request of it has shown that it may ask for samples.
    entitled: AtomicBool,
    give_way: Notify,
}

impl Activity {
    /// A request of the connection has shown a right that not everybody has.
    pub fn entitle(&self) {
        self.entitled.store(true, Relaxed);
    }
    fn touch(&self) {
        *locked(&self.since) = Instant::now();
    }
}

#[derive(Debug)]
struct Entry {
    who: Who,
    activity: Arc<Activity>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: HashMap<u64, Entry>,
}

/// All connections of a server.
pub struct Crowd {
    table: Mutex<Table>,
    metrics: Arc<Metrics>,
}

/// A connection's place; dropping it gives it back.
pub struct Place {
    crowd: Arc<Crowd>,
    id: u64,
    activity: Arc<Activity>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    /// Takes out the one that has been idle longest, else the oldest that is not entitled, among those of `who` if it is
    /// given. False: there is none.
    fn give_way(&mut self, who: Option<Who>) -> bool {
        let his = || self.open.iter().filter(|(_, entry)| who.is_none_or(|who| entry.who == who));
        let idle = his().filter(|(_, entry)| entry.activity.busy.load(Relaxed) == 0);
        let idle = idle.map(|(id, entry)| (*locked(&entry.activity.since), *id)).min().map(|(_, id)| id);
        let without_right = || {
            let busy = his().filter(|(_, entry)| !entry.activity.entitled.load(Relaxed));
            busy.map(|(id, _)| *id).min()
        };
        let entry = idle.or_else(without_right).and_then(|id| self.open.remove(&id));
        // Kept by the Notify until the connection looks.
        entry.map(|entry| entry.activity.give_way.notify_one()).is_some()
    }
}

impl Crowd {
    /// A crowd without connections.
    pub fn new(metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { table: Mutex::default(), metrics })
    }

    /// A place for a new connection; None: there is none, and it is to be closed.
    pub fn admit(self: &Arc<Self>, who: Who) -> Option<Place> {
        let most = if who == Who::Loopback { MAX_LOOPBACK } else { MAX_PEER };
        let mut table = locked(&self.table);
        let his = table.open.values().filter(|entry| entry.who == who).count();
        let full = match () {
            () if his >= most => Some(Some(who)),
            () if table.open.len() >= MAX_CONNECTIONS => Some(None),
            () => None,
        };
        if let Some(of) = full {
            if !table.give_way(of) {
                self.metrics.http.refused.inc();
                return None;
            }
            self.metrics.http.evicted.inc();
        }
        let id = table.next;
        table.next += 1;
        let since = Mutex::new(Instant::now());
        let entitled = AtomicBool::new(false);
        let activity =
            Arc::new(Activity { busy: AtomicUsize::new(0), since, entitled, give_way: Notify::new() });
        table.open.insert(id, Entry { who, activity: Arc::clone(&activity) });
        self.metrics.http.connections.inc();
        Some(Place { crowd: Arc::clone(self), id, activity })
    }
}

impl Place {
    /// Resolves when another connection was given this place.
    pub async fn given_up(&self) {
        self.activity.give_way.notified().await;
    }
    /// What the connection is doing.
    pub fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.crowd.table).open.remove(&self.id);
        self.crowd.metrics.http.connections.dec();
    }
}

/// A request under way, until its answer's last byte is taken.
#[derive(Debug)]
pub struct Busy(Arc<Activity>);

impl Busy {
    /// A request begins.
    pub fn new(activity: &Arc<Activity>) -> Self {
        activity.busy.fetch_add(1, Relaxed);
        activity.touch();
        Self(Arc::clone(activity))
    }
    /// The answer's body, which is under way as long as it is there.
    pub fn body(self, body: Body) -> Answered {
        Answered { body, _busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.touch();
        self.0.busy.fetch_sub(1, Relaxed);
    }
}

/// The body of an answer, which counts as under way until it is dropped.
#[derive(Debug)]
pub struct Answered {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Answered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd() -> Arc<Crowd> {
        Crowd::new(Arc::new(Metrics::new("0").unwrap()))
    }

    async fn is_given_up(place: &Place) -> bool {
        tokio::time::timeout(std::time::Duration::ZERO, place.given_up()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_gives_way_and_a_busy_one_does_not() {
        let crowd = crowd();
        let user = Who::User(7);
        let mut places = Vec::new();
        for _ in 0..MAX_PEER {
            places.push(crowd.admit(user).unwrap());
            tokio::time::advance(std::time::Duration::from_millis(1)).await;
        }
        places[0].activity().entitle();
        let busy = Busy::new(&places[0].activity());
        let last = crowd.admit(user).unwrap();
        let mut gone = Vec::new();
        for place in &places {
            gone.push(is_given_up(place).await);
        }
        assert!(!gone[0] && gone[1] && gone[2..].iter().all(|gone| !gone), "{gone:?}");
        assert_eq!(crowd.metrics.http.evicted.get(), 1);
        // It asked last of all now.
        drop(busy);
        let _next = crowd.admit(user).unwrap();
        assert!(!is_given_up(&places[0]).await && is_given_up(&places[2]).await && !is_given_up(&last).await);
    }

    #[tokio::test]
    async fn who_has_shown_no_right_gives_way_though_busy() {
        let crowd = crowd();
        let mut held = Vec::new();
        for at in 0..MAX_LOOPBACK {
            let place = crowd.admit(Who::Loopback).unwrap();
            if at == 0 {
                place.activity().entitle();
            }
            held.push((Busy::new(&place.activity()), place));
        }
        let new = crowd.admit(Who::Loopback).unwrap();
        assert!(!is_given_up(&held[0].1).await && !is_given_up(&new).await);
        assert!(is_given_up(&held[1].1).await && !is_given_up(&held[2].1).await);
        assert_eq!((crowd.metrics.http.evicted.get(), crowd.metrics.http.refused.get()), (1, 0));
    }

    #[test]
    fn a_crowd_of_one_leaves_room_for_others() {
        let crowd = crowd();
        let hold = |who, count: usize| -> Vec<_> {
            (0..count)
                .map(|_| {
                    let place = crowd.admit(who).unwrap();
                    place.activity().entitle();
                    let busy = Busy::new(&place.activity());
                    (place, busy)
                })
                .collect()
        };
        let loopback = hold(Who::Loopback, MAX_LOOPBACK);
        assert!(crowd.admit(Who::Loopback).is_none(), "all of them are busy, and may ask");
        let _root = hold(Who::User(0), MAX_CONNECTIONS - MAX_LOOPBACK);
        assert!(crowd.admit(Who::User(0)).is_none());
        assert_eq!(crowd.metrics.http.refused.get(), 2);
        drop(loopback);
        assert_eq!(crowd.metrics.http.connections.get(), (MAX_CONNECTIONS - MAX_LOOPBACK) as i64);
        assert!(crowd.admit(Who::Loopback).is_some());
    }
}
