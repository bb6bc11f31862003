//! Frames that blocks share: the same code runs in every hour.
//!
//! In: frames of a block, and how many of them somebody lets go. Out: the same, each held once in the process. Limit: what
//! somebody holds, a quarter as much again, and [`SPARE`].

use emberscope_model::{FastSet, Frame};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Frames that nobody else may hold, at least, before they are looked through: some 200 KB.
const SPARE: usize = 1024;

#[derive(Default)]
struct Pool {
    frames: FastSet<Arc<Frame>>,
    /// How many were held when it was last looked through, without those that were let go since: the fewest that are.
    held: usize,
}

impl Pool {
    fn look_through(&mut self) {
        if self.frames.len() > self.held + self.held / 4 + SPARE {
            self.frames.retain(|frame| Arc::strong_count(frame) > 1);
            self.frames.shrink_to_fit();
            self.held = self.frames.len();
        }
    }
}

static POOL: LazyLock<Mutex<Pool>> = LazyLock::new(Mutex::default);

/// The frames, as others have them where they do.
pub(super) fn shared(frames: impl Iterator<Item = Frame>) -> Vec<Arc<Frame>> {
    // A panic would leave a frame more or less.
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let shared = frames.map(|frame| {
        if let Some(known) = pool.frames.get(&frame) {
            return known.clone();
        }
        let frame = Arc::new(frame);
        pool.frames.insert(frame.clone());
        frame
    });
    let shared: Vec<Arc<Frame>> = shared.collect();
    pool.look_through();
    shared
}

/// Somebody who had so many lets them go.
pub(super) fn let_go(count: usize) {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    pool.held = pool.held.saturating_sub(count);
    pool.look_through();
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::FrameKind;

    #[test]
    fn equal_frames_are_one_and_those_that_nobody_holds_go() {
        let frame = |n: usize| Frame::new(FrameKind::Native, format!("pool-test-{n}"), "");
        let one = shared((0..3).map(frame));
        let two = shared((0..4).map(frame));
        assert!(one.iter().zip(&two).all(|(one, two)| Arc::ptr_eq(one, two)));
        for round in 0..20 {
            shared((0..SPARE).map(|n| frame(round * SPARE + n)));
        }
        let most = |pool: &Pool| pool.held + pool.held / 4 + SPARE;
        let len = || {
            let pool = POOL.lock().unwrap();
            assert!(pool.frames.len() <= most(&pool), "{} of {}", pool.frames.len(), pool.held);
            pool.frames.len()
        };
        let before = len();
        let many = shared((0..8 * SPARE).map(|n| frame(100 * SPARE + n)));
        assert!(len() >= 8 * SPARE);
        let count = many.len();
        drop(many);
        let_go(count);
        assert!(len() <= before + 2 * SPARE, "{} after {before}", len());
    }
}
