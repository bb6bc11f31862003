//! Equal questions that are asked while one of them waits or is worked on: one answer for all.
//!
//! In: a key, and what works the answer out. Out: the answer, the same bytes for all who asked for it. A dashboard on
//! several screens, or a page that is reloaded while it waits, costs one query then. It goes on as long as one of them
//! waits, and nothing is kept once it is done. Limit: an entry for each question under way, so for each connection.

use super::params::Params;
use emberscope_model::WallTime;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What makes two questions equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    route: TypeId,
    params: Params,
    slot: WallTime,
}

impl Key {
    /// Of work that is told `params` alone, in the window that is open at `slot`: times such as `-15m` then mean the
    /// same. None of work that carries something of its own, which its type does not tell.
    pub fn of<F: 'static>(_: &F, params: &Params, slot: WallTime) -> Option<Self> {
        (size_of::<F>() == 0).then(|| Self { route: TypeId::of::<F>(), params: params.clone(), slot })
    }
}

type Flights<T> = HashMap<Key, WeakShared<BoxFuture<'static, T>>>;

/// Questions under way, each with its answer to be.
#[derive(Clone, Debug)]
pub struct Together<T: Clone>(Arc<Mutex<Flights<T>>>);

impl<T: Clone> Default for Together<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + Send + Sync + 'static> Together<T> {
    /// The answer of the question of this key that is under way, else of `start`.
    pub fn join<W>(&self, key: Key, start: impl FnOnce() -> W) -> Shared<BoxFuture<'static, T>>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = flights.get(&key).and_then(WeakShared::upgrade) {
            return shared;
        }
        flights.retain(|_, flight| flight.upgrade().is_some());
        let shared = start().boxed().shared();
        flights.extend(shared.downgrade().map(|weak| (key, weak)));
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    fn key(text: &str) -> Key {
        let params = Params::of(Some(text), &["a"]).unwrap();
        Key::of(&|| 1, &params, WallTime(0)).unwrap()
    }

    /// Works for a second; counts how often it began and ended.
    async fn work(counts: Arc<[AtomicUsize; 2]>) -> usize {
        let number = counts[0].fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        counts[1].fetch_add(1, Ordering::Relaxed);
        number
    }

    #[tokio::test(start_paused = true)]
    async fn equal_questions_have_one_answer_while_it_is_under_way() {
        let (together, counts) = (Together::default(), Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]));
        let ask = |text: &str| together.join(key(text), || work(Arc::clone(&counts)));
        let (first, same, other) = (ask("a=1"), ask("a=1"), ask("a=2"));
        assert_eq!(tokio::join!(first, same, other), (0, 0, 1));
        // Nothing is kept: the next one is worked out anew.
        assert_eq!(ask("a=1").await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_as_long_as_somebody_waits() {
        let (together, counts) = (Together::default(), Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]));
        let ask = || together.join(key("a=1"), || work(Arc::clone(&counts)));
        let (first, second) = (ask(), ask());
        let soon = Duration::from_millis(500);
        assert!(tokio::time::timeout(soon, first).await.is_err(), "the first one leaves");
        assert_eq!(second.await, 0);
        assert!(tokio::time::timeout(soon, ask()).await.is_err());
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(counts[1].load(Ordering::Relaxed), 1, "what nobody waits for ends");
    }

    #[test]
    fn work_that_carries_something_is_like_no_other() {
        let (params, seven) = (Params::of(None, &[]).unwrap(), 7);
        assert_eq!(Key::of(&move || seven, &params, WallTime(0)), None);
        let one = || 1;
        assert_ne!(Key::of(&one, &params, WallTime(0)), Key::of(&one, &params, WallTime(1)));
        assert_ne!(Key::of(&one, &params, WallTime(0)), Key::of(&|| 1, &params, WallTime(0)));
    }
}
