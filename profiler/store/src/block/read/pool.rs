//! Frames that blocks share: the same code runs in every hour.
//!
//! In: frames of a block. Out: the same, each held once in the process. Limit: what somebody holds, and as much again
//! as was held when it was last looked through.

use emberscope_model::{FastSet, Frame};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Frames that nobody else may hold, at least, before they are looked through.
const SPARE: usize = 4096;

#[derive(Default)]
struct Pool {
    frames: FastSet<Arc<Frame>>,
    /// How many were held when it was last looked through.
    held: usize,
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
    if pool.frames.len() > pool.held * 2 + SPARE {
        pool.frames.retain(|frame| Arc::strong_count(frame) > 1);
        pool.frames.shrink_to_fit();
        pool.held = pool.frames.len();
    }
    shared
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
        let pool = POOL.lock().unwrap();
        assert!(pool.frames.len() <= pool.held * 2 + SPARE, "{}", pool.frames.len());
    }
}
