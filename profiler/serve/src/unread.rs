//! Answers that are worked out and not read yet: how much memory they may take together.
//!
//! In: the text of an answer, and the bytes that it takes. Out: bodies that hold its part of the limit until the last piece of the last is taken. A
//! query keeps its place while it waits here, so that slow readers cannot pile up answers. While there is no room, the
//! answers of which nothing was taken for [`PATIENCE`] are given up, the longest untaken first, as many as are needed:
//! their memory is freed, and their connections end in an error. So those who do not read never stop those who do.

use super::text::Text;
use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::collections::HashMap;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Most bytes of answers that lie unread, compressed: two or three of the largest flame graphs. The kernel's socket buffers
/// come on top.
pub const MOST: usize = 4 << 20;
/// How long nothing may be taken of an answer while others wait.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// How often one that waits looks for answers to give up.
const LOOK: Duration = Duration::from_millis(250);
/// Bytes of a unit in which room is counted.
const UNIT: usize = 1024;

/// The limit that the whole process has.
static ALL: LazyLock<Unread> = LazyLock::new(|| Unread::new(MOST));

/// A limit on the bytes of answers that are not read yet.
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
    units: u32,
    all: Slots,
}

/// The bodies under way, to be given up where others wait.
type Slots = Arc<Mutex<Vec<Weak<Slot>>>>;

/// A body under way, which can be given up from outside.
#[derive(Debug)]
struct Slot(Mutex<Option<Rest>>);

#[derive(Debug)]
struct Rest {
    text: Text,
    taken: Instant,
    /// The part of the limit, one for all bodies of an answer.
    held: Arc<Held>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Unread {
    /// A limit of one's own, in bytes.
    pub fn new(bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT).max(1);
        Self { free: Arc::new(Semaphore::new(units)), units, all: Slots::default() }
    }
    /// The limit that the whole process has.
    pub fn shared() -> Self {
        ALL.clone()
    }
    /// Waits until there is room for so many bytes; an answer larger than the limit waits for all of it.
    pub async fn hold(&self, bytes: usize) -> Held {
        let units = bytes.div_ceil(UNIT).clamp(1, self.units);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let mut room = pin!(Arc::clone(&self.free).acquire_many_owned(units));
        loop {
            match tokio::time::timeout(LOOK, &mut room).await {
                Ok(room) => return Held { _room: room.ok(), units, all: Arc::clone(&self.all) },
                Err(_) => self.give_up(units),
            }
        }
    }
    /// Frees so many units of answers that nobody takes anything of, or as many as there are.
    fn give_up(&self, units: u32) {
        let mut all = locked(&self.all);
        all.retain(|slot| slot.strong_count() > 0);
        let slots: Vec<Arc<Slot>> = all.iter().filter_map(Weak::upgrade).collect();
        drop(all);
        // An answer is as fresh as the one of its bodies that was taken from last.
        let mut answers: HashMap<*const Held, (Instant, u32, Vec<&Slot>)> = HashMap::new();
        for slot in &slots {
            let Some((taken, held)) = locked(&slot.0).as_ref().map(|rest| (rest.taken, rest.held.clone()))
            else {
                continue;
            };
            let answer = answers.entry(Arc::as_ptr(&held)).or_insert((taken, held.units, Vec::new()));
            answer.0 = answer.0.max(taken);
            answer.2.push(slot);
        }
        let mut stale: Vec<_> =
            answers.into_values().filter(|(taken, ..)| taken.elapsed() >= PATIENCE).collect();
        stale.sort_by_key(|(taken, ..)| *taken);
        let mut freed = 0_u32;
        for (_, of, bodies) in stale {
            if freed >= units {
                break;
            }
            freed = freed.saturating_add(of);
            for body in bodies {
                locked(&body.0).take();
            }
        }
    }
}

/// A body in pieces, which holds the answer's part of the limit until the last is taken.
pub fn body(text: Text, held: impl Into<Arc<Held>>) -> Body {
    let held = held.into();
    let all = Arc::clone(&held.all);
    let length = text.len();
    let slot = Arc::new(Slot(Mutex::new(Some(Rest { text, taken: Instant::now(), held }))));
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
pub enum Ended {
    /// Others waited.
    #[error("the answer was not read for too long, and others waited")]
    GivenUp,
    /// What was compressed cannot be read.
    #[error("the answer's rest cannot be read: {0}")]
    Unreadable(io::Error),
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Ended;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Ended>>> {
        if self.length == 0 {
            return Poll::Ready(None);
        }
        let piece = locked(&self.slot.0).as_mut().map(|rest| {
            rest.taken = Instant::now();
            rest.text.take()
        });
        let piece = match piece.flatten() {
            Some(Ok(piece)) => piece,
            Some(Err(error)) => return Poll::Ready(Some(Err(Ended::Unreadable(error)))),
            None => return Poll::Ready(Some(Err(Ended::GivenUp))),
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    const KIB: usize = 1024;
    const SECOND: Duration = Duration::from_secs(1);

    async fn answer(unread: &Unread, kib: usize) -> Body {
        body(vec![0; kib * KIB].into(), unread.hold(kib * KIB).await)
    }

    /// Whether the next piece comes; false when the body was given up.
    async fn piece(body: &mut Body) -> bool {
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        frame.is_some_and(|frame| frame.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_takes_is_given_up_when_others_wait() {
        let unread = Unread::new(300 * KIB);
        let mut first = answer(&unread, 200).await;
        assert!(piece(&mut first).await);
        // As long as there is room, or nobody wants it, it may lie.
        tokio::time::sleep(60 * SECOND).await;
        let small = answer(&unread, 100).await;
        assert!(piece(&mut first).await);
        let begun = Instant::now();
        let mut next = answer(&unread, 200).await;
        let waited = begun.elapsed();
        assert!(waited >= PATIENCE && waited <= PATIENCE + SECOND, "{waited:?}");
        assert!(!piece(&mut first).await, "it ends in an error");
        assert!(piece(&mut next).await);
        drop(small);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_waited_for() {
        let unread = Unread::new(300 * KIB);
        let mut slow = answer(&unread, 300).await;
        let (other, pieces) = tokio::join!(answer(&unread, 300), async {
            let mut pieces = 0;
            while !slow.is_end_stream() && piece(&mut slow).await {
                pieces += 1;
                tokio::time::sleep(SECOND).await;
            }
            drop(slow);
            pieces
        });
        assert_eq!(pieces, 5, "all of its 300 KiB");
        drop(other);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_untaken_go_first_and_no_more_than_are_needed() {
        let unread = Unread::new(300 * KIB);
        let mut all = Vec::new();
        for _ in 0..3 {
            all.push(answer(&unread, 100).await);
            tokio::time::sleep(SECOND).await;
        }
        tokio::time::sleep(10 * SECOND).await;
        let begun = Instant::now();
        let room = unread.hold(200 * KIB).await;
        assert!(begun.elapsed() <= SECOND, "both at once: {:?}", begun.elapsed());
        let mut left = Vec::new();
        for body in &mut all {
            left.push(piece(body).await);
        }
        assert_eq!(left, [false, false, true]);
        drop(room);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_one_of_several_reads_is_kept() {
        let unread = Unread::new(300 * KIB);
        let held = Arc::new(unread.hold(300 * KIB).await);
        let text = Text::from(vec![0; 300 * KIB]);
        let [mut idle, mut reads] = [body(text.clone(), held.clone()), body(text, held)];
        let waiting = unread.hold(KIB);
        let mut waiting = pin!(waiting);
        for _ in 0..4 {
            assert!(tokio::time::timeout(SECOND, &mut waiting).await.is_err());
            assert!(piece(&mut reads).await);
        }
        // Then nobody reads.
        let begun = Instant::now();
        let room = waiting.await;
        assert!(begun.elapsed() >= PATIENCE - SECOND / 2, "{:?}", begun.elapsed());
        assert!(!piece(&mut idle).await && !piece(&mut reads).await);
        drop(room);
    }
}
